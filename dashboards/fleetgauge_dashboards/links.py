"""The URL is the state of a page: frozen views to paths and queries, and back.

Times are absolute and UTC. Whatever a query string holds, parsing gives a
valid view: a key that is malformed counts as not given.
"""

from dataclasses import KW_ONLY, dataclass
from datetime import UTC, date, datetime, timedelta
from enum import StrEnum
from urllib.parse import parse_qsl, quote, unquote, urlencode

#: The longest stretch of minutes that a page draws.
LONGEST = timedelta(days=7, hours=1)  # a week whose clock goes back


class Leg(StrEnum):
    """What a client feels, or what the home broker alone does."""

    CLIENT = "client"
    LEADER = "leader"


class Window(StrEnum):
    """The newest minutes, moving with the clock."""

    HOUR = "1h"
    SIX_HOURS = "6h"
    DAY = "24h"
    WEEK = "7d"

    @property
    def length(self) -> timedelta:
        return {"1h": timedelta(hours=1), "6h": timedelta(hours=6), "24h": timedelta(days=1)}.get(
            self.value, timedelta(days=7)
        )


@dataclass(frozen=True, slots=True)
class Span:
    """Minutes from ``start`` up to, not including, ``end``; whole seconds, UTC."""

    start: datetime
    end: datetime

    def __post_init__(self) -> None:
        if not timedelta(0) < self.end - self.start <= LONGEST:
            raise ValueError(f"a span is longer than nothing and no longer than {LONGEST}")


@dataclass(frozen=True, slots=True)
class FleetView:
    """The fleet in one week, None is the newest; of its clusters those with ``search`` in their names."""

    week: date | None = None
    search: str | None = None
    _: KW_ONLY
    fleet: str | None = None


@dataclass(frozen=True, slots=True)
class ClusterView:
    """One cluster: a week's numbers over a stretch of minutes."""

    cluster_id: str
    week: date | None = None
    shown: Window | Span = Window.HOUR
    leg: Leg = Leg.CLIENT
    _: KW_ONLY
    fleet: str | None = None


@dataclass(frozen=True, slots=True)
class AlertsView:
    """All alerts or one cluster's, with at most one opened."""

    cluster_id: str | None = None
    alert_id: str | None = None
    _: KW_ONLY
    fleet: str | None = None


@dataclass(frozen=True, slots=True)
class ReviewView:
    """The review of one week; None is the newest that is over."""

    week: date | None = None
    _: KW_ONLY
    fleet: str | None = None


#: ``fleet`` is the name of one of several that are served; None is the first.
View = FleetView | ClusterView | AlertsView | ReviewView


def href(view: View) -> str:
    """The address of a view; what is default stays out of it."""
    match view:
        case FleetView(week, search):
            path, query = "/", {"week": _day(week), "q": search}
        case ClusterView(cluster_id, week, shown, leg):
            path = f"/cluster/{_segment(cluster_id)}"
            query = {"week": _day(week), **_shown_query(shown), "leg": leg if leg is Leg.LEADER else None}
        case AlertsView(cluster_id, alert_id):
            path, query = "/alerts", {"cluster": cluster_id, "alert": alert_id}
        case ReviewView(week):
            path, query = "/review", {"week": _day(week)}
    return _with_query(path, {"fleet": view.fleet, **query})


def parse(pathname: str, search: str) -> View | None:
    """The view at an address; None where no page is."""
    query = dict(parse_qsl(search.removeprefix("?"), keep_blank_values=True))
    fleet = query.get("fleet") or None
    match pathname.split("/"):
        case ["", ""]:
            return FleetView(_parse_day(query.get("week")), query.get("q") or None, fleet=fleet)
        case ["", "cluster", segment] if segment:
            return ClusterView(
                unquote(segment),
                _parse_day(query.get("week")),
                _parse_shown(query),
                Leg.LEADER if query.get("leg") == Leg.LEADER else Leg.CLIENT,
                fleet=fleet,
            )
        case ["", "alerts"]:
            return AlertsView(query.get("cluster") or None, query.get("alert") or None, fleet=fleet)
        case ["", "review"]:
            return ReviewView(_parse_day(query.get("week")), fleet=fleet)
        case _:
            return None


def _with_query(path: str, query: dict[str, str | None]) -> str:
    given = {key: value for key, value in query.items() if value is not None}
    return f"{path}?{urlencode(given, quote_via=quote, safe=':')}" if given else path


def _segment(text: str) -> str:
    """One path segment; dots alone would be walked up by a browser."""
    quoted = quote(text, safe="")
    return quoted.replace(".", "%2E") if set(text) == {"."} else quoted


def _day(week: date | None) -> str | None:
    return None if week is None else week.isoformat()


def _parse_day(text: str | None) -> date | None:
    try:
        return date.fromisoformat(text) if text else None
    except ValueError:
        return None


def _shown_query(shown: Window | Span) -> dict[str, str | None]:
    if isinstance(shown, Span):
        return {"from": _instant(shown.start), "to": _instant(shown.end)}
    return {"window": None if shown is Window.HOUR else shown.value}


def _parse_shown(query: dict[str, str]) -> Window | Span:
    start, end = _parse_instant(query.get("from")), _parse_instant(query.get("to"))
    if start is not None and end is not None:
        try:
            return Span(start, end)
        except ValueError:
            return Window.HOUR
    try:
        return Window(query.get("window", Window.HOUR))
    except ValueError:
        return Window.HOUR


def _instant(at: datetime) -> str:
    return at.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def _parse_instant(text: str | None) -> datetime | None:
    """An RFC 3339 instant in whole seconds; one without an offset is UTC."""
    try:
        at = datetime.fromisoformat(text) if text else None
        if at is None:
            return None
        return (at.replace(tzinfo=at.tzinfo or UTC)).astimezone(UTC).replace(microsecond=0)
    except (ValueError, OverflowError):
        return None
