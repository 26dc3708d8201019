"""The recovery page shows the values of its tables; it is rendered without a browser."""

import csv
import io
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from flask.testing import FlaskClient

from fleetgauge_core import tables
from fleetgauge_dashboards.app import create_app
from fleetgauge_dashboards.figures.theme import LIGHT
from fleetgauge_dashboards.links import FleetView, RecoveryView, Window, csv_href
from fleetgauge_dashboards.pages import fleet, recovery
from fleetgauge_dashboards.pages.page import PageContext, PageNotice
from fleetgauge_dashboards.reader import LakeReader
from fleetgauge_dashboards.served_fleets import ServedFleet
from tests.browser import recovery_lake
from tests.browser.lake import put
from tests.browser.recovery_lake import GAP, MIRRORS, PAIRS, REGIONS, STALE_FOR, drill, group_minute
from tests.unit.dashboards.served import LOCAL_LOGIN, NOW, open_lake, visible_text

HALF = timedelta(seconds=30)
DAY = RecoveryView()


def build_fleet(root: Path) -> ServedFleet:
    return ServedFleet("fleet", str(root), regions=REGIONS, mirrors=MIRRORS, pairs=PAIRS)


def fill_page(root: Path, after: timedelta = HALF, view: RecoveryView = DAY) -> Any:
    context = PageContext(build_fleet(root), LakeReader(str(root)), lambda: NOW + after)
    return recovery.PAGE.fill(view, context, LIGHT)


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("recovery")
    recovery_lake.write(folder, NOW)
    return folder


def read_text(slot: object) -> str:
    """Return the visible text of a component without the help signs."""
    return " ".join(word for word in visible_text(slot).split() if word != "?")


def test_the_page_shows_the_age_of_its_data(root: Path) -> None:
    slots = fill_page(root)
    assert "newest minute ended 2026-03-05 12:00:00 UTC, 30 s before this page was rendered" in read_text(
        slots["recovery-title.children"]
    )
    assert slots["recovery-stale.children"] is None


def test_the_cards(root: Path) -> None:
    cards = [read_text(card) for card in fill_page(root)["recovery-cards.children"]]
    assert cards == [
        "Mirrors up to date 3 of 4 ▲ south to south-all: stalled",
        "Worst RPO now ✕ missed ≤ 12 min 10 s south to south-all; objective 5 min "
        "estimated by tracers of 3 of 4: 0.7 s",
        "Groups ready 3 of 5 ▲ billing ▲ returns",
        "Open findings 2 1 page, 1 ticket the oldest for 9 min 30 s",
        "Last drill ● READY 2 d 3 h ago by ada, executed north-all to south-all",
    ]


def test_a_failover_that_is_not_possible(root: Path) -> None:
    block = read_text(fill_page(root)["recovery-failovers.children"][0])
    for words in (
        "north-all to south-all ▲ NO reported until 2026-03-05 12:00:00 UTC",
        "1 of 3 groups not ready mirror south to south-all has stalled open finding: the mirror from",
        "Groups ready 2 of 3",
        "Read again, at most 1,920 records",
        "Lost, at most 29,760 records",
        "RTO, slowest group about 2.4 s 1 of 3 groups without an executed drill",
        "Mirrors into south-all 1 of 2 up to date ▲ south: stalled, silent for 12 min",
        "Producers reach the target region 1 of 1 ● north-apps to south: 11 of 12 acknowledged, p99 210 ms",
        "Capacity headroom after failover 35.0%",
        "1 group: replication has stalled",
        "Open findings 2 page: the mirror from south to south-all is 430 s behind",
        "Last drill ● READY 2026-03-03 09:00:00 UTC, executed 2 of 2 groups ready, by ada",
    ):
        assert words in block, words


def test_a_failover_with_unknown_conditions(root: Path) -> None:
    block = read_text(fill_page(root)["recovery-failovers.children"][1])
    assert "south-all to north-all ◌ UNKNOWN" in block
    assert "Lost, at most unknown RTO, slowest group unknown: no executed drill" in block
    assert "Last drill never" in block


def test_a_failover_that_is_possible(tmp_path: Path) -> None:
    recovery_lake.write(tmp_path, NOW - timedelta(minutes=STALE_FOR + 5))
    slots = fill_page(tmp_path, timedelta(minutes=-STALE_FOR - 5))
    assert "▲ NO" in read_text(slots["recovery-failovers.children"][0])
    put(
        tmp_path,
        tables.GROUP_MINUTES,
        [group_minute(active, passive, "only", NOW - timedelta(minutes=1)) for active, passive in PAIRS],
    )
    put(
        tmp_path,
        tables.MIRROR_MINUTES,
        [recovery_lake.mirror_minute(*between, NOW - timedelta(minutes=1)) for between in MIRRORS],
    )
    put(
        tmp_path,
        tables.PRODUCER_MINUTES,
        [recovery_lake.producer_minute(cluster, NOW - timedelta(minutes=1)) for cluster in REGIONS],
    )
    over = recovery_lake.finding(NOW, "MIRROR_BEHIND", "south", "south-all", opens=False)
    put(tmp_path, tables.RECOVERY_FINDINGS, [over])
    blocks = fill_page(tmp_path)["recovery-failovers.children"]
    assert "● YES" in read_text(blocks[0])
    assert "● YES" in read_text(blocks[1])


def test_every_number_has_a_help_sign(root: Path) -> None:
    blocks = visible_text(fill_page(root)["recovery-failovers.children"][0])
    assert blocks.count(" ? ") == 10


def test_stale_data_shows_a_banner_and_unknown_answers(root: Path) -> None:
    slots = fill_page(root, timedelta(minutes=40))
    assert (
        "STALE: no data from fleetgauge recover run since 2026-03-05 12:00:00 UTC. The values below are not "
        "current." in read_text(slots["recovery-stale.children"])
    )
    assert [read_text(card).count("unknown") for card in slots["recovery-cards.children"][:3]] == [1, 1, 1]
    for block in slots["recovery-failovers.children"]:
        assert "◌ UNKNOWN" in read_text(block)
        assert "values are from that time" in read_text(block)
    assert {trace.name for trace in slots["recovery-regions.figure"].data} == {"◌ unknown"}


def test_the_chart_ends_with_the_data_and_has_its_gap(root: Path) -> None:
    figure = fill_page(root)["recovery-rpo.figure"]
    assert list(figure.layout.xaxis.range) == ["2026-03-04 12:00:00", "2026-03-05 12:00:00"]
    (gap,) = [trace for trace in figure.data if trace.name == "not measured"]
    # From 10:31 on, in steps of five minutes.
    assert (list(gap.base), list(gap.x)) == (["2026-03-05 10:35:00"], [25 * 60_000])
    assert [note.text for note in figure.layout.annotations] == ["objective<br>5 min"]


def test_the_time_range_is_part_of_the_url(root: Path) -> None:
    slots = fill_page(root, view=RecoveryView(Window.WEEK))
    # Of a week, only as much as the lake has.
    assert slots["recovery-rpo.figure"].layout.xaxis.range[0] == "2026-03-04 10:00:00"
    hour = fill_page(root, view=RecoveryView(Window.HOUR))["recovery-rpo.figure"]
    assert hour.layout.xaxis.range[0] == "2026-03-05 11:00:00"
    assert "last 7d" in read_text(slots["recovery-window.children"])


def test_groups_are_listed_worst_first_with_reasons(root: Path) -> None:
    listed = read_text(fill_page(root)["recovery-groups.children"])
    assert (
        "billing north-all to south-all ▲ not ready replication has stalled; too many records would "
        "be lost 140 900 28,800 within 12 min 10 s 2.4 s 2026-03-05 11:48, 12 min 30 s" in listed
    )
    names = ("billing", "returns", "orders-checkout", "stock", "orders-mail")
    assert sorted(names, key=listed.index) == list(names)
    assert "returns south-all to north-all ◌ unknown – – – – –" in listed


def test_twenty_groups_of_drills_are_listed_and_the_rest_counted(root: Path) -> None:
    listed = read_text(fill_page(root)["recovery-drills.children"])
    assert (
        "2026-03-03 09:00:00 UTC ada north-all to south-all billing executed ● READY 350 352 3 420 ms 870 ms "
        "1,050 ms" in listed
    )
    assert "▲ NOT READY : the group has active members there" in listed
    assert listed.endswith("and 4 more: see the CSV file")


def test_weeks_show_quantiles_and_missed_objectives(root: Path) -> None:
    opened, closed = map(read_text, fill_page(root)["recovery-weeks.children"])
    assert opened.startswith("Week of Mon 02 Mar 2026, open, to date")
    assert "✓ 5 of 5 objectives met" in opened
    assert "RPO upper bound, p99 of minutes mirrors 1 min 46 s 3 min 11 s 3 min 32 s 4 1" in closed
    assert "2 of 5 objectives missed:" in closed
    assert "✕ south to south-all RPO upper bound, p99 of minutes mirror 6 min 52 s 5 min 99.8%" in closed


@pytest.mark.parametrize("has_tables", [False, True])
def test_a_lake_without_recovery_data_shows_the_next_steps(tmp_path: Path, has_tables: bool) -> None:
    lake = open_lake(tmp_path)
    for table in (tables.MIRROR_MINUTES, tables.GROUP_MINUTES, tables.DRILLS) if has_tables else ():
        put(tmp_path, table, [])
    notice = lake.fill(recovery.PAGE, RecoveryView())
    assert isinstance(notice, PageNotice)
    words = visible_text(list(notice.sentences))
    assert "recovery:" in words
    assert "fleetgauge recover run --config fleet.yaml" in words
    assert (tmp_path / "recovery").exists() == has_tables
    assert lake.fill(fleet.PAGE, FleetView())["fleet-grid.rowData"]


def test_drills_without_other_data_are_shown(tmp_path: Path) -> None:
    put(tmp_path, tables.DRILLS, [drill(NOW - timedelta(days=1), "billing")])
    slots = fill_page(tmp_path)
    assert "no data yet" in read_text(slots["recovery-title.children"])
    assert "no data from fleetgauge recover run yet" in read_text(slots["recovery-stale.children"])
    assert "no data about its consumer groups" in read_text(slots["recovery-failovers.children"][0])
    assert "billing" in read_text(slots["recovery-drills.children"])


@pytest.fixture
def client(root: Path) -> FlaskClient:
    return create_app([build_fleet(root)], LOCAL_LOGIN, clock=lambda: NOW + HALF).server.test_client()


@pytest.mark.parametrize(
    ("part", "rows"),
    [
        ("failovers", 2),
        ("findings", 2),
        ("mirrors", 4),
        ("rpo", 4 * (24 * 60 - len(GAP))),
        ("groups", 5),
        ("drills", 24),
        ("weeks", 18),
    ],
)
def test_the_rows_of_each_part_can_be_downloaded(client: FlaskClient, part: str, rows: int) -> None:
    response = client.get(csv_href(RecoveryView(), part))
    assert response.status_code == 200
    assert len(list(csv.DictReader(io.StringIO(response.text)))) == rows


def test_the_file_of_failovers_has_the_answer_and_its_reasons(client: FlaskClient) -> None:
    first, second = csv.DictReader(io.StringIO(client.get(csv_href(RecoveryView(), "failovers")).text))
    assert (first["answer"], second["answer"]) == ("NO", "NOBODY KNOWS")
    assert first["because"].startswith("1 of 3 groups not ready;mirror south to south-all has stalled;")
    assert first["reasons"] == "loss=1;stale=1"
    assert first["mirrors"] == "north=fresh;south=stands still"
    assert second["lost_at_most"] == ""
