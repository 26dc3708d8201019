"""Weeks that are held back."""

from datetime import timedelta

from fleetgauge_dashboards.reader import BrokenWeek
from fleetgauge_dashboards.views.held_back import HeldBack, held_back
from tests.unit.dashboards.frames import START, WEEK


def test_a_week_is_held_back_since_the_first_expectation_that_it_breaks() -> None:
    before, hour = WEEK - timedelta(days=7), timedelta(hours=1)
    broken = [
        BrokenWeek(before, START, "b"),
        BrokenWeek(WEEK, START + hour, "b"),
        BrokenWeek(WEEK, START, "a"),
    ]
    assert held_back(broken, {before}) == (
        HeldBack(WEEK, START, ("a", "b"), shown=False),
        HeldBack(before, START, ("b",), shown=True),
    )


def test_nothing_broken_is_nothing_held_back() -> None:
    assert held_back([], {WEEK}) == ()
