"""Convert the state of a page, a frozen view, to a URL and back.

Times in URLs are absolute and in UTC, whichever time zone the page shows. Parsing never fails on a query
string: a malformed value counts as absent.
"""

import re
from collections.abc import Mapping
from dataclasses import KW_ONLY, dataclass, replace
from datetime import UTC, date, datetime, timedelta
from enum import StrEnum
from urllib.parse import parse_qsl, quote, unquote, urlencode

from fleetgauge_core.contract import Leg
from fleetgauge_dashboards.path_prefix import remove_prefix
from fleetgauge_dashboards.times import is_time_zone

MINUTE = timedelta(minutes=1)
#: The longest time range that a page shows: a week in which clocks go back.
MAX_SPAN = timedelta(days=7, hours=1)
_DIGITS = re.compile(r"\d{1,10}", re.ASCII)
#: Kafka's broker ids are non-negative 32-bit integers.
_BROKER_IDS = range(2**31)
#: Years that are accepted; the calendar module fails outside of them.
_YEARS = range(1970, 9999)


class Window(StrEnum):
    """A time range of fixed length that ends with the newest data."""

    HOUR = "1h"
    SIX_HOURS = "6h"
    DAY = "24h"
    WEEK = "7d"

    @property
    def length(self) -> timedelta:
        """The length of the time range."""
        return {"1h": timedelta(hours=1), "6h": timedelta(hours=6), "24h": timedelta(days=1)}.get(
            self.value, timedelta(days=7)
        )


@dataclass(frozen=True, slots=True)
class Span:
    """A fixed time range from ``start`` up to, not including, ``end``; whole seconds, UTC."""

    start: datetime
    end: datetime

    def __post_init__(self) -> None:
        if not timedelta(0) < self.end - self.start <= MAX_SPAN:
            raise ValueError(f"a time range must be longer than 0 and at most {MAX_SPAN}")


@dataclass(frozen=True, slots=True)
class DisplayOptions:
    """Options that apply to any page and are carried by every link.

    ``fleet`` is the name of a served fleet, None for the first. ``zone`` is the time zone of displayed times,
    None for the fleet's. ``wall`` hides controls, for a wall screen. ``prefix`` is the path below which the
    pages are served (`path_prefix`); it is no part of the query.
    """

    fleet: str | None = None
    zone: str | None = None
    wall: bool = False
    prefix: str = ""


#: The first fleet, in its own time zone.
DEFAULT_DISPLAY = DisplayOptions()


@dataclass(frozen=True, slots=True)
class FleetView:
    """The fleet in a week, None for the newest; its table lists clusters whose id contains ``search``.

    ``by`` is a segment such as region. Without ``value`` the page shows the quantiles of each of its values,
    with ``value`` only the clusters that have it.
    """

    week: date | None = None
    search: str | None = None
    by: str | None = None
    value: str | None = None
    _: KW_ONLY
    display: DisplayOptions = DEFAULT_DISPLAY


@dataclass(frozen=True, slots=True)
class ClusterView:
    """A cluster: a week's service levels, and charts over a time range."""

    cluster_id: str
    week: date | None = None
    shown: Window | Span = Window.HOUR
    leg: Leg = Leg.CLIENT
    _: KW_ONLY
    display: DisplayOptions = DEFAULT_DISPLAY


@dataclass(frozen=True, slots=True)
class BrokerView:
    """A broker of a cluster over a time range."""

    cluster_id: str
    broker_id: int
    shown: Window | Span = Window.HOUR
    _: KW_ONLY
    display: DisplayOptions = DEFAULT_DISPLAY


@dataclass(frozen=True, slots=True)
class MinuteView:
    """A minute of a cluster with its samples; ``minute`` is its start in UTC."""

    cluster_id: str
    minute: datetime
    _: KW_ONLY
    display: DisplayOptions = DEFAULT_DISPLAY

    @property
    def span(self) -> Span:
        """The minute as a time range."""
        return Span(self.minute, self.minute + MINUTE)


@dataclass(frozen=True, slots=True)
class WhyView:
    """The explanation of a cluster's week, None for the newest."""

    cluster_id: str
    week: date | None = None
    _: KW_ONLY
    display: DisplayOptions = DEFAULT_DISPLAY


@dataclass(frozen=True, slots=True)
class AlertsView:
    """The alerts of all clusters or of one, with at most one alert expanded."""

    cluster_id: str | None = None
    alert_id: str | None = None
    _: KW_ONLY
    display: DisplayOptions = DEFAULT_DISPLAY


@dataclass(frozen=True, slots=True)
class RecoveryView:
    """Readiness for a failover to another region, and the mirrors' RPO over a time range."""

    window: Window = Window.DAY
    _: KW_ONLY
    display: DisplayOptions = DEFAULT_DISPLAY


@dataclass(frozen=True, slots=True)
class ReviewView:
    """The review of a week, None for the newest week that has ended."""

    week: date | None = None
    _: KW_ONLY
    display: DisplayOptions = DEFAULT_DISPLAY


@dataclass(frozen=True, slots=True)
class QualityView:
    """Data quality: quarantined records, late records, failed checks and revised weeks."""

    _: KW_ONLY
    display: DisplayOptions = DEFAULT_DISPLAY


#: The views of pages with their own content.
PageView = (
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
    """The rows behind a part of a page, such as a chart, as a table."""

    source: PageView
    part: str

    @property
    def display(self) -> DisplayOptions:
        """The display options of the page that the table belongs to."""
        return self.source.display


View = PageView | TableView


def with_display(view: View, display: DisplayOptions) -> View:
    """Return the view with other display options."""
    return (
        TableView(replace(view.source, display=display), view.part)
        if isinstance(view, TableView)
        else replace(view, display=display)
    )


def href(view: View) -> str:
    """Return the URL of a view; default values are left out of the query."""
    return f"{view.display.prefix}{_href_below_prefix(view)}"


def _href_below_prefix(view: View) -> str:
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
        case TableView(source, part):
            # The display options are part of the source's URL.
            return _with_query("/table", {"of": _href_below_prefix(source), "part": part})
    return _with_query(path, _display_query(view.display) | query)


def csv_href(view: PageView, part: str) -> str:
    """Return the URL of the rows behind a part of a page as a CSV file."""
    return f"{view.display.prefix}/csv?{urlencode({'of': _href_below_prefix(view), 'part': part})}"


def parse_view(pathname: str, search: str, prefix: str = "") -> View | None:
    """Return the view of a URL's path and query, or None if there is no such page.

    The path may begin with the prefix or be below it already.
    """
    query = dict(parse_qsl(search.removeprefix("?"), keep_blank_values=True))
    display = replace(_parse_display(query), prefix=prefix)
    match remove_prefix(pathname, prefix).split("/"):
        case ["", ""]:
            return _parse_fleet(query, display)
        case ["", "cluster", segment, *rest] if segment:
            return _parse_cluster(unquote(segment), rest, query, display)
        case ["", "alerts"]:
            return AlertsView(query.get("cluster") or None, query.get("alert") or None, display=display)
        case ["", "recovery"]:
            return RecoveryView(_parse_window(query, Window.DAY), display=display)
        case ["", "review"]:
            return ReviewView(_parse_day(query.get("week")), display=display)
        case ["", "quality"]:
            return QualityView(display=display)
        case ["", "table"]:
            return parse_table_view(query, prefix)
        case _:
            return None


def _parse_fleet(query: Mapping[str, str], display: DisplayOptions) -> FleetView:
    by = query.get("by") or None
    value = query.get("value") if by else None
    return FleetView(_parse_day(query.get("week")), query.get("q") or None, by, value, display=display)


def parse_table_view(query: Mapping[str, str], prefix: str = "") -> TableView | None:
    """Return the view of the query keys ``of``, a page's URL, and ``part``; None if there is no such page."""
    pathname, _, search = query.get("of", "").partition("?")
    is_table = remove_prefix(pathname, prefix) == "/table"
    source = None if is_table else parse_view(pathname, search, prefix)
    if source is None or isinstance(source, TableView):
        return None
    return TableView(source, query.get("part", ""))


def _parse_cluster(
    cluster_id: str, rest: list[str], query: dict[str, str], display: DisplayOptions
) -> View | None:
    """Return the view of a cluster page or a page below it; ``rest`` is the path after the cluster id."""
    match rest:
        case []:
            week, shown = _parse_day(query.get("week")), _parse_shown(query)
            leg = Leg.LEADER if query.get("leg") == Leg.LEADER else Leg.CLIENT
            return ClusterView(cluster_id, week, shown, leg, display=display)
        case ["broker", broker] if _DIGITS.fullmatch(broker) and int(broker) in _BROKER_IDS:
            return BrokerView(cluster_id, int(broker), _parse_shown(query), display=display)
        case ["minute", text] if (at := _parse_instant(unquote(text))) is not None:
            return MinuteView(cluster_id, at.replace(second=0), display=display)
        case ["why"]:
            return WhyView(cluster_id, _parse_day(query.get("week")), display=display)
        case _:
            return None


def _display_query(display: DisplayOptions) -> dict[str, str | None]:
    return {"fleet": display.fleet, "zone": display.zone, "wall": "1" if display.wall else None}


def _parse_display(query: dict[str, str]) -> DisplayOptions:
    zone = query.get("zone")
    return DisplayOptions(
        fleet=query.get("fleet") or None,
        zone=zone if zone and is_time_zone(zone) else None,
        wall=query.get("wall") == "1",
    )


def _with_query(path: str, query: dict[str, str | None]) -> str:
    present = {key: value for key, value in query.items() if value is not None}
    return f"{path}?{urlencode(present, quote_via=quote, safe=':/')}" if present else path


def _segment(text: str) -> str:
    """Return a quoted path segment. Segments of only dots are escaped, or browsers would resolve them."""
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
    """Return an RFC 3339 instant in whole seconds, or None if malformed; without an offset it is UTC."""
    try:
        at = datetime.fromisoformat(text) if text else None
        if at is None:
            return None
        at = at.replace(tzinfo=at.tzinfo or UTC).astimezone(UTC).replace(microsecond=0)
        return at if at.year in _YEARS else None
    except (ValueError, OverflowError):
        return None
