"""The answer is YES only where everything that counts is known and nothing argues against it."""

from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from fleetgauge_dashboards.views.drills import parse_drilled_groups
from fleetgauge_dashboards.views.failover import (
    FailoverAnswer,
    FailoverEvidence,
    RecoverySnapshot,
    answer_failover,
    assess_failovers,
    gather_evidence,
)
from fleetgauge_dashboards.views.findings import OpenFinding, fold_open_findings
from fleetgauge_dashboards.views.freshness import STALE_AFTER
from fleetgauge_dashboards.views.mirrors import MirrorHealth, MirrorLag
from fleetgauge_dashboards.views.recovery_freshness import assess_freshness_at
from tests.browser.recovery_lake import drill, finding
from tests.unit.dashboards.frames import START
from tests.unit.dashboards.recovery_frames import CURRENT, NOW, UNTIL, group, mirror, producers

PAIR = ("north", "south")
LATER = NOW + STALE_AFTER


def _finding(kind: str, cluster_id: str, other_id: str = "", severity: str = "page") -> OpenFinding:
    (open_finding,) = fold_open_findings(
        [finding(START, kind, cluster_id, other_id, severity=severity, summary="a line")]
    )
    return open_finding


READY = FailoverEvidence(
    active="north",
    passive="south",
    freshness=CURRENT,
    unreachable=frozenset(),
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


UNREACHABLE = {"freshness": assess_freshness_at(UNTIL, LATER), "unreachable": frozenset({"north"})}
LAST_OBSERVED = ("north has been unreachable for 3 min 30 s; groups are as last observed",)


@pytest.mark.parametrize(
    ("changed", "expected", "explanation"),
    [
        ({}, FailoverAnswer.YES, ()),
        # Optional evidence may be missing: no tracers, no capacity, never drilled.
        ({"producers": (), "headroom": None, "has_capacity": False, "rto_ms": None}, FailoverAnswer.YES, ()),
        ({"findings": (_finding("X", "south", severity="ticket"),)}, FailoverAnswer.YES, ()),
        ({"producers": (producers(acknowledged=1),)}, FailoverAnswer.YES, ()),
        ({"ready": 2}, FailoverAnswer.NO, ("1 of 3 groups not ready",)),
        (
            {"mirrors": (mirror(state=MirrorHealth.STALE),)},
            FailoverAnswer.NO,
            ("mirror north to south has stalled",),
        ),
        (
            {"mirrors": (mirror(state=MirrorHealth.LOOP),)},
            FailoverAnswer.NO,
            ("mirror north to south copies records in a loop",),
        ),
        (
            {"producers": (producers(), producers(vantage="shops", acknowledged=0))},
            FailoverAnswer.NO,
            ("producers at shops cannot write to south",),
        ),
        (
            {"headroom": -0.01},
            FailoverAnswer.NO,
            ("south's region lacks the capacity for the load of both regions",),
        ),
        ({"findings": (_finding("X", "south"),)}, FailoverAnswer.NO, ("open finding: a line",)),
        (
            {"unknown": 1, "ready": 2},
            FailoverAnswer.UNKNOWN,
            ("unknown: whether 1 group can resume there",),
        ),
        ({"mirrors": ()}, FailoverAnswer.UNKNOWN, ("no mirror into south observed",)),
        (
            {"headroom": None},
            FailoverAnswer.UNKNOWN,
            ("unknown: whether south's region has capacity for the load of both regions",),
        ),
        (
            {"mirrors": (mirror(), mirror("west", state=MirrorHealth.UNKNOWN))},
            FailoverAnswer.UNKNOWN,
            ("unknown: the state of mirror west to south",),
        ),
        (
            {"producers": (producers(is_current=False),)},
            FailoverAnswer.UNKNOWN,
            ("unknown: whether producers at apps can write to south",),
        ),
        (
            {"producers": (producers(sent=1, acknowledged=0),)},
            FailoverAnswer.UNKNOWN,
            ("unknown: whether producers at apps can write to south",),
        ),
        # An objection counts even if other values are unknown.
        (
            {"ready": 1, "unknown": 1},
            FailoverAnswer.NO,
            ("1 of 3 groups not ready", "unknown: whether 1 group can resume there"),
        ),
        (
            {"freshness": assess_freshness_at(None, NOW)},
            FailoverAnswer.UNKNOWN,
            ("no data about its consumer groups",),
        ),
        # Stale data is no objection, because it does not describe the present.
        (
            {"freshness": assess_freshness_at(UNTIL, LATER), "ready": 0},
            FailoverAnswer.UNKNOWN,
            ("no data about its consumer groups for 3 min 30 s",),
        ),
        # What failed together with an unreachable active cluster is the reason for a failover.
        (
            UNREACHABLE,
            FailoverAnswer.YES,
            LAST_OBSERVED,
        ),
        (
            UNREACHABLE | {"mirrors": (mirror(), mirror("north", state=MirrorHealth.STALE))},
            FailoverAnswer.YES,
            (*LAST_OBSERVED, "mirror north to south has stalled; records not yet copied remain in north"),
        ),
        (
            UNREACHABLE | {"findings": (_finding("MIRROR_STALE", "north", "south"),)},
            FailoverAnswer.YES,
            LAST_OBSERVED,
        ),
        (UNREACHABLE | {"ready": 2}, FailoverAnswer.NO, ("1 of 3 groups not ready", *LAST_OBSERVED)),
        (
            UNREACHABLE | {"mirrors": (mirror("west", state=MirrorHealth.STALE),)},
            FailoverAnswer.NO,
            ("mirror west to south has stalled", *LAST_OBSERVED),
        ),
        (
            UNREACHABLE | {"producers": (producers(is_current=False),)},
            FailoverAnswer.UNKNOWN,
            ("unknown: whether producers at apps can write to south", *LAST_OBSERVED),
        ),
    ],
)
def test_the_answer_follows_from_the_evidence(
    changed: dict[str, Any], expected: FailoverAnswer, explanation: tuple[str, ...]
) -> None:
    assert answer_failover(replace(READY, **changed)) == (expected, explanation)


def test_data_is_current_up_to_an_age_of_three_minutes() -> None:
    assert assess_freshness_at(UNTIL, UNTIL + STALE_AFTER).is_now
    assert not assess_freshness_at(UNTIL, UNTIL + STALE_AFTER + timedelta(seconds=1)).is_now


def test_each_answer_has_its_own_sign() -> None:
    assert len({answer.sign for answer in FailoverAnswer}) == len(FailoverAnswer)


def _snapshot(**changed: Any) -> RecoverySnapshot:
    values: dict[str, Any] = {"mirrors": (), "groups": (), "producers": (), "findings": (), "drills": ()}
    return RecoverySnapshot(**values | changed)


def test_the_evidence_contains_only_this_pair() -> None:
    snapshot = _snapshot(
        mirrors=(mirror(), mirror("west"), mirror("south", "north")),
        groups=(
            group(reasons=("stale", "loss"), ready=False),
            group("mail", ready=None, lost_at_most=20, rto_ms=5_000, reasons=("stale",)),
            group("other", active="south", passive="north", replay_at_most=7),
        ),
    )
    evidence = gather_evidence(snapshot, PAIR, {}, NOW)
    assert (evidence.groups, evidence.ready, evidence.unknown) == (2, 0, 1)
    assert (evidence.replay_at_most, evidence.lost_at_most, evidence.rto_ms) == (1_800, 500, 5_000)
    assert evidence.reasons == (("stale", 2), ("loss", 1))
    assert [mirror_lag.name for mirror_lag in evidence.mirrors] == ["north to south", "west to south"]
    assert evidence.freshness == CURRENT


def test_a_silent_active_cluster_is_unreachable_with_the_silent_clusters_of_its_region() -> None:
    regions = {"north": "n", "north-all": "n", "south": "s", "south-all": "s"}
    pair = ("north-all", "south-all")

    def find_unreachable(*mirrors: MirrorLag) -> frozenset[str]:
        return gather_evidence(_snapshot(mirrors=mirrors), pair, regions, NOW).unreachable

    into_north = mirror("south", "north-all", silent=("north-all",))
    assert find_unreachable(into_north) == {"north-all"}
    assert find_unreachable(into_north, mirror("north", silent=("north",))) == {"north", "north-all"}
    # No: the observation is stale, the passive cluster is silent too, or a cluster elsewhere is.
    assert not find_unreachable(replace(into_north, now=False))
    assert not find_unreachable(into_north, mirror("south", "south-all", silent=("south-all",)))
    assert not find_unreachable(mirror("north", "south-all", silent=("north", "south-all")))


def test_a_sum_with_an_unknown_value_is_unknown() -> None:
    evidence = gather_evidence(
        _snapshot(groups=(group(), group("mail", lost_at_most=None, rto_ms=None))), PAIR, {}, NOW
    )
    assert (evidence.replay_at_most, evidence.lost_at_most) == (1_800, None)
    assert (evidence.rto_ms, evidence.never_drilled) == (2_340, 1)


def test_producers_are_selected_from_the_passive_region() -> None:
    regions = {"north": "n", "north-all": "n", "south": "s", "south-all": "s", "west": "w"}
    statuses = (producers("north"), producers("south"), producers("west", capacity_records_per_s=None))
    evidence = gather_evidence(_snapshot(producers=statuses), ("north-all", "south-all"), regions, NOW)
    assert [status.cluster_id for status in evidence.producers] == ["south"]
    assert evidence.headroom == pytest.approx(1 - 8_000 / 10_000)
    without_regions = gather_evidence(_snapshot(producers=statuses), ("north-all", "south-all"), {}, NOW)
    assert (without_regions.producers, without_regions.headroom, without_regions.has_capacity) == (
        (),
        None,
        False,
    )


def test_headroom_is_known_without_tracers() -> None:
    statuses = (
        producers("north", vantage="", sent=0, acknowledged=0),
        producers("south", vantage="", sent=0),
    )
    evidence = gather_evidence(_snapshot(producers=statuses), PAIR, {}, NOW)
    assert evidence.producers == ()
    assert evidence.headroom == pytest.approx(0.2)


def test_the_load_that_several_vantages_observe_counts_once() -> None:
    statuses = [producers(name, vantage=vantage) for name in PAIR for vantage in ("apps", "shops")]
    assert gather_evidence(_snapshot(producers=statuses), PAIR, {}, NOW).headroom == pytest.approx(0.2)


@pytest.mark.parametrize("missing", ["records_per_s", "capacity_records_per_s"])
def test_headroom_is_unknown_if_a_rate_or_a_capacity_is_missing(missing: str) -> None:
    statuses = (producers("north"), producers("south", **{missing: None}))
    assert gather_evidence(_snapshot(producers=statuses), PAIR, {}, NOW).headroom is None


@pytest.mark.parametrize(
    ("open_finding", "concerns"),
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
def test_a_finding_is_evidence_only_where_it_concerns_the_passive_side(
    open_finding: OpenFinding, concerns: bool
) -> None:
    snapshot = _snapshot(mirrors=(mirror(), mirror("west")), findings=(open_finding,))
    assert bool(gather_evidence(snapshot, PAIR, {}, NOW).findings) is concerns


def test_the_latest_drill_is_the_pairs() -> None:
    drills = parse_drilled_groups(
        [
            drill(START, "g", active="north", passive="south", ready=False),
            drill(START + timedelta(hours=1), "g", active="south", passive="north"),
        ]
    )
    last = gather_evidence(_snapshot(drills=drills), PAIR, {}, NOW).last_drill
    assert last is not None
    assert (last.at, last.verdict) == (START, "NOT READY")


def test_pairs_are_those_of_the_fleet_file_or_else_the_observed_ones() -> None:
    snapshot = _snapshot(
        groups=(group(),), drills=parse_drilled_groups([drill(START, "g", active="a", passive="b")])
    )
    assert [assessment.evidence.name for assessment in assess_failovers(snapshot, (), {}, NOW)] == [
        "a to b",
        "north to south",
    ]
    (only,) = assess_failovers(snapshot, (("east", "west"),), {}, NOW)
    assert (only.answer, only.explanation) == (
        FailoverAnswer.UNKNOWN,
        ("no data about its consumer groups",),
    )
