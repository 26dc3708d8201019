import dataclasses
from collections.abc import Callable, Mapping, Sequence
from datetime import timedelta

import pytest

from fleetgauge_core.detection import HealthState
from fleetgauge_core.metadata import TopicPartition
from fleetgauge_operations.mitigation.case import (
    Action,
    ActionRequest,
    CaseOutcome,
    MitigationCase,
    ReplicaOrder,
)
from fleetgauge_operations.mitigation.executor import ActionExecutor, UndoRefusedError
from fleetgauge_operations.mitigation.fail_safes import RefusalReason, find_refusals
from fleetgauge_operations.mitigation.limits import DEFAULT_LIMITS, Limits
from fleetgauge_operations.mitigation.snapshot import ActiveAlert, ClusterSnapshot
from tests.unit.operations.mitigation.simulated_cluster import (
    LONG_AGO,
    NOON,
    SimulatedCluster,
    broker,
    cluster_metadata,
    degraded,
    partition,
)

INTENT = ActionRequest(Action.DEMOTE, "orders", 2)


def hand(
    cluster: SimulatedCluster,
    observe: Callable[[str], ClusterSnapshot] | None = None,
    may_act: Callable[[], bool] = lambda: True,
    limits: Limits = DEFAULT_LIMITS,
) -> ActionExecutor:
    return ActionExecutor(
        observe or cluster.observe, cluster, cluster, may_act, cluster.clock, cluster.wait, limits
    )


def demoted(cluster: SimulatedCluster, the_hand: ActionExecutor | None = None) -> MitigationCase:
    return (the_hand or hand(cluster)).apply(INTENT, "c1", "ann", "DEGRADED")


@pytest.fixture
def cluster() -> SimulatedCluster:
    return SimulatedCluster(alerts=(degraded(2),))


def orders(cluster: SimulatedCluster) -> dict[int, tuple[int, ...]]:
    return {place.partition: one.replicas for place, one in cluster.metadata.partitions.items()}


def test_a_demoted_broker_leads_nothing_and_all_of_it_is_on_record(cluster: SimulatedCluster) -> None:
    case = demoted(cluster)
    assert case.outcome is CaseOutcome.DONE
    assert cluster.cases == {"c1": case}
    assert not cluster.metadata.led_by(2)
    assert orders(cluster) == {0: (1, 3, 2), 1: (3, 1, 2), 2: (3, 1, 2)}
    assert (case.zone, case.reason, case.author) == ("zone-2", "DEGRADED", "ann")


def test_who_leads_nothing_becomes_the_last_all_the_same(cluster: SimulatedCluster) -> None:
    cluster.change(TopicPartition("t", 1), leader=3)
    assert demoted(cluster).outcome is CaseOutcome.DONE
    assert orders(cluster) == {0: (1, 3, 2), 1: (3, 1, 2), 2: (3, 1, 2)}


def test_what_is_refused_changes_nothing_and_is_on_record(cluster: SimulatedCluster) -> None:
    cluster.alerts = (degraded(2), degraded(3))
    case = demoted(cluster)
    assert case.outcome is CaseOutcome.REFUSED
    assert cluster.cases == {"c1": case}
    assert cluster.said == []
    assert case.ended == case.began


def test_the_order_is_on_record_before_it_is_changed(cluster: SimulatedCluster) -> None:
    """Else nobody could undo what was begun by who was killed meanwhile."""

    @dataclasses.dataclass
    class Watched(SimulatedCluster):
        def reorder_replicas(self, *_: object) -> None:
            known = self.cases["c1"]
            assert known.outcome is CaseOutcome.BEGUN
            assert known.orders[TopicPartition("t", 1)].before == (2, 3, 1)
            raise SystemExit

    watched = Watched(alerts=(degraded(2),))
    with pytest.raises(SystemExit):
        demoted(watched)
    assert watched.cases["c1"].is_open


def test_what_has_changed_between_two_steps_stops_the_second(cluster: SimulatedCluster) -> None:
    def observe(excluded_case_id: str) -> ClusterSnapshot:
        if cluster.said:
            cluster.alerts = (degraded(2), degraded(3))
        return cluster.observe(excluded_case_id)

    case = demoted(cluster, hand(cluster, observe))
    assert case.outcome is CaseOutcome.FAILED
    assert cluster.said == ["reorder 2"]
    assert "broker 3 is DEGRADED" in case.words[0]


def test_who_has_lost_its_seat_changes_nothing_more(cluster: SimulatedCluster) -> None:
    seats = iter([True, False])
    case = demoted(cluster, hand(cluster, may_act=lambda: next(seats)))
    assert case.outcome is CaseOutcome.FAILED
    assert cluster.said == ["reorder 2"]


def test_what_did_not_come_of_it_is_a_failure(cluster: SimulatedCluster) -> None:
    cluster.deaf = True
    case = demoted(cluster)
    assert case.outcome is CaseOutcome.FAILED
    assert case.words == ("broker 2 still leads 1 partitions after 5 s",)
    against = find_refusals(INTENT, cluster.observe("another"), cluster.now)
    assert [refusal.reason for refusal in against] == [
        RefusalReason.ALREADY,
        RefusalReason.CIRCUIT_OPEN,
        RefusalReason.TOO_SOON,
    ]


def test_undoing_restores_what_was(cluster: SimulatedCluster) -> None:
    before = cluster.metadata
    case = demoted(cluster)
    cluster.alerts = ()
    case = hand(cluster).undo(case, None)
    assert case.outcome is CaseOutcome.UNDONE
    assert case.ended == cluster.now
    assert cluster.cases["c1"] == case
    assert cluster.metadata == before


def test_undoing_keeps_what_a_person_changed_since(cluster: SimulatedCluster) -> None:
    case = demoted(cluster)
    cluster.alerts = ()
    cluster.change(TopicPartition("t", 1), replicas=(1, 3, 2), leader=1)
    case = hand(cluster).undo(case, None)
    assert case.outcome is CaseOutcome.UNDONE
    assert case.words == ("t-1 not restored, because its replicas were changed to 1, 3, 2",)
    assert orders(cluster) == {0: (1, 2, 3), 1: (1, 3, 2), 2: (3, 1, 2)}


def test_undoing_is_refused_while_the_broker_is_sick_unless_a_person_knows_better(
    cluster: SimulatedCluster,
) -> None:
    case = demoted(cluster)
    with pytest.raises(UndoRefusedError) as refused:
        hand(cluster).undo(case, None)
    assert [refusal.reason for refusal in refused.value.refusals] == [RefusalReason.STILL_SICK]
    assert cluster.cases["c1"] == case
    undone = hand(cluster).undo(case, "a false alarm")
    assert (undone.outcome, undone.words) == (CaseOutcome.UNDONE, ("undone: a false alarm",))


def test_undoing_that_fails_can_be_tried_again(cluster: SimulatedCluster) -> None:
    before, case = cluster.metadata, demoted(cluster)
    cluster.alerts, cluster.deaf = (), True
    case = hand(cluster).undo(case, None)
    assert case.outcome is CaseOutcome.FAILED
    assert case.words[0].startswith("broker 2 does not lead 1 of 1 partitions again")
    cluster.deaf = False
    assert hand(cluster).undo(case, None).outcome is CaseOutcome.UNDONE
    assert cluster.metadata == before


MINUTE = timedelta(minutes=1)
TWO_A_MINUTE = Limits(max_led_per_minute=2)


@pytest.fixture
def leader() -> SimulatedCluster:
    """Broker 2 leads five partitions, and follows in a sixth."""
    partitions = {TopicPartition("t", number): partition(2, 3, 1) for number in range(5)}
    return SimulatedCluster(
        metadata=cluster_metadata(partitions={**partitions, TopicPartition("t", 5): partition(1, 2, 3)}),
        alerts=(degraded(2),),
    )


def test_it_is_given_back_in_lots_a_minute_apart(leader: SimulatedCluster) -> None:
    before = leader.metadata
    case = demoted(leader)
    leader.alerts, leader.said, began = (), [], leader.now
    case = hand(leader, limits=TWO_A_MINUTE).undo(case, None)
    assert (case.outcome, case.ended) == (CaseOutcome.UNDONE, began + 2 * MINUTE)
    assert leader.said == ["reorder 3", "elect 2", "reorder 2", "elect 2", "reorder 1", "elect 1"]
    assert leader.metadata == before
    assert leader.marked == set()


def test_what_a_person_changes_between_two_lots_stays(leader: SimulatedCluster) -> None:
    case = demoted(leader)
    leader.alerts = ()

    def observe(excluded_case_id: str) -> ClusterSnapshot:
        if TopicPartition("t", 0) in leader.metadata.led_by(2):
            leader.change(TopicPartition("t", 4), replicas=(1, 3, 2), leader=1)
        return leader.observe(excluded_case_id)

    case = hand(leader, observe, limits=TWO_A_MINUTE).undo(case, None)
    assert (case.outcome, case.words) == (
        CaseOutcome.UNDONE,
        ("t-4 not restored, because its replicas were changed to 1, 3, 2",),
    )
    assert leader.metadata.led_by(2) == {TopicPartition("t", number) for number in range(4)}
    assert orders(leader)[4] == (1, 3, 2)


@pytest.mark.parametrize(
    ("reason", "outcome", "led"), [(None, CaseOutcome.FAILED, 2), ("an experiment", CaseOutcome.UNDONE, 5)]
)
def test_who_falls_ill_between_two_lots_is_given_no_more_unless_a_person_wants_it(
    leader: SimulatedCluster, reason: str | None, outcome: CaseOutcome, led: int
) -> None:
    case = demoted(leader)
    leader.alerts = ()

    def observe(excluded_case_id: str) -> ClusterSnapshot:
        leader.alerts = (degraded(2),) if leader.metadata.led_by(2) else ()
        return leader.observe(excluded_case_id)

    case = hand(leader, observe, limits=TWO_A_MINUTE).undo(case, reason)
    assert (case.outcome, len(leader.metadata.led_by(2))) == (outcome, led)
    if not reason:
        assert case.words[0].startswith("broker 2 is DEGRADED since")
        assert leader.marked == {2}


QUARANTINE = ActionRequest(Action.QUARANTINE_RESTART, "orders", 2)


def quarantined(cluster: SimulatedCluster, the_hand: ActionExecutor | None = None) -> MitigationCase:
    return (the_hand or hand(cluster)).apply(QUARANTINE, "c1", "ann", "DEGRADED")


def in_sync(cluster: SimulatedCluster) -> list[bool]:
    return [2 in one.in_sync for one in cluster.metadata.partitions.values()]


def test_who_is_restarted_slowed_is_out_of_sync_until_it_is_released(cluster: SimulatedCluster) -> None:
    before = cluster.metadata
    case = quarantined(cluster)
    assert case.outcome is CaseOutcome.DONE
    assert case.throttles == {"t": "0:2,1:2,2:2"}
    assert cluster.said == ["throttle ['t']", "restart"]
    assert in_sync(cluster) == [False] * 3
    cluster.alerts = ()
    case = hand(cluster).undo(case, None)
    assert case.outcome is CaseOutcome.UNDONE
    assert in_sync(cluster) == [True] * 3
    assert cluster.metadata.throttled_topics == before.throttled_topics


def test_where_nothing_comes_in_nobody_can_be_kept_out(cluster: SimulatedCluster) -> None:
    cluster.idle = frozenset(cluster.metadata.partitions)
    case = quarantined(cluster)
    assert case.outcome is CaseOutcome.FAILED
    assert "in sync in all partitions: too little is produced to keep it out" in case.words[0]


def test_a_restart_that_fails_is_said_and_the_throttle_can_be_taken_back(cluster: SimulatedCluster) -> None:
    cluster.stuck = True
    case = quarantined(cluster)
    assert (case.outcome, case.words) == (CaseOutcome.FAILED, ("systemctl ended with 1",))
    cluster.alerts = ()
    assert hand(cluster).undo(case, None).outcome is CaseOutcome.UNDONE
    assert not cluster.metadata.throttled_topics


RESTART = ActionRequest(Action.RESTART, "orders", 2)
DOWN = ActiveAlert(2, HealthState.BROKER_DOWN, LONG_AGO)


def test_a_restart_is_over_once_the_broker_is_back(cluster: SimulatedCluster) -> None:
    cluster.alerts = (DOWN,)
    case = hand(cluster).apply(RESTART, "c1", "ann", "BROKER_DOWN")
    assert (case.outcome, case.is_open, case.ended) == (CaseOutcome.DONE, False, cluster.now)
    assert cluster.said == ["restart"]


def test_who_was_killed_counts_as_back_only_once_its_session_would_have_ended(
    cluster: SimulatedCluster,
) -> None:
    """A hook may only have asked for it: for seconds the broker that is gone looks well and in sync."""

    def observe(excluded_case_id: str) -> ClusterSnapshot:
        if "restart" in cluster.said and cluster.now >= NOON + timedelta(seconds=9):
            gone = dataclasses.replace(cluster.metadata.brokers[2], fenced=True)
            cluster.metadata = dataclasses.replace(
                cluster.metadata, brokers={**cluster.metadata.brokers, 2: gone}
            )
        return cluster.observe(excluded_case_id)

    cluster.alerts = (DOWN,)
    case = hand(cluster, observe).apply(RESTART, "c1", "ann", "STORAGE_STALLED")
    assert (case.outcome, case.words) == (CaseOutcome.FAILED, ("broker 2 has not returned after 300 s",))


def test_that_undoing_is_begun_is_on_record_before_anything_is_changed(cluster: SimulatedCluster) -> None:
    """Else it would be done again and again by who is on duty and cannot put on record that it is done."""

    @dataclasses.dataclass
    class Full(SimulatedCluster):
        full: bool = False

        def update_case(self, case: MitigationCase) -> None:
            if self.full:
                raise OSError("no space")
            super().update_case(case)

    one = Full(alerts=(degraded(2),))
    case = demoted(one)
    one.alerts, one.full, one.said = (), True, []
    with pytest.raises(OSError, match="no space"):
        hand(one).undo(case, None)
    assert (one.said, one.cases["c1"]) == ([], case)
    one.full = False
    undone = hand(one).undo(case, "all is well")
    assert (undone.undone_since, undone.overruled) == (one.now, True)


def test_to_close_what_had_failed_is_no_verdict_on_what_may_be_done(cluster: SimulatedCluster) -> None:
    cluster.deaf = True
    failed = demoted(cluster)
    cluster.deaf = False
    closed = hand(cluster).undo(failed, "seen to")
    assert (failed.outcome, closed.outcome, closed.overruled) == (
        CaseOutcome.FAILED,
        CaseOutcome.UNDONE,
        False,
    )


def test_an_order_that_a_person_gives_between_look_and_act_stays(cluster: SimulatedCluster) -> None:
    @dataclasses.dataclass
    class Between(SimulatedCluster):
        def set_demotion_mark(self, broker_id: int, *, demoted: bool) -> None:
            super().set_demotion_mark(broker_id, demoted=demoted)
            if demoted:
                self.change(TopicPartition("t", 1), replicas=(2, 1, 3))

    one = Between(alerts=(degraded(2),))
    case = demoted(one)
    assert (case.outcome, case.words) == (CaseOutcome.FAILED, ("another order since",))
    assert orders(one) == {0: (1, 2, 3), 1: (2, 1, 3), 2: (3, 1, 2)}


def test_a_restart_that_failed_is_closed_by_who_has_seen_to_it(cluster: SimulatedCluster) -> None:
    cluster.alerts, cluster.stuck = (DOWN,), True
    case = hand(cluster).apply(RESTART, "c1", "ann", "BROKER_DOWN")
    assert (case.outcome, case.is_open) == (CaseOutcome.FAILED, True)
    cluster.alerts = ()
    assert hand(cluster).undo(case, "started by hand").outcome is CaseOutcome.UNDONE


def test_who_is_out_of_sync_for_a_moment_as_it_starts_is_not_kept_out(cluster: SimulatedCluster) -> None:
    """As every broker is that has just been restarted."""

    def observe(excluded_case_id: str) -> ClusterSnapshot:
        if "restart" in cluster.said and cluster.now > NOON + timedelta(seconds=5):
            for place, one in cluster.metadata.partitions.items():
                cluster.change(place, in_sync=one.in_sync | {2})
        return cluster.observe(excluded_case_id)

    case = quarantined(cluster, hand(cluster, observe))
    assert case.outcome is CaseOutcome.FAILED
    assert "in sync in all partitions: too little is produced to keep it out" in case.words[0]


def test_who_has_much_to_copy_is_released_all_the_same(cluster: SimulatedCluster) -> None:
    case = quarantined(cluster)
    cluster.alerts, cluster.back = (), False
    case = hand(cluster).undo(case, None)
    assert case.outcome is CaseOutcome.UNDONE
    assert case.words == (
        "broker 2 is out of sync in 3 of 3 partitions after 300 s; it continues to catch up",
    )


@pytest.mark.parametrize("action", [Action.DEMOTE, Action.QUARANTINE_RESTART])
def test_the_case_of_a_broker_that_is_gone_is_closed_and_leaves_nothing_behind(
    cluster: SimulatedCluster, action: Action
) -> None:
    case = hand(cluster).apply(ActionRequest(action, "orders", 2), "c1", "ann", "DEGRADED")
    cluster.alerts = ()
    cluster.metadata = dataclasses.replace(cluster.metadata, brokers={1: broker(1), 3: broker(3)})
    after = hand(cluster).undo(case, "replaced by broker 4")
    assert after.outcome is CaseOutcome.UNDONE
    assert after.words[0] == "undone: replaced by broker 4"
    assert "broker 2 is not registered any more: nothing is returned to it" in after.words[-1]
    assert (cluster.marked, cluster.metadata.throttled_topics) == (set(), frozenset())


@pytest.mark.parametrize("fault", [KeyError("min.insync.replicas"), OSError("no space"), RuntimeError()])
def test_whatever_goes_wrong_once_it_has_begun_is_a_failure_on_record(
    cluster: SimulatedCluster, fault: Exception
) -> None:
    def observe(excluded_case_id: str) -> ClusterSnapshot:
        if cluster.said:
            raise fault
        return cluster.observe(excluded_case_id)

    case = demoted(cluster, hand(cluster, observe))
    assert (case.outcome, cluster.cases["c1"]) == (CaseOutcome.FAILED, case)
    assert case.words == (f"{type(fault).__name__}: {fault}",)


def test_what_cannot_be_written_down_is_said(cluster: SimulatedCluster) -> None:
    @dataclasses.dataclass
    class Unwritten(SimulatedCluster):
        def update_case(self, case: MitigationCase) -> None:
            raise RuntimeError("commit failed")

    unwritten = Unwritten(alerts=(degraded(2),))
    case = demoted(unwritten)
    assert (case.outcome, case.words) == (
        CaseOutcome.DONE,
        ("not stored in ops/actions: RuntimeError: commit failed",),
    )
    against = find_refusals(INTENT, unwritten.observe("another"), unwritten.now)
    assert RefusalReason.CIRCUIT_OPEN in [refusal.reason for refusal in against]


def test_agents_are_told_of_a_demotion_before_it_and_of_its_end(cluster: SimulatedCluster) -> None:
    @dataclasses.dataclass
    class Watched(SimulatedCluster):
        def reorder_replicas(
            self, orders: Mapping[TopicPartition, Sequence[int]], known: Mapping[TopicPartition, ReplicaOrder]
        ) -> None:
            assert self.marked == {2}
            super().reorder_replicas(orders, known)

    watched = Watched(alerts=(degraded(2),))
    case = demoted(watched)
    assert watched.marked == {2}
    watched.alerts = ()
    hand(watched).undo(case, None)
    assert watched.marked == set()
