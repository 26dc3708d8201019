"""One cluster: the numbers of its week and what happened in the minutes shown."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, date, datetime, time, timedelta
from enum import StrEnum
from zoneinfo import ZoneInfo

from fleetgauge_core.slo.levels import FLEET_COVERAGE
from fleetgauge_dashboards.links import MINUTE, BrokerView, ClusterView, MinuteView, Span, Window
from fleetgauge_dashboards.reader import ClusterWeek
from fleetgauge_dashboards.units import count, milliseconds, minutes, percent
from fleetgauge_dashboards.views.deciding_minutes import Row
from fleetgauge_dashboards.views.episodes import is_bad
from fleetgauge_dashboards.views.freshness import Age, Freshness
from fleetgauge_dashboards.views.minutes import COLUMNS
from fleetgauge_dashboards.views.weeks import shown_week

#: A view of a stretch of minutes.
OfMinutes = ClusterView | BrokerView

#: Bad minutes named one by one.
WORST = 10
#: What a click on a point of many minutes shows.
CLOSER = timedelta(hours=1)
_LEGIBLE = timedelta(minutes=15)


class Verdict(StrEnum):
    """A number against its objective."""

    MET = "met"
    MISSED = "missed"
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True)
class Number:
    """One number: its text, its verdict where it has an objective, and what stands beside it."""

    title: str
    value: str
    verdict: Verdict | None
    notes: tuple[str, ...]
    definition: str


def find_week(own: Sequence[ClusterWeek], day: date | None) -> ClusterWeek | None:
    """Of a cluster's weeks the one that has the day, or the newest if none is asked for."""
    week = shown_week([row.week for row in own], day)
    return next((row for row in own if row.week == week), None)


def settled(
    view: ClusterView, own: Sequence[ClusterWeek], zone: str, until: datetime
) -> tuple[ClusterView, ClusterWeek | None]:
    """The view with the minutes of its week, and the week of its minutes: each follows from the other.

    A week alone shows all of its minutes up to ``until``, minutes alone the week in which they begin.
    """
    if view.week is not None:
        week = find_week(own, view.week)
        if week is None or not isinstance(view.shown, Window):
            return view, week
        whole = week_span(week.week, zone)
        return replace(view, shown=Span(whole.start, max(whole.start + MINUTE, min(whole.end, until)))), week
    newest = find_week(own, None)
    if isinstance(view.shown, Window):
        return view, newest
    begun = find_week(own, view.shown.start.astimezone(ZoneInfo(zone)).date())
    return view, begun or newest


def numbers(week: ClusterWeek) -> tuple[Number, ...]:
    """The four that a review asks for first."""
    left, budget = week.latency_budget_left_minutes, week.latency_budget_minutes
    spent, allowed = week.availability_spent_minutes, week.availability_budget_minutes
    return (
        Number(
            "Latency p99",
            milliseconds(week.latency_p99_us),
            verdict(left is None, (left or 0) >= 0),
            (
                f"objective: 99% of minutes ≤ {milliseconds(week.latency_objective_us)}",
                f"failures counted: {milliseconds(week.latency_p99_censored_us)}",
            ),
            "latency_p99",
        ),
        Number(
            "Latency budget left",
            minutes(left),
            verdict(left is None, (left or 0) >= 0),
            (
                f"of {minutes(budget)} {'in the week' if week.closed else 'so far'}",
                count(week.bad_minutes or 0, "bad minute"),
            ),
            "latency_budget",
        ),
        Number(
            "Availability",
            percent(week.availability_ratio),
            verdict(
                week.availability_ratio is None or week.availability_objective is None,
                (week.availability_ratio or 0) >= (week.availability_objective or 0),
            ),
            (
                f"objective {percent(week.availability_objective)}",
                f"budget spent: {minutes(spent)} of {minutes(allowed)}",
            ),
            "availability_ratio",
        ),
        Number(
            "Coverage",
            percent(week.coverage, 2),
            verdict(week.coverage is None, (week.coverage or 0) >= FLEET_COVERAGE),
            (
                "counts in the fleet from 90% on",
                f"{week.minutes_measured or 0:,} of {week.minutes_expected or 0:,} minutes measured",
            ),
            "coverage",
        ),
    )


def verdict(unknown: bool, met: bool) -> Verdict:
    if unknown:
        return Verdict.UNKNOWN
    return Verdict.MET if met else Verdict.MISSED


def span_shown(view: OfMinutes, fresh: Freshness, now: datetime) -> Span:
    """The minutes to draw: those asked for, or the newest.

    A moving window ends with the data, unless the data is late: then it ends
    now, so that the lateness shows as a gap at the right.
    """
    if not isinstance(view.shown, Window):
        return view.shown
    end = newest_end(fresh, now)
    return Span(end - view.shown.length, end)


def newest_end(fresh: Freshness, now: datetime) -> datetime:
    """Where moving windows end."""
    return fresh.until if fresh.until and fresh.state is not Age.STALE else _minute_after(now)


def from_begin(view: OfMinutes, span: Span, first: datetime | None) -> Span:
    """A moving window over a young cluster starts with its first minute.

    Every expected minute has a row, so what lies before the ``first`` row was never
    expected and must not look like a gap. A quarter of an hour stays, to be legible.
    """
    if not isinstance(view.shown, Window) or first is None:
        return span
    return Span(max(span.start, min(first, span.end - _LEGIBLE)), span.end)


def zoomed(view: OfMinutes, moved: Mapping[str, object]) -> OfMinutes | None:
    """The view at the minutes to which a chart was dragged; None if its time axis did not move."""
    try:
        start, end = (
            datetime.fromisoformat(str(moved[f"xaxis.range[{i}]"])).replace(
                tzinfo=UTC, second=0, microsecond=0
            )
            for i in (0, 1)
        )
        span = Span(start, end + MINUTE)
    except (KeyError, ValueError):
        return None
    return replace(view, shown=span)


def clicked(view: OfMinutes, x: str) -> MinuteView | OfMinutes | None:
    """To where a click on a chart's point leads: its minute, or closer to it where a point is many."""
    try:
        at = datetime.fromisoformat(x).replace(tzinfo=UTC, second=0, microsecond=0)
        if _length(view) <= COLUMNS * MINUTE:
            return MinuteView(view.cluster_id, at, lens=view.lens)
        return replace(view, shown=Span(at - CLOSER / 2, at + CLOSER / 2))
    except (ValueError, OverflowError):
        return None


def _length(view: OfMinutes) -> timedelta:
    if not isinstance(view.shown, Window):
        return view.shown.end - view.shown.start
    of_week = isinstance(view, ClusterView) and view.week is not None
    return timedelta(days=7) if of_week else view.shown.length


def week_span(week: date, zone: str) -> Span:
    """The week's minutes: seven days of the fleet's zone, whatever the clocks do between."""
    here = ZoneInfo(zone)
    first, last = (datetime.combine(day, time(), here) for day in (week, week + timedelta(days=7)))
    return Span(first.astimezone(UTC), last.astimezone(UTC))


def worst_minutes(rows: Sequence[Row], objective_us: int | None) -> tuple[Row, ...]:
    """The bad ones of silver's cluster-minutes, the slowest first and then the newest."""
    bad = (row for row in rows if is_bad(row, objective_us))
    newest = sorted(bad, key=lambda row: row["minute"], reverse=True)
    return tuple(sorted(newest, key=lambda row: -int(row["latency_p99_censored_us"]))[:WORST])


def _minute_after(now: datetime) -> datetime:
    whole = now.replace(second=0, microsecond=0)
    return whole if whole == now else whole + MINUTE
