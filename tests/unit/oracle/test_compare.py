from typing import Any

import pytest

from fleetgauge_core.tables import BROKER_MINUTES, CLUSTER_WEEKS
from tests.oracle.compare import differences
from tests.unit.oracle.conftest import Bench


def _rows(bench: Bench) -> list[dict[str, Any]]:
    return bench.evaluate(bench.record(failed=1)).broker_minutes


def test_rows_are_the_same_in_any_order_and_with_pairs_for_maps_and_tuples_for_arrays(bench: Bench) -> None:
    rows = _rows(bench)
    actual = [
        row | {"failures": list(row["failures"].items()), "led_by": tuple(row["led_by"])} for row in rows
    ]
    assert differences(BROKER_MINUTES, rows, reversed(actual)) == []


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
def test_one_different_value_is_named(bench: Bench, column: str, value: Any) -> None:
    rows = _rows(bench)
    actual = [rows[0] | {column: value}, *rows[1:]]
    assert [one.column for one in differences(BROKER_MINUTES, rows, actual)] == [column]


def test_doubles_may_differ_in_their_last_bits_and_integers_not_at_all(bench: Bench) -> None:
    rows = _rows(bench)
    close = [rows[0] | {"availability": rows[0]["availability"] * (1 + 1e-10)}, *rows[1:]]
    assert differences(BROKER_MINUTES, rows, close) == []


def test_rows_that_lack_are_too_many_or_come_twice_are_told(bench: Bench) -> None:
    rows = _rows(bench)
    assert [one.actual for one in differences(BROKER_MINUTES, rows, rows[:1])] == ["no row"]
    assert [one.expected for one in differences(BROKER_MINUTES, rows[:1], rows)] == ["no row"]
    assert [one.actual for one in differences(BROKER_MINUTES, rows, [*rows, rows[0]])] == ["2 rows in actual"]


def test_a_column_that_is_missing_is_a_difference_but_when_it_was_computed_is_not(bench: Bench) -> None:
    weeks = bench.evaluate(bench.record()).cluster_weeks
    assert differences(CLUSTER_WEEKS, weeks, [weeks[0] | {"computed_at": "any time"}]) == []
    lacking = {name: value for name, value in weeks[0].items() if name != "coverage"}
    assert [one.column for one in differences(CLUSTER_WEEKS, weeks, [lacking])] == ["coverage"]
