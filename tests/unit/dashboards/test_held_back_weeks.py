"""Weeks that the quality gate holds back."""

from datetime import timedelta

from fleetgauge_dashboards.reader import FailedWeekCheck
from fleetgauge_dashboards.views.held_back_weeks import HeldBackWeek, group_held_back_weeks
from tests.unit.dashboards.frames import START, WEEK


def test_a_week_is_held_back_since_its_first_failed_check() -> None:
    before, hour = WEEK - timedelta(days=7), timedelta(hours=1)
    checks = [
        FailedWeekCheck(before, START, "b"),
        FailedWeekCheck(WEEK, START + hour, "b"),
        FailedWeekCheck(WEEK, START, "a"),
    ]
    assert group_held_back_weeks(checks, {before}) == (
        HeldBackWeek(WEEK, START, ("a", "b"), has_earlier_result=False),
        HeldBackWeek(before, START, ("b",), has_earlier_result=True),
    )


def test_without_failed_checks_no_week_is_held_back() -> None:
    assert group_held_back_weeks([], {WEEK}) == ()
