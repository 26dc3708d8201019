"""A view goes to an address and comes back the same; no address can break a page."""

from datetime import UTC, date, datetime, timedelta
from urllib.parse import parse_qs, urlencode, urlsplit

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fleetgauge_dashboards.links import (
    LONGEST,
    AlertsView,
    BrokerView,
    ClusterView,
    Drawn,
    FleetView,
    Leg,
    Lens,
    MinuteView,
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
    parse,
    through,
)

names = st.text(st.characters(codec="utf-8"), min_size=1, max_size=40)
lenses = st.builds(
    Lens, st.none() | names, st.sampled_from([None, "UTC", "Europe/Berlin", "Asia/Kathmandu"]), st.booleans()
)
weeks = st.none() | st.dates()
instants = st.integers(0, 30_000_000_000).map(lambda second: datetime.fromtimestamp(second, UTC))
minutes = instants.map(lambda at: at.replace(second=0))
spans = st.builds(
    lambda start, seconds: Span(start, start + timedelta(seconds=seconds)),
    instants,
    st.integers(1, int(LONGEST.total_seconds())),
)
drawn: st.SearchStrategy[Drawn] = st.one_of(
    st.builds(FleetView, weeks, st.none() | names, lens=lenses),
    st.builds(FleetView, weeks, st.none(), names, st.none() | names, lens=lenses),
    st.builds(ClusterView, names, weeks, st.sampled_from(Window) | spans, st.sampled_from(Leg), lens=lenses),
    st.builds(BrokerView, names, st.integers(0, 2**31 - 1), st.sampled_from(Window) | spans, lens=lenses),
    st.builds(MinuteView, names, minutes, lens=lenses),
    st.builds(WhyView, names, weeks, lens=lenses),
    st.builds(QualityView, lens=lenses),
    st.builds(AlertsView, st.none() | names, st.none() | names, lens=lenses),
    st.builds(RecoveryView, st.sampled_from(Window), lens=lenses),
    st.builds(ReviewView, weeks, lens=lenses),
)
views: st.SearchStrategy[View] = drawn | st.builds(TableView, drawn, names)


@given(views)
def test_a_view_survives_its_address(view: View) -> None:
    path, _, query = href(view).partition("?")
    assert parse(path, query) == view
    assert parse(path, f"?{query}") == view


@given(views)
def test_an_address_stays_on_this_server(view: View) -> None:
    address = urlsplit(href(view))
    assert (address.scheme, address.netloc) == ("", "")
    assert address.path.startswith("/")
    assert not address.path.startswith("//")
    assert "/../" not in f"{address.path}/"


@given(st.text(max_size=60), st.text(max_size=120))
def test_any_address_gives_a_view_or_none(path: str, query: str) -> None:
    below = (f"/cluster/{path}", f"/cluster/c/broker/{path}", f"/cluster/c/minute/{path}", "/cluster/c/why")
    for pathname in (path, "/", *below, "/alerts", "/recovery", "/review", "/quality"):
        view = parse(pathname, query)
        assert view is None or parse(*_split(href(view))) == view


def _split(address: str) -> tuple[str, str]:
    path, _, query = address.partition("?")
    return path, query


@given(drawn, names)
def test_a_file_is_asked_for_by_the_address_of_its_page(view: Drawn, part: str) -> None:
    address = urlsplit(csv_href(view, part))
    assert address.path == "/csv"
    assert parse_qs(address.query) == {"of": [href(view)], "part": [part]}


@given(views, lenses)
def test_looked_at_otherwise_it_is_the_same_view(view: View, lens: Lens) -> None:
    other = through(view, lens)
    assert other.lens == lens
    assert through(other, view.lens) == view


@pytest.mark.parametrize("zone", ["", "Mars/Olympus", "../../etc/passwd", "/etc/passwd", "UTC\x00"])
def test_a_zone_that_is_none_counts_as_not_given(zone: str) -> None:
    assert parse("/alerts", urlencode({"zone": zone})) == AlertsView()


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
def test_below_a_cluster_only_pages_are_found(address: str) -> None:
    assert parse(address, "") is None


def test_defaults_stay_out_of_the_address() -> None:
    assert href(FleetView()) == "/"
    assert href(ClusterView("orders-eu")) == "/cluster/orders-eu"
    assert href(AlertsView()) == "/alerts"
    assert href(RecoveryView()) == "/recovery"


def test_the_minutes_of_recovery_are_a_days_unless_others_are_asked_for() -> None:
    assert href(RecoveryView(Window.WEEK)) == "/recovery?window=7d"
    assert parse("/recovery", "window=1h") == RecoveryView(Window.HOUR)
    assert parse("/recovery", "window=5y") == RecoveryView()


def test_the_fleet_is_in_the_address_unless_it_is_the_first() -> None:
    assert href(FleetView(date(2026, 3, 2), lens=Lens("history"))) == "/?fleet=history&week=2026-03-02"
    assert parse("/alerts", "fleet=") == AlertsView()


def test_an_address_reads_well() -> None:
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
def test_what_is_malformed_counts_as_not_given(query: str) -> None:
    assert parse("/cluster/a", query) == ClusterView("a")


def test_an_offset_is_turned_into_utc() -> None:
    view = parse("/cluster/a", "from=2026-03-02T12:00:00%2B02:00&to=2026-03-02T11:00:00Z")
    assert isinstance(view, ClusterView)
    assert view.shown == Span(datetime(2026, 3, 2, 10, tzinfo=UTC), datetime(2026, 3, 2, 11, tzinfo=UTC))


def test_no_page_is_no_view() -> None:
    assert parse("/cluster/", "") is None
    assert parse("/cluster/a/b", "") is None
    assert parse("/etc/passwd", "") is None
