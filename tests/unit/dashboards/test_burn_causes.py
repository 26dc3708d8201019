"""Burn causes are ranked by bad minutes, and the chart shows every minute."""

from datetime import date, timedelta

from hypothesis import given
from hypothesis import strategies as st

from fleetgauge_dashboards.figures.causes import MAX_BARS, plot_burn_causes
from fleetgauge_dashboards.figures.theme import LIGHT
from fleetgauge_dashboards.views.causes import rank_burn_causes

WEEK, BEFORE = date(2026, 3, 2), date(2026, 2, 23)


def _row(week: date, cause: str, minutes: int) -> dict[str, object]:
    return {"week": week, "cause": cause, "bad_minutes": minutes, "clusters": 2}


def test_shares_are_of_the_weeks_bad_minutes() -> None:
    rows = [
        _row(WEEK, "PATH", 1),
        _row(WEEK, "BROKER_DOWN", 3),
        _row(WEEK, "none", 0),
        _row(BEFORE - timedelta(days=7), "PATH", 100),
        _row(BEFORE, "PATH", 7),
    ]
    causes = [
        (cause.cause, cause.bad_minutes, cause.share, cause.bad_minutes_before)
        for cause in rank_burn_causes(rows, WEEK)
    ]
    assert causes == [("BROKER_DOWN", 3, 0.75, 0), ("PATH", 1, 0.25, 7)]


@given(st.lists(st.integers(1, 10_000), max_size=15))
def test_the_chart_keeps_every_minute(bad_minutes: list[int]) -> None:
    causes = rank_burn_causes([_row(WEEK, f"c{number}", bad) for number, bad in enumerate(bad_minutes)], WEEK)
    (bars,) = plot_burn_causes(causes, LIGHT).data
    assert sum(bars.x) == sum(bad_minutes)
    assert len(bars.x) <= MAX_BARS
    if len(bad_minutes) > MAX_BARS:
        assert bars.y[-1] == f"{len(bad_minutes) - MAX_BARS + 1} others"
