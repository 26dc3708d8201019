"""Show one cluster: the numbers of its week, and the minutes in the span shown."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, date, datetime, time, timedelta
from enum import StrEnum
from zoneinfo import ZoneInfo

from fleetgauge_core.slo.levels import MIN_FLEET_COVERAGE
from fleetgauge_dashboards.links import MINUTE, BrokerView, ClusterView, MinuteView, Span, Window
from fleetgauge_dashboards.reader import ClusterWeek
from fleetgauge_dashboards.units import format_count, format_milliseconds, format_minutes, format_percent
from fleetgauge_dashboards.views.bad_periods import is_bad_minute
from fleetgauge_dashboards.views.deciding_minutes import Row
from fleetgauge_dashboards.views.freshness import DataAge, Freshness
from fleetgauge_dashboards.views.minutes import MAX_STEPS
from fleetgauge_dashboards.views.weeks import find_week_of_day

#: A view that shows a span of minutes.
MinutesView = ClusterView | BrokerView

#: Bad minutes that are listed individually.
WORST_MINUTES = 10
#: The span shown after a click on a point that stands for many minutes.
CLICK_ZOOM = timedelta(hours=1)
_LEGIBLE = timedelta(minutes=15)


class ObjectiveVerdict(StrEnum):
    """The result of comparing a number with its objective."""

    MET = "met"
    MISSED = "missed"
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True)
class KeyFigure:
    """A number on a page: its text, its verdict if it has an objective, notes, and its definition's id."""

    title: str
    value: str
    verdict: ObjectiveVerdict | None
    notes: tuple[str, ...]
    definition: str


def find_week(weeks: Sequence[ClusterWeek], day: date | None) -> ClusterWeek | None:
    """Return the cluster's week that contains the day, or the newest week if ``day`` is None."""
    week = find_week_of_day([row.week for row in weeks], day)
    return next((row for row in weeks if row.week == week), None)


def resolve_week_and_span(
    view: ClusterView, weeks: Sequence[ClusterWeek], zone: str, until: datetime
) -> tuple[ClusterView, ClusterWeek | None]:
    """Return the view with the minutes of its week, and the week of its minutes.

    A view of a week shows all of its minutes up to ``until``; a view of minutes shows the week in which they
    start.
    """
    if view.week is not None:
        week = find_week(weeks, view.week)
        if week is None or not isinstance(view.shown, Window):
            return view, week
        whole = week_span(week.week, zone)
        return replace(view, shown=Span(whole.start, max(whole.start + MINUTE, min(whole.end, until)))), week
    newest = find_week(weeks, None)
    if isinstance(view.shown, Window):
        return view, newest
    week_of_start = find_week(weeks, view.shown.start.astimezone(ZoneInfo(zone)).date())
    return view, week_of_start or newest


def week_key_figures(week: ClusterWeek) -> tuple[KeyFigure, ...]:
    """Return the four numbers that a review asks for first."""
    left, budget = week.latency_budget_left_minutes, week.latency_budget_minutes
    spent, allowed = week.availability_spent_minutes, week.availability_budget_minutes
    return (
        KeyFigure(
            "Latency p99",
            format_milliseconds(week.latency_p99_us),
            judge_objective(left is None, (left or 0) >= 0),
            (
                f"objective: 99% of minutes ≤ {format_milliseconds(week.latency_objective_us)}",
                f"with failures: {format_milliseconds(week.latency_p99_censored_us)}",
            ),
            "latency_p99",
        ),
        KeyFigure(
            "Latency budget left",
            format_minutes(left),
            judge_objective(left is None, (left or 0) >= 0),
            (
                f"of {format_minutes(budget)} {'in the week' if week.closed else 'so far'}",
                format_count(week.bad_minutes or 0, "bad minute"),
            ),
            "latency_budget",
        ),
        KeyFigure(
            "Availability",
            format_percent(week.availability_ratio),
            judge_objective(
                week.availability_ratio is None or week.availability_objective is None,
                (week.availability_ratio or 0) >= (week.availability_objective or 0),
            ),
            (
                f"objective {format_percent(week.availability_objective)}",
                f"budget spent: {format_minutes(spent)} of {format_minutes(allowed)}",
            ),
            "availability_ratio",
        ),
        KeyFigure(
            "Coverage",
            format_percent(week.coverage, 2),
            judge_objective(week.coverage is None, (week.coverage or 0) >= MIN_FLEET_COVERAGE),
            (
                "counted in fleet quantiles from 90%",
                f"{week.minutes_measured or 0:,} of {week.minutes_expected or 0:,} minutes measured",
            ),
            "coverage",
        ),
    )


def judge_objective(is_unknown: bool, is_met: bool) -> ObjectiveVerdict:
    """Return the verdict; UNKNOWN has precedence."""
    if is_unknown:
        return ObjectiveVerdict.UNKNOWN
    return ObjectiveVerdict.MET if is_met else ObjectiveVerdict.MISSED


def resolve_span(view: MinutesView, fresh: Freshness, now: datetime) -> Span:
    """Return the span to draw: the one asked for, or the newest minutes.

    A moving window ends with the data. If the data is stale it ends at ``now``, so that the delay shows as a
    gap.
    """
    if not isinstance(view.shown, Window):
        return view.shown
    end = moving_window_end(fresh, now)
    return Span(end - view.shown.length, end)


def moving_window_end(fresh: Freshness, now: datetime) -> datetime:
    """Return the time at which moving windows end."""
    return fresh.until if fresh.until and fresh.state is not DataAge.STALE else _minute_after(now)


def trim_to_first_minute(view: MinutesView, span: Span, first: datetime | None) -> Span:
    """Return the span of a moving window, cut to begin with the cluster's ``first`` minute.

    Every expected minute has a row, so earlier minutes were never expected and must not look like a gap. At
    least 15 minutes remain, so that a chart stays legible.
    """
    if not isinstance(view.shown, Window) or first is None:
        return span
    return Span(max(span.start, min(first, span.end - _LEGIBLE)), span.end)


def zoom_view(view: MinutesView, axis_change: Mapping[str, object]) -> MinutesView | None:
    """Return the view at the minutes to which a chart was zoomed; None if its time axis did not move."""
    try:
        start, end = (
            datetime.fromisoformat(str(axis_change[f"xaxis.range[{i}]"])).replace(
                tzinfo=UTC, second=0, microsecond=0
            )
            for i in (0, 1)
        )
        span = Span(start, end + MINUTE)
    except (KeyError, ValueError):
        return None
    return replace(view, shown=span)


def resolve_click(view: MinutesView, x: str) -> MinuteView | MinutesView | None:
    """Return the view that a click on a chart's point leads to.

    That is the point's minute, or a closer span where a point stands for many minutes; None if ``x`` is not a
    time.
    """
    try:
        at = datetime.fromisoformat(x).replace(tzinfo=UTC, second=0, microsecond=0)
        if _length(view) <= MAX_STEPS * MINUTE:
            return MinuteView(view.cluster_id, at, display=view.display)
        return replace(view, shown=Span(at - CLICK_ZOOM / 2, at + CLICK_ZOOM / 2))
    except (ValueError, OverflowError):
        return None


def _length(view: MinutesView) -> timedelta:
    if not isinstance(view.shown, Window):
        return view.shown.end - view.shown.start
    of_week = isinstance(view, ClusterView) and view.week is not None
    return timedelta(days=7) if of_week else view.shown.length


def week_span(week: date, zone: str) -> Span:
    """Return the week's minutes: seven calendar days in the fleet's time zone, whatever the clock changes."""
    local_zone = ZoneInfo(zone)
    first, last = (datetime.combine(day, time(), local_zone) for day in (week, week + timedelta(days=7)))
    return Span(first.astimezone(UTC), last.astimezone(UTC))


def worst_minutes(rows: Sequence[Row], objective_us: int | None) -> tuple[Row, ...]:
    """Return the bad rows of silver's cluster-minutes, slowest first, then newest first."""
    bad = (row for row in rows if is_bad_minute(row, objective_us))
    newest_first = sorted(bad, key=lambda row: row["minute"], reverse=True)
    return tuple(sorted(newest_first, key=lambda row: -int(row["latency_p99_censored_us"]))[:WORST_MINUTES])


def _minute_after(now: datetime) -> datetime:
    minute = now.replace(second=0, microsecond=0)
    return minute if minute == now else minute + MINUTE
