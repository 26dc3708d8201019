"""Comparison of two sets of rows."""

from typing import Any

import pytest

from fleetgauge_core.tables import BROKER_MINUTES, CLUSTER_WEEKS
from tests.oracle.compare import find_differences
from tests.unit.oracle.conftest import Bench


def _rows(bench: Bench) -> list[dict[str, Any]]:
    return bench.evaluate(bench.record(failed=1)).broker_minutes


def test_rows_are_equal_in_any_order_and_for_any_representation_of_maps_and_arrays(bench: Bench) -> None:
    rows = _rows(bench)
    actual = [
        row | {"failures": list(row["failures"].items()), "led_by": tuple(row["led_by"])} for row in rows
    ]
    assert find_differences(BROKER_MINUTES, rows, reversed(actual)) == []


@pytest.mark.parametrize(
    ("column", "value"),
    [
        ("latency_p99_us", 1_001),
        ("availability", 0.99),
        ("availability", None),
        ("failures", {}),
        ("led_by", [1, 2]),
        ("measured", False),
        ("day", None),
    ],
)
def test_a_different_value_is_reported_with_its_column(bench: Bench, column: str, value: Any) -> None:
    rows = _rows(bench)
    actual = [rows[0] | {column: value}, *rows[1:]]
    assert [difference.column for difference in find_differences(BROKER_MINUTES, rows, actual)] == [column]


def test_doubles_may_differ_in_their_last_bits(bench: Bench) -> None:
    rows = _rows(bench)
    close = [rows[0] | {"availability": rows[0]["availability"] * (1 + 1e-10)}, *rows[1:]]
    assert find_differences(BROKER_MINUTES, rows, close) == []


def test_missing_additional_and_repeated_rows_are_reported(bench: Bench) -> None:
    rows = _rows(bench)
    assert [difference.actual for difference in find_differences(BROKER_MINUTES, rows, rows[:1])] == [
        "no row"
    ]
    assert [difference.expected for difference in find_differences(BROKER_MINUTES, rows[:1], rows)] == [
        "no row"
    ]
    assert [difference.actual for difference in find_differences(BROKER_MINUTES, rows, [*rows, rows[0]])] == [
        "2 rows in actual"
    ]


def test_a_missing_column_is_a_difference_and_a_volatile_one_is_not(bench: Bench) -> None:
    weeks = bench.evaluate(bench.record()).cluster_weeks
    assert find_differences(CLUSTER_WEEKS, weeks, [weeks[0] | {"computed_at": "any time"}]) == []
    without_coverage = {name: value for name, value in weeks[0].items() if name != "coverage"}
    assert [
        difference.column for difference in find_differences(CLUSTER_WEEKS, weeks, [without_coverage])
    ] == ["coverage"]
