"""YES only where all that counts is known and nothing speaks against it."""

from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from fleetgauge_dashboards.views.drills import drilled
from fleetgauge_dashboards.views.failover import Answer, Evidence, Known, answer, evidence, failovers
from fleetgauge_dashboards.views.findings import OpenFinding, open_findings
from fleetgauge_dashboards.views.freshness import STALE_AFTER
from fleetgauge_dashboards.views.mirrors import MirrorNow, MirrorState
from fleetgauge_dashboards.views.recovery_freshness import told_until
from tests.browser.recovery_lake import drill, finding
from tests.unit.dashboards.frames import START
from tests.unit.dashboards.recovery_frames import NOW, TOLD_NOW, UNTIL, group, mirror, producers

PAIR = ("north", "south")
LATER = NOW + STALE_AFTER


def _finding(kind: str, cluster_id: str, other_id: str = "", severity: str = "page") -> OpenFinding:
    (found,) = open_findings(
        [finding(START, kind, cluster_id, other_id, severity=severity, summary="a line")]
    )
    return found


WELL = Evidence(
    active="north",
    passive="south",
    told=TOLD_NOW,
    out_of_sight=frozenset(),
    groups=3,
    ready=3,
    unknown=0,
    replay_at_most=900,
    lost_at_most=480,
    rto_ms=2_340,
    never_drilled=0,
    reasons=(),
    mirrors=(mirror(),),
    producers=(producers(),),
    headroom=0.2,
    has_capacity=True,
    findings=(),
    last_drill=None,
)


GONE = {"told": told_until(UNTIL, LATER), "out_of_sight": frozenset({"north"})}
AS_THEN = ("north has not been seen for 3 min 30 s: its groups are as they were then",)


@pytest.mark.parametrize(
    ("changed", "expected", "because"),
    [
        ({}, Answer.YES, ()),
        # What is not asked for is not missed: no tracers, no capacity, never drilled.
        ({"producers": (), "headroom": None, "has_capacity": False, "rto_ms": None}, Answer.YES, ()),
        ({"findings": (_finding("X", "south", severity="ticket"),)}, Answer.YES, ()),
        ({"producers": (producers(acknowledged=1),)}, Answer.YES, ()),
        ({"ready": 2}, Answer.NO, ("1 of 3 groups not ready",)),
        (
            {"mirrors": (mirror(state=MirrorState.STALE),)},
            Answer.NO,
            ("the mirror north to south stands still",),
        ),
        ({"mirrors": (mirror(state=MirrorState.LOOP),)}, Answer.NO, ("records of north to south go round",)),
        (
            {"producers": (producers(), producers(vantage="shops", acknowledged=0))},
            Answer.NO,
            ("no producer at shops gets anything into south",),
        ),
        ({"headroom": -0.01}, Answer.NO, ("south's region could not take the load of both",)),
        ({"findings": (_finding("X", "south"),)}, Answer.NO, ("open finding: a line",)),
        (
            {"unknown": 1, "ready": 2},
            Answer.NOBODY_KNOWS,
            ("not known: whether 1 group could go on there",),
        ),
        ({"mirrors": ()}, Answer.NOBODY_KNOWS, ("no mirror into south is told of",)),
        (
            {"headroom": None},
            Answer.NOBODY_KNOWS,
            ("not known: whether south's region could take the load of both",),
        ),
        (
            {"mirrors": (mirror(), mirror("west", state=MirrorState.UNKNOWN))},
            Answer.NOBODY_KNOWS,
            ("not known: how the mirror west to south is",),
        ),
        (
            {"producers": (producers(now=False),)},
            Answer.NOBODY_KNOWS,
            ("not known: whether producers at apps can go on in south",),
        ),
        (
            {"producers": (producers(sent=1, acknowledged=0),)},
            Answer.NOBODY_KNOWS,
            ("not known: whether producers at apps can go on in south",),
        ),
        # What speaks against it does so whatever else nobody knows.
        (
            {"ready": 1, "unknown": 1},
            Answer.NO,
            ("1 of 3 groups not ready", "not known: whether 1 group could go on there"),
        ),
        ({"told": told_until(None, NOW)}, Answer.NOBODY_KNOWS, ("nothing is told of its groups",)),
        # Unless nobody has looked: then not even that is about now.
        (
            {"told": told_until(UNTIL, LATER), "ready": 0},
            Answer.NOBODY_KNOWS,
            ("nothing has been told of its groups for 3 min 30 s",),
        ),
        # Who is out of sight is not asked; what died with it is what a failover is for.
        (
            GONE,
            Answer.YES,
            AS_THEN,
        ),
        (
            GONE | {"mirrors": (mirror(), mirror("north", state=MirrorState.STALE))},
            Answer.YES,
            (*AS_THEN, "the mirror north to south stands still: what it has not copied stays in north"),
        ),
        (GONE | {"findings": (_finding("MIRROR_STALE", "north", "south"),)}, Answer.YES, AS_THEN),
        (GONE | {"ready": 2}, Answer.NO, ("1 of 3 groups not ready", *AS_THEN)),
        (
            GONE | {"mirrors": (mirror("west", state=MirrorState.STALE),)},
            Answer.NO,
            ("the mirror west to south stands still", *AS_THEN),
        ),
        (
            GONE | {"producers": (producers(now=False),)},
            Answer.NOBODY_KNOWS,
            ("not known: whether producers at apps can go on in south", *AS_THEN),
        ),
    ],
)
def test_the_answer(changed: dict[str, Any], expected: Answer, because: tuple[str, ...]) -> None:
    assert answer(replace(WELL, **changed)) == (expected, because)


def test_three_minutes_old_is_now_and_a_second_more_is_not() -> None:
    assert told_until(UNTIL, UNTIL + STALE_AFTER).is_now
    assert not told_until(UNTIL, UNTIL + STALE_AFTER + timedelta(seconds=1)).is_now


def test_each_answer_has_a_sign_of_its_own() -> None:
    assert len({one.sign for one in Answer}) == len(Answer)


def _known(**changed: Any) -> Known:
    values: dict[str, Any] = {"mirrors": (), "groups": (), "producers": (), "findings": (), "drills": ()}
    return Known(**values | changed)


def test_the_evidence_is_of_this_pair_alone() -> None:
    known = _known(
        mirrors=(mirror(), mirror("west"), mirror("south", "north")),
        groups=(
            group(reasons=("stale", "loss"), ready=False),
            group("mail", ready=None, lost_at_most=20, rto_ms=5_000, reasons=("stale",)),
            group("other", active="south", passive="north", replay_at_most=7),
        ),
    )
    found = evidence(known, PAIR, {}, NOW)
    assert (found.groups, found.ready, found.unknown) == (2, 0, 1)
    assert (found.replay_at_most, found.lost_at_most, found.rto_ms) == (1_800, 500, 5_000)
    assert found.reasons == (("stale", 2), ("loss", 1))
    assert [one.name for one in found.mirrors] == ["north to south", "west to south"]
    assert found.told == TOLD_NOW


def test_a_cluster_that_is_silent_is_out_of_sight_with_what_is_silent_of_its_region() -> None:
    regions = {"north": "n", "north-all": "n", "south": "s", "south-all": "s"}
    pair = ("north-all", "south-all")

    def out_of_sight(*mirrors: MirrorNow) -> frozenset[str]:
        return evidence(_known(mirrors=mirrors), pair, regions, NOW).out_of_sight

    into_north = mirror("south", "north-all", silent=("north-all",))
    assert out_of_sight(into_north) == {"north-all"}
    assert out_of_sight(into_north, mirror("north", silent=("north",))) == {"north", "north-all"}
    # Nobody looked, the one that is to take over is silent too, or another one is.
    assert not out_of_sight(replace(into_north, now=False))
    assert not out_of_sight(into_north, mirror("south", "south-all", silent=("south-all",)))
    assert not out_of_sight(mirror("north", "south-all", silent=("north", "south-all")))


def test_a_sum_of_what_nobody_knows_is_not_known() -> None:
    found = evidence(_known(groups=(group(), group("mail", lost_at_most=None, rto_ms=None))), PAIR, {}, NOW)
    assert (found.replay_at_most, found.lost_at_most) == (1_800, None)
    assert (found.rto_ms, found.never_drilled) == (2_340, 1)


def test_producers_are_those_of_the_region_that_takes_over() -> None:
    regions = {"north": "n", "north-all": "n", "south": "s", "south-all": "s", "west": "w"}
    tried = (producers("north"), producers("south"), producers("west", capacity_records_per_s=None))
    found = evidence(_known(producers=tried), ("north-all", "south-all"), regions, NOW)
    assert [one.cluster_id for one in found.producers] == ["south"]
    assert found.headroom == pytest.approx(1 - 8_000 / 10_000)
    alone = evidence(_known(producers=tried), ("north-all", "south-all"), {}, NOW)
    assert (alone.producers, alone.headroom, alone.has_capacity) == ((), None, False)


def test_without_tracers_what_is_produced_is_known_all_the_same() -> None:
    seen = (producers("north", vantage="", sent=0, acknowledged=0), producers("south", vantage="", sent=0))
    found = evidence(_known(producers=seen), PAIR, {}, NOW)
    assert found.producers == ()
    assert found.headroom == pytest.approx(0.2)


def test_vantages_see_the_same_load_and_it_counts_once() -> None:
    seen = [producers(name, vantage=vantage) for name in PAIR for vantage in ("apps", "shops")]
    assert evidence(_known(producers=seen), PAIR, {}, NOW).headroom == pytest.approx(0.2)


@pytest.mark.parametrize("missing", ["records_per_s", "capacity_records_per_s"])
def test_headroom_is_not_guessed(missing: str) -> None:
    seen = (producers("north"), producers("south", **{missing: None}))
    assert evidence(_known(producers=seen), PAIR, {}, NOW).headroom is None


@pytest.mark.parametrize(
    ("found", "concerns"),
    [
        (_finding("GROUPS_NOT_READY", "north", "south"), True),
        (_finding("GROUPS_NOT_READY", "south", "north"), False),
        (_finding("GROUPS_NOT_READY", "east", "south"), False),
        (_finding("MIRROR_BEHIND", "west", "south"), True),
        (_finding("MIRROR_BEHIND", "west", "north"), False),
        (_finding("MIRROR_LOOP", "west"), True),
        (_finding("MIRROR_LOOP", "south"), False),
        (_finding("PRODUCERS_CUT_OFF", "south"), True),
        (_finding("PRODUCERS_CUT_OFF", "north"), False),
        (_finding("NO_HEADROOM", "south", "north"), True),
        (_finding("NO_HEADROOM", "north", "south"), False),
        (_finding("PRIMARY_DEAD", ""), False),
    ],
)
def test_a_finding_is_evidence_where_one_would_go_on(found: OpenFinding, concerns: bool) -> None:
    known = _known(mirrors=(mirror(), mirror("west")), findings=(found,))
    assert bool(evidence(known, PAIR, {}, NOW).findings) is concerns


def test_the_last_drill_is_the_pairs() -> None:
    drills = drilled(
        [
            drill(START, "g", active="north", passive="south", ready=False),
            drill(START + timedelta(hours=1), "g", active="south", passive="north"),
        ]
    )
    last = evidence(_known(drills=drills), PAIR, {}, NOW).last_drill
    assert last is not None
    assert (last.at, last.verdict) == (START, "NOT READY")


def test_pairs_are_the_fleet_files_or_else_those_that_are_told_of() -> None:
    known = _known(groups=(group(),), drills=drilled([drill(START, "g", active="a", passive="b")]))
    assert [one.evidence.name for one in failovers(known, (), {}, NOW)] == ["a to b", "north to south"]
    (only,) = failovers(known, (("east", "west"),), {}, NOW)
    assert (only.answer, only.because) == (Answer.NOBODY_KNOWS, ("nothing is told of its groups",))
