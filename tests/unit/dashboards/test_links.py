"""The URL of a view is parsed to the same view, and every URL can be parsed."""

from dataclasses import replace
from datetime import UTC, date, datetime, timedelta
from urllib.parse import parse_qs, urlencode, urlsplit

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fleetgauge_core.contract import Leg
from fleetgauge_dashboards.links import (
    MAX_SPAN,
    AlertsView,
    BrokerView,
    ClusterView,
    DisplayOptions,
    FleetView,
    MinuteView,
    PageView,
    QualityView,
    RecoveryView,
    ReviewView,
    Span,
    TableView,
    View,
    WhyView,
    Window,
    csv_href,
    href,
    parse_view,
    with_display,
)

names = st.text(st.characters(codec="utf-8"), min_size=1, max_size=40)
lenses = st.builds(
    DisplayOptions,
    st.none() | names,
    st.sampled_from([None, "UTC", "Europe/Berlin", "Asia/Kathmandu"]),
    st.booleans(),
    st.sampled_from(["", "/fleetgauge", "/ops/fleet.gauge"]),
)
weeks = st.none() | st.dates()
instants = st.integers(0, 30_000_000_000).map(lambda second: datetime.fromtimestamp(second, UTC))
minutes = instants.map(lambda at: at.replace(second=0))
spans = st.builds(
    lambda start, seconds: Span(start, start + timedelta(seconds=seconds)),
    instants,
    st.integers(1, int(MAX_SPAN.total_seconds())),
)
drawn: st.SearchStrategy[PageView] = st.one_of(
    st.builds(FleetView, weeks, st.none() | names, display=lenses),
    st.builds(FleetView, weeks, st.none(), names, st.none() | names, display=lenses),
    st.builds(
        ClusterView, names, weeks, st.sampled_from(Window) | spans, st.sampled_from(Leg), display=lenses
    ),
    st.builds(BrokerView, names, st.integers(0, 2**31 - 1), st.sampled_from(Window) | spans, display=lenses),
    st.builds(MinuteView, names, minutes, display=lenses),
    st.builds(WhyView, names, weeks, display=lenses),
    st.builds(QualityView, display=lenses),
    st.builds(AlertsView, st.none() | names, st.none() | names, display=lenses),
    st.builds(RecoveryView, st.sampled_from(Window), display=lenses),
    st.builds(ReviewView, weeks, display=lenses),
)
views: st.SearchStrategy[View] = drawn | st.builds(TableView, drawn, names)


@given(views)
def test_a_view_equals_the_parsed_view_of_its_url(view: View) -> None:
    path, _, query = href(view).partition("?")
    prefix = view.display.prefix
    assert parse_view(path, query, prefix) == view
    assert parse_view(path.removeprefix(prefix), f"?{query}", prefix) == view
    assert path.startswith(f"{prefix}/")


@given(views)
def test_a_url_stays_on_this_server(view: View) -> None:
    address = urlsplit(href(view))
    assert (address.scheme, address.netloc) == ("", "")
    assert address.path.startswith("/")
    assert not address.path.startswith("//")
    assert "/../" not in f"{address.path}/"


@given(st.text(max_size=60), st.text(max_size=120))
def test_parsing_any_url_gives_a_view_or_none(path: str, query: str) -> None:
    below = (f"/cluster/{path}", f"/cluster/c/broker/{path}", f"/cluster/c/minute/{path}", "/cluster/c/why")
    for pathname in (path, "/", *below, "/alerts", "/recovery", "/review", "/quality"):
        view = parse_view(pathname, query)
        assert view is None or parse_view(*_split(href(view))) == view


def _split(address: str) -> tuple[str, str]:
    path, _, query = address.partition("?")
    return path, query


@given(drawn, names)
def test_a_csv_url_contains_the_url_of_its_page(view: PageView, part: str) -> None:
    address = urlsplit(csv_href(view, part))
    below = with_display(view, replace(view.display, prefix=""))
    assert address.path == f"{view.display.prefix}/csv"
    assert parse_qs(address.query) == {"of": [href(below)], "part": [part]}


@given(views, lenses)
def test_display_options_can_be_replaced_and_restored(view: View, display: DisplayOptions) -> None:
    other = with_display(view, display)
    assert other.display == display
    assert with_display(other, view.display) == view


@pytest.mark.parametrize("zone", ["", "Mars/Olympus", "../../etc/passwd", "/etc/passwd", "UTC\x00"])
def test_an_unknown_time_zone_counts_as_absent(zone: str) -> None:
    assert parse_view("/alerts", urlencode({"zone": zone})) == AlertsView()


@pytest.mark.parametrize(
    "address",
    [
        "/cluster/c/broker/-1",
        "/cluster/c/broker/2147483648",
        "/cluster/c/broker/1/2",
        "/cluster/c/broker/٣",
        "/cluster/c/minute/",
        "/cluster/c/minute/9999-12-31T23:59:00Z",
        "/cluster/c/minute/0001-01-01T00:00:00Z",
        "/cluster/c/elsewhere",
    ],
)
def test_an_unknown_path_below_a_cluster_is_no_view(address: str) -> None:
    assert parse_view(address, "") is None


def test_default_values_are_left_out_of_the_url() -> None:
    assert href(FleetView()) == "/"
    assert href(ClusterView("orders-eu")) == "/cluster/orders-eu"
    assert href(AlertsView()) == "/alerts"
    assert href(RecoveryView()) == "/recovery"


def test_the_default_time_range_of_recovery_is_a_day() -> None:
    assert href(RecoveryView(Window.WEEK)) == "/recovery?window=7d"
    assert parse_view("/recovery", "window=1h") == RecoveryView(Window.HOUR)
    assert parse_view("/recovery", "window=5y") == RecoveryView()


def test_the_url_names_every_fleet_but_the_first() -> None:
    assert (
        href(FleetView(date(2026, 3, 2), display=DisplayOptions("history")))
        == "/?fleet=history&week=2026-03-02"
    )
    assert parse_view("/alerts", "fleet=") == AlertsView()


def test_urls_are_readable() -> None:
    span = Span(datetime(2026, 3, 2, 10, tzinfo=UTC), datetime(2026, 3, 2, 11, 30, tzinfo=UTC))
    view = ClusterView("orders-eu", date(2026, 3, 2), span, Leg.LEADER)
    assert href(view) == (
        "/cluster/orders-eu?week=2026-03-02&from=2026-03-02T10:00:00Z&to=2026-03-02T11:30:00Z&leg=leader"
    )


@pytest.mark.parametrize(
    "query",
    [
        "week=yesterday&window=5y&leg=wooden",
        "from=2026-03-02T11:00:00Z&to=2026-03-02T10:00:00Z",
        "from=2026-01-01T00:00:00Z&to=2026-12-31T00:00:00Z",
        "from=0001-01-01T00:00:00%2B23:00&to=9999-12-31T23:59:59-23:00",
        "from=2026-03-02T10:00:00Z",
    ],
)
def test_malformed_values_count_as_absent(query: str) -> None:
    assert parse_view("/cluster/a", query) == ClusterView("a")


def test_an_offset_is_converted_to_utc() -> None:
    view = parse_view("/cluster/a", "from=2026-03-02T12:00:00%2B02:00&to=2026-03-02T11:00:00Z")
    assert isinstance(view, ClusterView)
    assert view.shown == Span(datetime(2026, 3, 2, 10, tzinfo=UTC), datetime(2026, 3, 2, 11, tzinfo=UTC))


def test_an_unknown_path_is_no_view() -> None:
    assert parse_view("/cluster/", "") is None
    assert parse_view("/cluster/a/b", "") is None
    assert parse_view("/etc/passwd", "") is None
