"""Tests of which days of a lake are retained."""

from datetime import UTC, date, datetime, timedelta
from pathlib import Path

from fleetgauge_core.lake.expiry import RetentionPeriods, first_retained_days
from fleetgauge_core.slo.weeks import WeekCalendar
from fleetgauge_core.tables import (
    BROKER_MINUTES,
    CLUSTER_MINUTES,
    CLUSTER_WEEKS,
    PROBE_MINUTES,
    QUALITY,
    Table,
)
from tests.browser.lake import put

WEEKS = WeekCalendar("UTC", "monday")
CLOCK = datetime(2026, 4, 15, 12, tzinfo=UTC)
RETENTION = RetentionPeriods(timedelta(days=10), timedelta(days=20))
OLD = date(2026, 3, 2)


def _first_days(lake: Path, retention: RetentionPeriods = RETENTION) -> dict[Table, date]:
    return dict(first_retained_days(str(lake), WEEKS, {"orders"}, CLOCK, retention))


def _weeks(lake: Path, *revisions: tuple[str, int]) -> None:
    put(
        lake,
        CLUSTER_WEEKS,
        [{"cluster_id": cluster, "week": OLD, "revision": revision} for cluster, revision in revisions],
    )


def test_samples_and_minutes_expire_after_their_own_retention_periods(tmp_path: Path) -> None:
    first_minutes = date(2026, 3, 26)
    expected = {
        PROBE_MINUTES: date(2026, 4, 5),
        BROKER_MINUTES: first_minutes,
        CLUSTER_MINUTES: first_minutes,
    }
    assert _first_days(tmp_path) == expected
    _weeks(tmp_path, ("orders", 0), ("orders", 1))
    assert _first_days(tmp_path) == expected


def test_all_days_of_a_week_that_may_still_get_late_records_are_kept(tmp_path: Path) -> None:
    day = timedelta(days=1)
    assert _first_days(tmp_path, RetentionPeriods(day, day))[PROBE_MINUTES] == date(2026, 4, 13)
    first_days = first_retained_days(
        str(tmp_path), WEEKS, (), CLOCK - timedelta(days=1, seconds=1), RetentionPeriods(day, day)
    )
    assert first_days[PROBE_MINUTES] == date(2026, 4, 6)


def test_a_week_that_is_not_closed_is_kept_if_its_cluster_is_in_the_fleet(tmp_path: Path) -> None:
    _weeks(tmp_path, ("gone", 0))
    assert _first_days(tmp_path)[PROBE_MINUTES] > OLD
    _weeks(tmp_path, ("orders", 0))
    assert set(_first_days(tmp_path).values()) == {OLD}


def test_a_week_that_fails_a_quality_check_is_kept(tmp_path: Path) -> None:
    put(tmp_path, QUALITY, [{"check_id": "a", "success": True, "week": OLD}])
    assert _first_days(tmp_path)[CLUSTER_MINUTES] > OLD
    put(
        tmp_path,
        QUALITY,
        [{"check_id": "b", "success": False, "week": OLD}, {"check_id": "c", "success": False}],
    )
    assert set(_first_days(tmp_path).values()) == {OLD}
