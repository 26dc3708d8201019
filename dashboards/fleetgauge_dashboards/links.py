"""The URL is the state of a page: frozen views to paths and queries, and back.

Times are absolute and UTC, whichever zone they are shown in. Whatever a query
string holds, parsing gives a valid view: a key that is malformed counts as not given.
"""

import re
from collections.abc import Mapping
from dataclasses import KW_ONLY, dataclass, replace
from datetime import UTC, date, datetime, timedelta
from enum import StrEnum
from urllib.parse import parse_qsl, quote, unquote, urlencode

from fleetgauge_dashboards.times import is_zone

MINUTE = timedelta(minutes=1)
#: The longest stretch of minutes that a page draws.
LONGEST = timedelta(days=7, hours=1)  # a week whose clock goes back
_DIGITS = re.compile(r"\d{1,10}", re.ASCII)
#: As Kafka numbers brokers.
_BROKER_IDS = range(2**31)
#: Times outside are a typing error; beyond them calendars end.
_YEARS = range(1970, 9999)


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
class Lens:
    """Through what any page is looked at; it goes along with every link.

    ``fleet`` is the name of one of several that are served, None is the first. ``zone`` is whose local times
    are shown, None is the fleet's. ``wall`` is for a screen that nobody touches.
    """

    fleet: str | None = None
    zone: str | None = None
    wall: bool = False


#: The first fleet, in its own zone.
PLAIN = Lens()


@dataclass(frozen=True, slots=True)
class FleetView:
    """The fleet in one week, None is the newest; of its clusters those with ``search`` in their names.

    ``by`` is a segment, as region: the fleet divided by it, or of it the one ``value``.
    """

    week: date | None = None
    search: str | None = None
    by: str | None = None
    value: str | None = None
    _: KW_ONLY
    lens: Lens = PLAIN


@dataclass(frozen=True, slots=True)
class ClusterView:
    """One cluster: a week's numbers over a stretch of minutes."""

    cluster_id: str
    week: date | None = None
    shown: Window | Span = Window.HOUR
    leg: Leg = Leg.CLIENT
    _: KW_ONLY
    lens: Lens = PLAIN


@dataclass(frozen=True, slots=True)
class BrokerView:
    """One broker of a cluster over a stretch of minutes."""

    cluster_id: str
    broker_id: int
    shown: Window | Span = Window.HOUR
    _: KW_ONLY
    lens: Lens = PLAIN


@dataclass(frozen=True, slots=True)
class MinuteView:
    """One minute of a cluster, down to its samples; ``minute`` is its begin, UTC."""

    cluster_id: str
    minute: datetime
    _: KW_ONLY
    lens: Lens = PLAIN

    @property
    def span(self) -> Span:
        return Span(self.minute, self.minute + MINUTE)


@dataclass(frozen=True, slots=True)
class WhyView:
    """Why one week of a cluster is what it is; None is the newest."""

    cluster_id: str
    week: date | None = None
    _: KW_ONLY
    lens: Lens = PLAIN


@dataclass(frozen=True, slots=True)
class AlertsView:
    """All alerts or one cluster's, with at most one opened."""

    cluster_id: str | None = None
    alert_id: str | None = None
    _: KW_ONLY
    lens: Lens = PLAIN


@dataclass(frozen=True, slots=True)
class RecoveryView:
    """Whether another region could take over now, and how far mirrors were behind in the newest minutes."""

    window: Window = Window.DAY
    _: KW_ONLY
    lens: Lens = PLAIN


@dataclass(frozen=True, slots=True)
class ReviewView:
    """The review of one week; None is the newest that is over."""

    week: date | None = None
    _: KW_ONLY
    lens: Lens = PLAIN


@dataclass(frozen=True, slots=True)
class QualityView:
    """What was refused, what came late, what changed afterwards: how far the numbers can be trusted."""

    _: KW_ONLY
    lens: Lens = PLAIN


#: What is drawn, or told.
Drawn = (
    FleetView
    | ClusterView
    | BrokerView
    | MinuteView
    | WhyView
    | AlertsView
    | RecoveryView
    | ReviewView
    | QualityView
)


@dataclass(frozen=True, slots=True)
class TableView:
    """The numbers behind a part of a page, as a table: what a chart is to the eye."""

    of: Drawn
    part: str

    @property
    def lens(self) -> Lens:
        return self.of.lens


View = Drawn | TableView


def through(view: View, lens: Lens) -> View:
    """The same view, looked at otherwise."""
    return (
        TableView(replace(view.of, lens=lens), view.part)
        if isinstance(view, TableView)
        else replace(view, lens=lens)
    )


def href(view: View) -> str:
    """The address of a view; what is default stays out of it."""
    match view:
        case FleetView(week, search, by, value):
            path, query = "/", {"week": _day(week), "by": by, "value": value, "q": search}
        case ClusterView(cluster_id, week, shown, leg):
            path = f"/cluster/{_segment(cluster_id)}"
            query = {"week": _day(week), **_shown_query(shown), "leg": leg if leg is Leg.LEADER else None}
        case BrokerView(cluster_id, broker_id, shown):
            path, query = f"/cluster/{_segment(cluster_id)}/broker/{broker_id}", _shown_query(shown)
        case MinuteView(cluster_id, minute):
            path, query = f"/cluster/{_segment(cluster_id)}/minute/{_instant(minute)}", {}
        case WhyView(cluster_id, week):
            path, query = f"/cluster/{_segment(cluster_id)}/why", {"week": _day(week)}
        case AlertsView(cluster_id, alert_id):
            path, query = "/alerts", {"cluster": cluster_id, "alert": alert_id}
        case RecoveryView(window):
            path, query = "/recovery", _window_query(window, Window.DAY)
        case ReviewView(week):
            path, query = "/review", {"week": _day(week)}
        case QualityView():
            path, query = "/quality", {}
        case TableView(of, part):
            # The lens is in the address of what it is of.
            return _with_query("/table", {"of": href(of), "part": part})
    return _with_query(path, _lens_query(view.lens) | query)


def csv_href(view: Drawn, part: str) -> str:
    """The address of the numbers behind a part of a page, as a file."""
    return f"/csv?{urlencode({'of': href(view), 'part': part})}"


def parse(pathname: str, search: str) -> View | None:
    """The view at an address; None where no page is."""
    query = dict(parse_qsl(search.removeprefix("?"), keep_blank_values=True))
    lens = _parse_lens(query)
    match pathname.split("/"):
        case ["", ""]:
            return _parse_fleet(query, lens)
        case ["", "cluster", segment, *of] if segment:
            return _parse_cluster(unquote(segment), of, query, lens)
        case ["", "alerts"]:
            return AlertsView(query.get("cluster") or None, query.get("alert") or None, lens=lens)
        case ["", "recovery"]:
            return RecoveryView(_parse_window(query, Window.DAY), lens=lens)
        case ["", "review"]:
            return ReviewView(_parse_day(query.get("week")), lens=lens)
        case ["", "quality"]:
            return QualityView(lens=lens)
        case ["", "table"]:
            return parse_table(query)
        case _:
            return None


def _parse_fleet(query: Mapping[str, str], lens: Lens) -> FleetView:
    by = query.get("by") or None
    value = query.get("value") if by else None
    return FleetView(_parse_day(query.get("week")), query.get("q") or None, by, value, lens=lens)


def parse_table(query: Mapping[str, str]) -> TableView | None:
    """Of ``of``, a page's address, and ``part``; None where no page is."""
    pathname, _, search = query.get("of", "").partition("?")
    of = None if pathname == "/table" else parse(pathname, search)
    return None if of is None or isinstance(of, TableView) else TableView(of, query.get("part", ""))


def _parse_cluster(cluster_id: str, of: list[str], query: dict[str, str], lens: Lens) -> View | None:
    """A cluster's own page, or one below it."""
    match of:
        case []:
            week, shown = _parse_day(query.get("week")), _parse_shown(query)
            leg = Leg.LEADER if query.get("leg") == Leg.LEADER else Leg.CLIENT
            return ClusterView(cluster_id, week, shown, leg, lens=lens)
        case ["broker", broker] if _DIGITS.fullmatch(broker) and int(broker) in _BROKER_IDS:
            return BrokerView(cluster_id, int(broker), _parse_shown(query), lens=lens)
        case ["minute", text] if (at := _parse_instant(unquote(text))) is not None:
            return MinuteView(cluster_id, at.replace(second=0), lens=lens)
        case ["why"]:
            return WhyView(cluster_id, _parse_day(query.get("week")), lens=lens)
        case _:
            return None


def _lens_query(lens: Lens) -> dict[str, str | None]:
    return {"fleet": lens.fleet, "zone": lens.zone, "wall": "1" if lens.wall else None}


def _parse_lens(query: dict[str, str]) -> Lens:
    zone = query.get("zone")
    return Lens(
        fleet=query.get("fleet") or None,
        zone=zone if zone and is_zone(zone) else None,
        wall=query.get("wall") == "1",
    )


def _with_query(path: str, query: dict[str, str | None]) -> str:
    given = {key: value for key, value in query.items() if value is not None}
    return f"{path}?{urlencode(given, quote_via=quote, safe=':/')}" if given else path


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
    return _window_query(shown, Window.HOUR)


def _window_query(window: Window, default: Window) -> dict[str, str | None]:
    return {"window": None if window is default else window.value}


def _parse_shown(query: dict[str, str]) -> Window | Span:
    start, end = _parse_instant(query.get("from")), _parse_instant(query.get("to"))
    if start is not None and end is not None:
        try:
            return Span(start, end)
        except ValueError:
            return Window.HOUR
    return _parse_window(query, Window.HOUR)


def _parse_window(query: Mapping[str, str], default: Window) -> Window:
    try:
        return Window(query.get("window", default))
    except ValueError:
        return default


def _instant(at: datetime) -> str:
    return at.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def _parse_instant(text: str | None) -> datetime | None:
    """An RFC 3339 instant in whole seconds; one without an offset is UTC."""
    try:
        at = datetime.fromisoformat(text) if text else None
        if at is None:
            return None
        at = at.replace(tzinfo=at.tzinfo or UTC).astimezone(UTC).replace(microsecond=0)
        return at if at.year in _YEARS else None
    except (ValueError, OverflowError):
        return None
