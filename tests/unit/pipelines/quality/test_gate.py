"""The suites are files that great-expectations loads, and each of their expectations can fail."""

import json
from pathlib import Path

import pytest

from fleetgauge_pipelines.quality.gate import BATCH, GOLD, SUITES, Facts, Gate

GOOD: dict[str, Facts] = {
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
#: Per suite the facts that break one expectation and no other.
BREAKING: dict[str, list[dict[str, float]]] = {
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


@pytest.fixture(scope="module", params=[BATCH, GOLD], ids=lambda path: path.stem)
def suite(request: pytest.FixtureRequest) -> tuple[str, Gate]:
    return request.param.stem, Gate(request.param)


def test_each_expectation_of_each_suite_fails_alone_on_the_row_that_breaks_it(
    suite: tuple[str, Gate],
) -> None:
    name, gate = suite
    rows = [GOOD[name], *({**GOOD[name], **facts} for facts in BREAKING[name])]
    findings = gate.judge(rows)
    assert sorted(sorted(finding.broken) for finding in findings) == [[n] for n in range(1, len(rows))]
    written = json.loads((SUITES / f"{name}.json").read_text())["expectations"]
    assert len(findings) == len(written)
    assert all(one["description"] for one in written)


def test_an_aggregate_of_nothing_breaks_no_bound(suite: tuple[str, Gate]) -> None:
    name, gate = suite
    bounded = [
        column
        for finding in gate.judge([GOOD[name]])
        if len(finding.columns) == 1
        for column in finding.columns
    ]
    findings = gate.judge([GOOD[name] | dict.fromkeys(bounded)])
    assert not [finding for finding in findings if finding.broken]


def test_an_expectation_on_a_fact_that_is_not_there_is_broken_by_every_row(tmp_path: Path) -> None:
    gate = Gate(
        _suite(
            tmp_path,
            {"type": "expect_column_values_to_be_between", "kwargs": {"column": "c", "min_value": 0}},
        )
    )
    (finding,) = gate.judge([{"a": 1}, {"a": 2}])
    assert finding.broken == {0, 1}


def test_a_verdict_says_what_was_observed(tmp_path: Path) -> None:
    settings = {"column_A": "a", "column_B": "b"}
    gate = Gate(_suite(tmp_path, {"type": "expect_column_pair_values_to_be_equal", "kwargs": settings}))
    rows: list[Facts] = [{"a": 1, "b": 1, "c": 5}, {"a": 1, "b": None, "c": 5}]
    (finding,) = gate.judge(rows)
    good, bad = (finding.verdict(at, facts) for at, facts in enumerate(rows))
    assert good.expectation == bad.expectation == "expect_column_pair_values_to_be_equal(a, b)"
    assert (good.success, bad.success, json.loads(bad.observed)) == (True, False, {"a": 1, "b": None})


def _suite(folder: Path, *expectations: object) -> Path:
    path = folder / "own.json"
    path.write_text(json.dumps({"name": "own", "expectations": expectations}))
    return path
