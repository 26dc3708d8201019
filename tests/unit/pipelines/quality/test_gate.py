"""The suites are valid files of great-expectations, and each of their expectations can fail."""

import json
from pathlib import Path

import pytest

from fleetgauge_pipelines.quality.gate import (
    BATCH_SUITE_FILE,
    GOLD_SUITE_FILE,
    SUITES,
    QualityFacts,
    QualityGate,
)

GOOD: dict[str, QualityFacts] = {
    "batch": {
        "availability_min": 0.0,
        "availability_max": 1.0,
        "quantiles_out_of_order": 0,
        "more_successes_than_attempts": 0,
        "measured_without_attempts": 0,
        "expected_minutes": 0,
        "received": 7,
        "accounted_for": 7,
    },
    "gold": {
        "week_availability_min": 0.0,
        "week_availability_max": 1.0,
        "week_latency_min_us": 1,
        "coverage_min": 0.0,
        "coverage_max": 1.0,
        "more_bad_than_expected": 0,
        "more_measured_than_expected": 0,
        "coverage_unlike_silver": 0,
        "fleet_quantiles_out_of_order": 0,
        "cluster_weeks": 3,
        "fleet_clusters_least": 3,
        "fleet_clusters_most": 3,
        "week_minutes_expected": 30_240,
        "silver_cluster_minutes": 30_240,
    },
}
#: For each suite, facts that fail one expectation and no other.
FAILING: dict[str, list[dict[str, float]]] = {
    "batch": [
        {"availability_min": -0.01},
        {"availability_max": 1.01},
        {"quantiles_out_of_order": 1},
        {"more_successes_than_attempts": 1},
        {"measured_without_attempts": 1},
        {"expected_minutes": -1},
        {"accounted_for": 6},
    ],
    "gold": [
        {"week_availability_min": -0.01},
        {"week_availability_max": 1.01},
        {"week_latency_min_us": 0},
        {"coverage_min": -0.01},
        {"coverage_max": 1.01},
        {"more_bad_than_expected": 1},
        {"more_measured_than_expected": 1},
        {"coverage_unlike_silver": 1},
        {"fleet_quantiles_out_of_order": 1},
        {"fleet_clusters_least": 2},
        {"fleet_clusters_most": 4},
        {"silver_cluster_minutes": 30_239},
    ],
}


@pytest.fixture(scope="module", params=[BATCH_SUITE_FILE, GOLD_SUITE_FILE], ids=lambda path: path.stem)
def suite(request: pytest.FixtureRequest) -> tuple[str, QualityGate]:
    return request.param.stem, QualityGate(request.param)


def test_each_expectation_fails_on_the_row_made_for_it_and_on_no_other(
    suite: tuple[str, QualityGate],
) -> None:
    name, gate = suite
    rows = [GOOD[name], *({**GOOD[name], **facts} for facts in FAILING[name])]
    results = gate.judge(rows)
    failed_rows = sorted(sorted(result.failed_rows) for result in results)
    assert failed_rows == [[row] for row in range(1, len(rows))]
    expectations = json.loads((SUITES / f"{name}.json").read_text())["expectations"]
    assert len(results) == len(expectations)
    assert all(expectation["description"] for expectation in expectations)


def test_an_aggregate_of_no_rows_meets_every_bound(suite: tuple[str, QualityGate]) -> None:
    name, gate = suite
    bounded = [
        column for result in gate.judge([GOOD[name]]) if len(result.columns) == 1 for column in result.columns
    ]
    results = gate.judge([GOOD[name] | dict.fromkeys(bounded)])
    assert not [result for result in results if result.failed_rows]


def test_an_expectation_on_a_missing_fact_fails_on_every_row(tmp_path: Path) -> None:
    gate = QualityGate(
        _suite(
            tmp_path,
            {"type": "expect_column_values_to_be_between", "kwargs": {"column": "c", "min_value": 0}},
        )
    )
    (result,) = gate.judge([{"a": 1}, {"a": 2}])
    assert result.failed_rows == {0, 1}


def test_a_verdict_has_the_observed_values(tmp_path: Path) -> None:
    settings = {"column_A": "a", "column_B": "b"}
    gate = QualityGate(
        _suite(tmp_path, {"type": "expect_column_pair_values_to_be_equal", "kwargs": settings})
    )
    rows: list[QualityFacts] = [{"a": 1, "b": 1, "c": 5}, {"a": 1, "b": None, "c": 5}]
    (result,) = gate.judge(rows)
    good, bad = (result.verdict_for_row(position, facts) for position, facts in enumerate(rows))
    assert good.expectation == bad.expectation == "expect_column_pair_values_to_be_equal(a, b)"
    assert (good.success, bad.success, json.loads(bad.observed)) == (True, False, {"a": 1, "b": None})


def _suite(folder: Path, *expectations: object) -> Path:
    path = folder / "own.json"
    path.write_text(json.dumps({"name": "own", "expectations": expectations}))
    return path
