"""Which days of a lake may go."""

from datetime import UTC, date, datetime, timedelta
from pathlib import Path

from fleetgauge_core.lake.expiry import Keeping, first_kept_days
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
KEEPING = Keeping(timedelta(days=10), timedelta(days=20))
OLD = date(2026, 3, 2)


def _kept(lake: Path, keeping: Keeping = KEEPING) -> dict[Table, date]:
    return dict(first_kept_days(str(lake), WEEKS, {"orders"}, CLOCK, keeping))


def _weeks(lake: Path, *revisions: tuple[str, int]) -> None:
    put(
        lake,
        CLUSTER_WEEKS,
        [{"cluster_id": cluster, "week": OLD, "revision": revision} for cluster, revision in revisions],
    )


def test_samples_and_minutes_go_by_their_own_age(tmp_path: Path) -> None:
    of_minutes = date(2026, 3, 26)
    kept = {PROBE_MINUTES: date(2026, 4, 5), BROKER_MINUTES: of_minutes, CLUSTER_MINUTES: of_minutes}
    assert _kept(tmp_path) == kept
    _weeks(tmp_path, ("orders", 0), ("orders", 1))
    assert _kept(tmp_path) == kept


def test_a_week_that_may_still_get_late_records_stays_whole(tmp_path: Path) -> None:
    day = timedelta(days=1)
    assert _kept(tmp_path, Keeping(day, day))[PROBE_MINUTES] == date(2026, 4, 13)
    still_open = first_kept_days(
        str(tmp_path), WEEKS, (), CLOCK - timedelta(days=1, seconds=1), Keeping(day, day)
    )
    assert still_open[PROBE_MINUTES] == date(2026, 4, 6)


def test_a_week_that_was_never_closed_stays_unless_its_cluster_has_left_the_fleet(tmp_path: Path) -> None:
    _weeks(tmp_path, ("gone", 0))
    assert _kept(tmp_path)[PROBE_MINUTES] > OLD
    _weeks(tmp_path, ("orders", 0))
    assert set(_kept(tmp_path).values()) == {OLD}


def test_a_week_that_is_held_back_stays(tmp_path: Path) -> None:
    put(tmp_path, QUALITY, [{"check_id": "a", "success": True, "week": OLD}])
    assert _kept(tmp_path)[CLUSTER_MINUTES] > OLD
    put(
        tmp_path,
        QUALITY,
        [{"check_id": "b", "success": False, "week": OLD}, {"check_id": "c", "success": False}],
    )
    assert set(_kept(tmp_path).values()) == {OLD}
