"""The page of another region says what its tables say, asked without a browser."""

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
from fleetgauge_dashboards.identity import NoLogin
from fleetgauge_dashboards.links import FleetView, RecoveryView, Window, csv_href
from fleetgauge_dashboards.pages import fleet, recovery
from fleetgauge_dashboards.pages.page import Context, Notice
from fleetgauge_dashboards.reader import Lake
from fleetgauge_dashboards.served_fleets import ShownFleet
from tests.browser import recovery_lake
from tests.browser.lake import put
from tests.browser.recovery_lake import GAP, MIRRORS, PAIRS, REGIONS, STALE_FOR, drill, group_minute
from tests.unit.dashboards.served import NOW, said, served

HALF = timedelta(seconds=30)
DAY = RecoveryView()


def shown(root: Path) -> ShownFleet:
    return ShownFleet("fleet", str(root), regions=REGIONS, mirrors=MIRRORS, pairs=PAIRS)


def filled(root: Path, after: timedelta = HALF, view: RecoveryView = DAY) -> Any:
    context = Context(shown(root), Lake(str(root)), lambda: NOW + after)
    return recovery.PAGE.fill(view, context, LIGHT)


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    found = tmp_path_factory.mktemp("recovery")
    recovery_lake.write(found, NOW)
    return found


def text(slot: object) -> str:
    """Without the help signs."""
    return " ".join(word for word in said(slot).split() if word != "?")


def test_it_says_how_old_it_is(root: Path) -> None:
    found = filled(root)
    assert "newest minute ended 2026-03-05 12:00:00 UTC, 30 s before this was drawn" in text(
        found["recovery-title.children"]
    )
    assert found["recovery-stale.children"] is None


def test_the_cards(root: Path) -> None:
    cards = [text(card) for card in filled(root)["recovery-cards.children"]]
    assert cards == [
        "Mirrors up to date 3 of 4 ▲ south to south-all: stands still",
        "Worst RPO now ✕ missed ≤ 12 min 10 s south to south-all; objective 5 min "
        "estimated by tracers of 3 of 4: 0.7 s",
        "Groups ready 3 of 5 ▲ billing ▲ returns",
        "Open findings 2 1 page, 1 ticket the oldest for 9 min 30 s",
        "Last drill ● READY 2 d 3 h ago by ada, executed north-all to south-all",
    ]


def test_a_failover_that_could_not_be(root: Path) -> None:
    block = text(filled(root)["recovery-failovers.children"][0])
    for words in (
        "north-all to south-all ▲ NO told until 2026-03-05 12:00:00 UTC",
        "1 of 3 groups not ready the mirror south to south-all stands still open finding: the mirror from",
        "Groups ready 2 of 3",
        "Read again, at most 1,920 records",
        "Lost, at most 29,760 records",
        "RTO, slowest group about 2.4 s 1 of 3 groups never drilled",
        "Mirrors into south-all 1 of 2 up to date ▲ south: stands still, silent for 12 min",
        "Producers get through 1 of 1 ● north-apps into south: 11 of 12 acknowledged, p99 210 ms",
        "Headroom after taking over 35.0%",
        "1 group: the mirror stands still",
        "Open findings 2 page: the mirror from south to south-all is 430 s behind",
        "Last drill ● READY 2026-03-03 09:00:00 UTC, executed 2 of 2 groups, by ada",
    ):
        assert words in block, words


def test_a_failover_of_which_nobody_knows(root: Path) -> None:
    block = text(filled(root)["recovery-failovers.children"][1])
    assert "south-all to north-all ◌ NOBODY KNOWS" in block
    assert "Lost, at most nobody knows RTO, slowest group never drilled" in block
    assert "Last drill never" in block


def test_a_failover_that_could_be(tmp_path: Path) -> None:
    recovery_lake.write(tmp_path, NOW - timedelta(minutes=STALE_FOR + 5))
    found = filled(tmp_path, timedelta(minutes=-STALE_FOR - 5))
    assert "▲ NO" in text(found["recovery-failovers.children"][0])
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
        [recovery_lake.producer_minute(one, NOW - timedelta(minutes=1)) for one in REGIONS],
    )
    over = recovery_lake.finding(NOW, "MIRROR_BEHIND", "south", "south-all", opens=False)
    put(tmp_path, tables.RECOVERY_FINDINGS, [over])
    found = filled(tmp_path)["recovery-failovers.children"]
    assert "● YES" in text(found[0])
    assert "● YES" in text(found[1])


def test_every_number_has_a_help_sign(root: Path) -> None:
    blocks = said(filled(root)["recovery-failovers.children"][0])
    assert blocks.count(" ? ") == 10


def test_stale_is_said_loudly_and_nobody_knows(root: Path) -> None:
    found = filled(root, timedelta(minutes=40))
    assert (
        "STALE: recover run has not told anything since 2026-03-05 12:00:00 UTC. Nothing below is about now."
        in text(found["recovery-stale.children"])
    )
    assert [text(card).count("nobody knows") for card in found["recovery-cards.children"][:3]] == [1, 1, 1]
    for block in found["recovery-failovers.children"]:
        assert "◌ NOBODY KNOWS" in text(block)
        assert "numbers are from then" in text(block)
    assert {trace.name for trace in found["recovery-regions.figure"].data} == {"◌ nobody knows"}


def test_the_chart_ends_with_the_data_and_has_its_gap(root: Path) -> None:
    figure = filled(root)["recovery-rpo.figure"]
    assert list(figure.layout.xaxis.range) == ["2026-03-04 12:00:00", "2026-03-05 12:00:00"]
    (gap,) = [trace for trace in figure.data if trace.name == "not measured"]
    # From 10:31 on, in steps of five minutes.
    assert (list(gap.base), list(gap.x)) == (["2026-03-05 10:35:00"], [25 * 60_000])
    assert [note.text for note in figure.layout.annotations] == ["objective<br>5 min"]


def test_other_minutes_are_an_address_away(root: Path) -> None:
    found = filled(root, view=RecoveryView(Window.WEEK))
    # Of a week, as much as is held.
    assert found["recovery-rpo.figure"].layout.xaxis.range[0] == "2026-03-04 10:00:00"
    hour = filled(root, view=RecoveryView(Window.HOUR))["recovery-rpo.figure"]
    assert hour.layout.xaxis.range[0] == "2026-03-05 11:00:00"
    assert "last 7d" in text(found["recovery-window.children"])


def test_groups_are_listed_worst_first_with_words(root: Path) -> None:
    listed = text(filled(root)["recovery-groups.children"])
    assert (
        "billing north-all to south-all ▲ not ready the mirror stands still; more would be lost than the "
        "limit 140 900 28,800 within 12 min 10 s 2.4 s 2026-03-05 11:48, 12 min 30 s" in listed
    )
    names = ("billing", "returns", "orders-checkout", "stock", "orders-mail")
    assert sorted(names, key=listed.index) == list(names)
    assert "returns south-all to north-all ◌ nobody knows – – – – –" in listed


def test_twenty_groups_of_drills_are_listed_and_the_rest_counted(root: Path) -> None:
    listed = text(filled(root)["recovery-drills.children"])
    assert (
        "2026-03-03 09:00:00 UTC ada north-all to south-all billing executed ● READY 350 352 3 420 ms 870 ms "
        "1,050 ms" in listed
    )
    assert "▲ NOT READY : somebody reads in the group there" in listed
    assert listed.endswith("and 4 more: the file has them")


def test_weeks_tell_the_fleets_levels_and_who_missed(root: Path) -> None:
    opened, closed = map(text, filled(root)["recovery-weeks.children"])
    assert opened.startswith("Week of Mon 02 Mar 2026, open, to date")
    assert "✓ 5 of 5 objectives kept" in opened
    assert "RPO at most, p99 of minutes mirrors 1 min 46 s 3 min 11 s 3 min 32 s 4 1" in closed
    assert "2 of 5 objectives missed:" in closed
    assert "✕ south to south-all RPO at most, p99 of minutes mirror 6 min 52 s 5 min 99.8%" in closed


@pytest.mark.parametrize("made", [False, True])
def test_a_lake_in_which_nothing_is_told_says_how_to_begin(tmp_path: Path, made: bool) -> None:
    lake = served(tmp_path)
    for table in (tables.MIRROR_MINUTES, tables.GROUP_MINUTES, tables.DRILLS) if made else ():
        put(tmp_path, table, [])
    found = lake.fill(recovery.PAGE, RecoveryView())
    assert isinstance(found, Notice)
    words = said(list(found.sentences))
    assert "recovery:" in words
    assert "fleetgauge recover run --config fleet.yaml" in words
    assert (tmp_path / "recovery").exists() == made
    assert lake.fill(fleet.PAGE, FleetView())["fleet-grid.rowData"]


def test_drills_alone_are_shown_and_nobody_knows_the_rest(tmp_path: Path) -> None:
    put(tmp_path, tables.DRILLS, [drill(NOW - timedelta(days=1), "billing")])
    found = filled(tmp_path)
    assert "no minute was told yet" in text(found["recovery-title.children"])
    assert "has not told anything yet" in text(found["recovery-stale.children"])
    assert "nothing is told of its groups" in text(found["recovery-failovers.children"][0])
    assert "billing" in text(found["recovery-drills.children"])


@pytest.fixture
def client(root: Path) -> FlaskClient:
    return create_app([shown(root)], NoLogin("tester"), clock=lambda: NOW + HALF).server.test_client()


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
def test_its_numbers_come_as_files(client: FlaskClient, part: str, rows: int) -> None:
    answer = client.get(csv_href(RecoveryView(), part))
    assert answer.status_code == 200
    assert len(list(csv.DictReader(io.StringIO(answer.text)))) == rows


def test_the_file_of_failovers_has_the_answer_and_why(client: FlaskClient) -> None:
    first, second = csv.DictReader(io.StringIO(client.get(csv_href(RecoveryView(), "failovers")).text))
    assert (first["answer"], second["answer"]) == ("NO", "NOBODY KNOWS")
    assert first["because"].startswith("1 of 3 groups not ready;the mirror south to south-all stands still;")
    assert first["reasons"] == "loss=1;stale=1"
    assert first["mirrors"] == "north=fresh;south=stands still"
    assert second["lost_at_most"] == ""
