"""The oracle's corrections, in worked examples."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from tests.oracle.correction_rules import find_occurrences
from tests.oracle.oracle import ClusterSettings, Operations, Row, Settings
from tests.unit.oracle.conftest import MONDAY, Bench

NO_MINUTES = {"minutes_expected": 0, "minutes_measured": 0, "bad_minutes": 0, "latency_p99_us": None}


def _at(minute: float) -> datetime:
    return MONDAY + timedelta(minutes=minute)


def _correction(starts: float, ends: float, **more: Any) -> Row:
    """Return a correction, of cluster c by default."""
    return {
        "correction_id": "one",
        "scope": "cluster",
        "cluster_id": "c",
        "broker_id": None,
        "segment": None,
        "segment_value": None,
        "starts": _at(starts),
        "ends": _at(ends),
        "recurs": None,
        "recurs_until": None,
        "withdrawn_at": None,
    } | more


def _of_segment(starts: float, ends: float, segment: str, value: str) -> Row:
    scope = {"cluster_id": None, "segment": segment, "segment_value": value}
    return _correction(starts, ends, scope="segment", **scope)


def _of_broker(broker: int, starts: float, ends: float, **more: Any) -> Row:
    return _correction(starts, ends, scope="broker", broker_id=broker, **more)


def _week(bench: Bench, records: list[Row], *corrections: Row, **cluster: Any) -> Row:
    (row,) = bench.evaluate(*records, operations=Operations(corrections), **cluster).cluster_weeks
    return row


def _ten_minutes(bench: Bench) -> list[Row]:
    """Return records of minutes 0 to 9; minutes 3 and 4 are bad."""
    return [bench.record(n, succeeded_us=[200_000 if n in (3, 4) else 1_000] * 100) for n in range(10)]


def _has(row: Row, **levels: Any) -> bool:
    return all(row[name] == value for name, value in levels.items())


def test_a_cluster_correction_excludes_minutes_but_not_from_raw_columns_and_coverage(
    bench: Bench,
) -> None:
    row = _week(bench, _ten_minutes(bench), _correction(3, 5))
    assert _has(row, minutes_expected=8, minutes_measured=8, bad_minutes=0, latency_p99_us=1_000)
    assert _has(row, minutes_expected_raw=10, minutes_measured_raw=10, bad_minutes_raw=2)
    assert _has(row, latency_budget_minutes=0.08, latency_budget_minutes_raw=0.1, coverage=1.0)
    assert _has(row, latency_p99_us_raw=200_000, latency_p99_censored_us_raw=200_000, corrections="one")


@pytest.mark.parametrize(
    ("starts", "ends", "remaining"), [(3, 4, 9), (3.5, 4, 10), (3.5, 4.1, 9), (2.9, 3.1, 9), (10, 20, 10)]
)
def test_a_minute_is_excluded_if_it_starts_within_the_correction(
    bench: Bench, starts: float, ends: float, remaining: int
) -> None:
    row = _week(bench, _ten_minutes(bench), _correction(starts, ends))
    assert row["minutes_expected"] == remaining
    assert row["corrections"] == ("one" if remaining < 10 else "")


def test_withdrawn_corrections_and_those_of_other_clusters_exclude_nothing(bench: Bench) -> None:
    ineffective = [
        _correction(0, 9, withdrawn_at=_at(1)),
        _correction(0, 9, cluster_id="other"),
        _of_segment(0, 9, "cloud", "gcp"),
        _of_broker(9, 0, 9),
    ]
    assert _has(_week(bench, _ten_minutes(bench), *ineffective), minutes_expected=10, corrections="")


@pytest.mark.parametrize(
    "segment", [("cloud", "aws"), ("region", "eu"), ("tier", "gold"), ("team", "orders")], ids=str
)
def test_a_segment_correction_applies_to_each_cluster_of_the_segment(
    bench: Bench, segment: tuple[str, str]
) -> None:
    attributes = {"cloud": "aws", "region": "eu", "tier": "gold", "labels": {"team": "orders"}}
    row = _week(bench, _ten_minutes(bench), _of_segment(3, 5, *segment), **attributes)
    assert _has(row, minutes_expected=8, corrections="one")


def test_a_fully_excluded_week_keeps_its_row(bench: Bench) -> None:
    row = _week(bench, _ten_minutes(bench), _correction(0, 10))
    assert _has(row, **NO_MINUTES, coverage=1.0, latency_budget_minutes=0.0, availability_p99=None)
    assert _has(row, latency_p99_us_raw=200_000, minutes_expected_raw=10)


def test_a_broker_correction_recomputes_the_minute_from_the_other_brokers(bench: Bench) -> None:
    records = [
        bench.record(0, broker=1, succeeded_us=[5] * 98, failed=2, expected_brokers=[1, 2, 3]),
        bench.record(0, broker=2, succeeded_us=[7] * 99, failed=1),
    ]
    row = _week(bench, records, _of_broker(1, 0, 1))
    assert _has(row, latency_p99_us=7, latency_p99_censored_us=7, bad_minutes=0, minutes_expected=1)
    assert _has(row, availability_p99=0.99, availability_ratio=0.99, availability_ratio_raw=197 / 200)
    assert _has(row, latency_p99_censored_us_raw=10_000_000, bad_minutes_raw=1, coverage=2 / 3)
    assert row["availability_spent_minutes"] == pytest.approx(0.01)


def test_a_minute_remains_expected_if_its_remaining_brokers_are_not_measured(bench: Bench) -> None:
    row = _week(bench, [bench.record(0, expected_brokers=[1, 2])], _of_broker(1, 0, 1))
    assert _has(row, minutes_expected=1, minutes_measured=0, latency_p99_us=None, minutes_measured_raw=1)


def test_a_minute_with_all_brokers_excluded_is_excluded(bench: Bench) -> None:
    both = [_of_broker(broker, 0, 5, correction_id=f"of-{broker}") for broker in (2, 1)]
    row = _week(bench, [bench.record(0, expected_brokers=[1, 2])], *both)
    assert _has(row, **NO_MINUTES, corrections="of-1,of-2")


# --- Recurrence --------------------------------------------------------------


def _times(correction: Row, zone: str, last: datetime) -> list[tuple[datetime, datetime]]:
    settings = Settings((), week_zone=zone)
    minutes = [correction["starts"], last]
    occurrences = find_occurrences([correction], ClusterSettings("c"), settings, minutes)
    return [(occurrence.starts, occurrence.ends) for occurrence in occurrences]


def test_a_daily_correction_keeps_its_local_time_through_a_clock_change() -> None:
    """02:00 to 04:00 in Berlin; on the day of the clock change, 02:00 to 03:00 does not exist."""
    friday = datetime(2026, 3, 27, 1, 0, tzinfo=UTC)
    daily = _correction(0, 0) | {"starts": friday, "ends": friday + timedelta(hours=2), "recurs": "daily"}
    times = _times(daily, "Europe/Berlin", friday + timedelta(days=4))
    assert [(f"{starts:%d %H}", f"{ends:%H}") for starts, ends in times] == [
        ("27 01", "03"),
        ("28 01", "03"),
        ("29 01", "02"),
        ("30 00", "02"),
        ("31 00", "02"),
    ]


def test_a_weekly_correction_has_no_occurrence_at_or_after_its_end() -> None:
    weekly = _correction(0, 5, recurs="weekly", recurs_until=_at(3 * 10_080))
    times = [starts for starts, _ in _times(weekly, "UTC", MONDAY + timedelta(days=70))]
    assert times == [MONDAY, MONDAY + timedelta(days=7), MONDAY + timedelta(days=14)]


def test_a_recurring_correction_applies_to_later_weeks(bench: Bench) -> None:
    weekly = _correction(-4 * 10_080 + 3, -4 * 10_080 + 5, recurs="weekly")
    assert _has(_week(bench, _ten_minutes(bench), weekly), minutes_expected=8, bad_minutes=0)
