"""The oracle's cluster-weeks, in worked examples."""

from datetime import UTC, date, datetime, timedelta
from typing import Any

import pytest

from fleetgauge_core.tables import CLUSTER_WEEKS
from tests.oracle.oracle import Row, Settings
from tests.oracle.week_rules import CORRECTED_COLUMNS, find_week, find_week_bounds
from tests.unit.oracle.conftest import MONDAY, Bench

WEEK_MINUTES = 10_080


def _week(bench: Bench, *records: dict[str, Any], **cluster: Any) -> Row:
    (row,) = bench.evaluate(*records, **cluster).cluster_weeks
    return row


def test_a_row_has_the_columns_of_the_table_and_equal_raw_twins(bench: Bench) -> None:
    row = _week(bench, bench.record())
    assert {*row} == {*CLUSTER_WEEKS.column_names} - {*CLUSTER_WEEKS.volatile}
    assert all(row[name] == row[f"{name}_raw"] for name in CORRECTED_COLUMNS)
    assert {f"{name}_raw" for name in CORRECTED_COLUMNS} == {name for name in row if name.endswith("_raw")}


def test_the_latency_budget_of_10080_minutes_is_100_8_minutes(bench: Bench) -> None:
    row = _week(bench, bench.record(0), bench.record(WEEK_MINUTES - 1))
    assert (row["minutes_expected"], row["minutes_measured"]) == (WEEK_MINUTES, 2)
    assert row["latency_budget_minutes"] == 100.8
    assert row["latency_budget_left_minutes"] == 100.8
    assert row["coverage"] == 2 / WEEK_MINUTES


@pytest.mark.parametrize(("objective", "budget_minutes"), [(0.9995, 5.04), (0.9999, 1.008)])
def test_the_availability_budget_is_the_share_of_the_week_that_the_objective_allows(
    bench: Bench, objective: float, budget_minutes: float
) -> None:
    row = _week(bench, bench.record(0), bench.record(WEEK_MINUTES - 1), availability_objective=objective)
    assert row["availability_budget_minutes"] == pytest.approx(budget_minutes, rel=1e-12)


@pytest.mark.parametrize(
    ("monday", "minutes"),
    [(date(2026, 3, 23), 10_020), (date(2026, 10, 19), 10_140), (date(2026, 6, 1), 10_080)],
)
def test_the_length_of_a_week_in_berlin_includes_clock_changes(
    bench: Bench, monday: date, minutes: int
) -> None:
    first, end = find_week_bounds(monday, Settings((), week_zone="Europe/Berlin"))
    assert (end - first) / timedelta(minutes=1) == minutes
    records = [bench.record(first), bench.record(end - timedelta(minutes=1)), bench.record(end)]
    week, following = bench.evaluate(*records, zone="Europe/Berlin").cluster_weeks
    assert (week["week"], week["minutes_expected"]) == (monday, minutes)
    assert (following["week"], following["minutes_expected"]) == (monday + timedelta(days=7), 1)


def test_a_week_may_start_on_another_day() -> None:
    settings = Settings((), week_zone="America/New_York", week_start="sunday")
    saturday_evening, sunday = datetime(2026, 3, 8, 4, 59, tzinfo=UTC), datetime(2026, 3, 8, 5, 0, tzinfo=UTC)
    assert find_week(saturday_evening, settings) == date(2026, 3, 1)
    assert find_week(sunday, settings) == date(2026, 3, 8)
    # Clocks go forward on that Sunday.
    first, end = find_week_bounds(date(2026, 3, 8), settings)
    assert end - first == timedelta(hours=167)


def test_a_minute_is_bad_if_its_censored_p99_is_over_the_objective(
    bench: Bench,
) -> None:
    row = _week(
        bench,
        bench.record(0, succeeded_us=[100_000] * 100),
        bench.record(1, succeeded_us=[100_001] * 100),
        bench.record(2, succeeded_us=[1] * 98, failed=2),
        bench.record(3, succeeded_us=[], failed=100),
    )
    assert (row["latency_objective_us"], row["bad_minutes"]) == (100_000, 3)
    assert row["latency_budget_left_minutes"] == 0.04 - 3


def test_an_outage_does_not_lower_the_weeks_latency(bench: Bench) -> None:
    row = _week(bench, *(bench.record(n) for n in range(99)), bench.record(99, succeeded_us=[], failed=100))
    assert row["latency_p99_us"] == 1_000
    assert row["latency_p99_censored_us"] == 1_000
    worse = _week(
        bench,
        *(bench.record(n) for n in range(98)),
        *(bench.record(n, succeeded_us=[], failed=100) for n in (98, 99)),
    )
    assert worse["latency_p99_us"] == 1_000
    assert worse["latency_p99_censored_us"] == 10_000_000


def test_the_weekly_levels_are_the_p99_of_its_minutes(
    bench: Bench,
) -> None:
    records = [bench.record(n, succeeded_us=[n + 1] * (1 + n), failed=99 - n) for n in range(50, 100)]
    records += [bench.record(n, succeeded_us=[n + 1] * 100) for n in range(50)]
    row = _week(bench, *records)
    assert (row["minutes_measured"], row["latency_p99_us"]) == (100, 99)
    assert row["availability_p99"] == 0.52


def test_spent_availability_is_the_sum_of_the_failed_shares_of_the_minutes(bench: Bench) -> None:
    row = _week(
        bench,
        bench.record(0, broker=1, succeeded_us=[1] * 90, failed=10),
        bench.record(0, broker=2),
        bench.record(1, succeeded_us=[], failed=100),
        bench.record(9),
    )
    assert row["availability_spent_minutes"] == pytest.approx(1.05, rel=1e-12)
    assert row["availability_ratio"] == 290 / 400
    # Minute 0 expects two brokers; minutes 1 to 9 expect one each, two of which are measured.
    assert row["coverage"] == 4 / 11
    assert (row["minutes_measured"], row["minutes_expected"]) == (3, 10)


def test_a_week_without_a_measurement_has_budgets_but_no_levels(bench: Bench) -> None:
    row = _week(bench, bench.record(9, leg="leader"), since=MONDAY)
    assert row["latency_p99_us"] is row["latency_p99_censored_us"] is None
    assert row["availability_p99"] is row["availability_ratio"] is None
    assert (row["bad_minutes"], row["availability_spent_minutes"], row["coverage"]) == (0, 0.0, 0.0)
    assert (row["minutes_expected"], row["latency_budget_minutes"]) == (10, 0.1)


def test_a_week_closes_exactly_48_hours_after_its_end(bench: Bench) -> None:
    closing = datetime(2026, 3, 11, tzinfo=UTC)
    (before,) = bench.evaluate(bench.record(), clock=closing - timedelta(seconds=1)).cluster_weeks
    (after,) = bench.evaluate(bench.record(), clock=closing).cluster_weeks
    assert (before["revision"], before["closed"], before["revision_reason"]) == (0, False, None)
    assert (after["revision"], after["closed"], after["revision_reason"]) == (1, True, "closed")
    assert after["week"] == date(2026, 3, 2)
    assert after["definition"] == "v1"


def test_a_cluster_whose_brokers_are_all_retired_has_no_week(bench: Bench) -> None:
    assert bench.evaluate(bench.record(), since=MONDAY, retired=frozenset({1})).cluster_weeks == []
