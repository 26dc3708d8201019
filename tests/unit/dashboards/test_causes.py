"""Causes of a week, most minutes first; the chart keeps every minute."""

from datetime import date, timedelta

from hypothesis import given
from hypothesis import strategies as st

from fleetgauge_dashboards.figures.causes import BARS, pareto
from fleetgauge_dashboards.figures.theme import LIGHT
from fleetgauge_dashboards.views.causes import causes

WEEK, BEFORE = date(2026, 3, 2), date(2026, 2, 23)


def _row(week: date, cause: str, minutes: int) -> dict[str, object]:
    return {"week": week, "cause": cause, "bad_minutes": minutes, "clusters": 2}


def test_shares_are_of_the_week() -> None:
    rows = [
        _row(WEEK, "PATH", 1),
        _row(WEEK, "BROKER_DOWN", 3),
        _row(WEEK, "none", 0),
        _row(BEFORE - timedelta(days=7), "PATH", 100),
        _row(BEFORE, "PATH", 7),
    ]
    found = [(one.cause, one.bad_minutes, one.share, one.bad_minutes_before) for one in causes(rows, WEEK)]
    assert found == [("BROKER_DOWN", 3, 0.75, 0), ("PATH", 1, 0.25, 7)]


@given(st.lists(st.integers(1, 10_000), max_size=15))
def test_the_chart_keeps_every_minute(burned: list[int]) -> None:
    found = causes([_row(WEEK, f"c{n}", bad) for n, bad in enumerate(burned)], WEEK)
    (bars,) = pareto(found, LIGHT).data
    assert sum(bars.x) == sum(burned)
    assert len(bars.x) <= BARS
    if len(burned) > BARS:
        assert bars.y[-1] == f"{len(burned) - BARS + 1} others"
