"""How actions are executed, verified and undone on a simulated cluster."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import timedelta

import pytest

from fleetgauge_core.detection import HealthState
from fleetgauge_core.metadata import PartitionMetadata, TopicPartition
from fleetgauge_core.tables import ActionKind, ActionOutcome
from fleetgauge_operations.actions.executor import ActionExecutor, ActionRun, UndoRefusedError
from fleetgauge_operations.actions.plan.case import ActionCase, ActionRequest
from fleetgauge_operations.actions.plan.refusal import RefusalReason
from fleetgauge_operations.actions.plan.refusals import find_refusals
from fleetgauge_operations.actions.plan.snapshot import ActiveAlert, ClusterSnapshot
from fleetgauge_operations.mitigation.plan.demotion import ReplicaOrder, decode_orders
from fleetgauge_operations.mitigation.plan.limits import MitigationLimits
from fleetgauge_operations.mitigation.plan.restarts import decode_throttles
from fleetgauge_operations.mitigation.plan.rules import build_rules
from tests.unit.operations.mitigation.simulated_cluster import (
    HOUR_AGO,
    NOON,
    SimulatedCluster,
    build_broker,
    build_metadata,
    build_partition,
    degraded_alert,
)

RULES = build_rules()
DEMOTION = ActionRequest(ActionKind.DEMOTE, "orders", 2)
QUARANTINE = ActionRequest(ActionKind.QUARANTINE_RESTART, "orders", 2)
RESTART = ActionRequest(ActionKind.RESTART, "orders", 2)
DOWN_ALERT = ActiveAlert(2, HealthState.BROKER_DOWN, HOUR_AGO)
MINUTE = timedelta(minutes=1)
TWO_PER_MINUTE = MitigationLimits(max_led_per_minute=2)
ORDERS_AFTER_DEMOTION = {0: (1, 3, 2), 1: (3, 1, 2), 2: (3, 1, 2)}


def demote(cluster: SimulatedCluster, executor: ActionExecutor | None = None) -> ActionCase:
    return (executor or cluster.create_executor()).apply(DEMOTION, "c1", "ann", "DEGRADED")


def quarantine(cluster: SimulatedCluster, executor: ActionExecutor | None = None) -> ActionCase:
    return (executor or cluster.create_executor()).apply(QUARANTINE, "c1", "ann", "DEGRADED")


def replica_orders(cluster: SimulatedCluster) -> dict[int, tuple[int, ...]]:
    """Return the replicas by partition number."""
    return {
        partition.partition: metadata.replicas for partition, metadata in cluster.metadata.partitions.items()
    }


def in_sync_flags(cluster: SimulatedCluster) -> list[bool]:
    """Return for each partition whether broker 2 is in sync."""
    return [2 in metadata.in_sync for metadata in cluster.metadata.partitions.values()]


@pytest.fixture
def cluster() -> SimulatedCluster:
    """Broker 2 is DEGRADED."""
    return SimulatedCluster(alerts=(degraded_alert(2),))


@pytest.fixture
def leading_cluster() -> SimulatedCluster:
    """Broker 2 is DEGRADED, leads five partitions and follows in a sixth."""
    partitions = {TopicPartition("t", number): build_partition(2, 3, 1) for number in range(5)}
    partitions[TopicPartition("t", 5)] = build_partition(1, 2, 3)
    return SimulatedCluster(metadata=build_metadata(partitions=partitions), alerts=(degraded_alert(2),))


def test_a_demoted_broker_leads_no_partition_and_its_case_is_stored(cluster: SimulatedCluster) -> None:
    case = demote(cluster)
    assert case.outcome is ActionOutcome.DONE
    assert cluster.cases == {"c1": case}
    assert not cluster.metadata.led_by(2)
    assert replica_orders(cluster) == ORDERS_AFTER_DEMOTION
    assert (case.zone, case.reason, case.author) == ("zone-2", "DEGRADED", "ann")


def test_a_broker_that_leads_no_partition_becomes_the_last_replica(cluster: SimulatedCluster) -> None:
    cluster.update_partition(TopicPartition("t", 1), leader=3)
    assert demote(cluster).outcome is ActionOutcome.DONE
    assert replica_orders(cluster) == ORDERS_AFTER_DEMOTION


def test_a_refused_action_changes_nothing_and_its_case_is_stored(cluster: SimulatedCluster) -> None:
    cluster.alerts = (degraded_alert(2), degraded_alert(3))
    case = demote(cluster)
    assert case.outcome is ActionOutcome.REFUSED
    assert cluster.cases == {"c1": case}
    assert cluster.requests == []
    assert case.ended == case.began


def test_the_previous_order_is_stored_before_it_is_changed() -> None:
    """Otherwise a demotion whose process is killed could not be undone."""

    @dataclass
    class KilledAtReorder(SimulatedCluster):
        def reorder_replicas(self, *_: object) -> None:
            stored_case = self.cases["c1"]
            assert stored_case.outcome is ActionOutcome.BEGUN
            assert decode_orders(stored_case.plan)[TopicPartition("t", 1)].before == (2, 3, 1)
            raise SystemExit

    cluster = KilledAtReorder(alerts=(degraded_alert(2),))
    with pytest.raises(SystemExit):
        demote(cluster)
    assert cluster.cases["c1"].is_open


def test_a_refusal_that_arises_after_the_first_step_stops_the_action(cluster: SimulatedCluster) -> None:
    def observe(excluded_case_id: str) -> ClusterSnapshot:
        if cluster.requests:
            cluster.alerts = (degraded_alert(2), degraded_alert(3))
        return cluster.observe(excluded_case_id)

    case = demote(cluster, cluster.create_executor(observe))
    assert case.outcome is ActionOutcome.FAILED
    assert cluster.requests == ["reorder 2"]
    assert "broker 3 is DEGRADED" in case.explanations[0]


@pytest.mark.parametrize(("confirmed", "requests"), [(0, []), (1, []), (2, ["reorder 2"])])
def test_a_process_that_loses_the_leadership_changes_nothing_more(
    cluster: SimulatedCluster, confirmed: int, requests: list[str]
) -> None:
    """Before the mark, before the new order, and before the election."""
    confirmations = iter([True] * confirmed + [False])
    case = demote(cluster, cluster.create_executor(is_leader=lambda: next(confirmations)))
    assert case.outcome is ActionOutcome.FAILED
    assert cluster.requests == requests
    assert bool(cluster.demotion_marks) is (confirmed > 0)


def test_a_demotion_fails_if_the_broker_still_leads_and_opens_the_circuit_breaker(
    cluster: SimulatedCluster,
) -> None:
    cluster.ignores_elections = True
    case = demote(cluster)
    assert case.outcome is ActionOutcome.FAILED
    assert case.explanations == ("after 5 s: broker 2 still leads 1 of its partitions",)
    refusals = find_refusals(DEMOTION, cluster.observe("another"), cluster.now, RULES[DEMOTION.kind])
    assert [refusal.reason for refusal in refusals] == [
        RefusalReason.ALREADY,
        RefusalReason.CIRCUIT_OPEN,
        RefusalReason.TOO_SOON,
    ]


@pytest.mark.parametrize("step", [timedelta(hours=1), -timedelta(hours=1)])
def test_a_step_of_the_wall_clock_does_not_move_the_end_of_a_verification(
    cluster: SimulatedCluster, step: timedelta
) -> None:
    cluster.ignores_elections, cluster.clock_step = True, step
    assert demote(cluster).explanations == ("after 5 s: broker 2 still leads 1 of its partitions",)
    assert cluster.waited_s == 5


@pytest.mark.parametrize("step", [timedelta(hours=1), -timedelta(hours=1)])
def test_a_step_of_the_wall_clock_does_not_move_how_long_a_problem_must_be_absent(
    cluster: SimulatedCluster, step: timedelta
) -> None:
    cluster.clock_step = step
    run = ActionRun(DEMOTION, demote(SimulatedCluster()), cluster.observe(""), cluster.create_executor())
    run.verify(lambda _: "", timedelta(minutes=5), holds=timedelta(seconds=30))
    assert cluster.waited_s == 30


def test_an_undo_restores_the_replica_orders_and_leaders(cluster: SimulatedCluster) -> None:
    before = cluster.metadata
    case = demote(cluster)
    cluster.alerts = ()
    case = cluster.create_executor().undo(case, None)
    assert case.outcome is ActionOutcome.UNDONE
    assert case.ended == cluster.now
    assert cluster.cases["c1"] == case
    assert cluster.metadata == before


def test_an_undo_keeps_what_an_operator_has_changed_since(cluster: SimulatedCluster) -> None:
    case = demote(cluster)
    cluster.alerts = ()
    cluster.update_partition(TopicPartition("t", 1), replicas=(1, 3, 2), leader=1)
    case = cluster.create_executor().undo(case, None)
    assert case.outcome is ActionOutcome.UNDONE
    assert case.explanations == ("t-1 not restored, because its replicas were changed to 1, 3, 2",)
    assert replica_orders(cluster) == {0: (1, 2, 3), 1: (1, 3, 2), 2: (3, 1, 2)}


def test_an_undo_during_the_alert_is_refused_unless_an_operator_gives_a_reason(
    cluster: SimulatedCluster,
) -> None:
    case = demote(cluster)
    with pytest.raises(UndoRefusedError) as refused:
        cluster.create_executor().undo(case, None)
    assert [refusal.reason for refusal in refused.value.refusals] == [RefusalReason.STILL_SICK]
    assert cluster.cases["c1"] == case
    undone = cluster.create_executor().undo(case, "a false alarm")
    assert (undone.outcome, undone.explanations) == (ActionOutcome.UNDONE, ("undone: a false alarm",))


def test_a_failed_undo_can_be_repeated(cluster: SimulatedCluster) -> None:
    before, case = cluster.metadata, demote(cluster)
    cluster.alerts, cluster.ignores_elections = (), True
    case = cluster.create_executor().undo(case, None)
    assert case.outcome is ActionOutcome.FAILED
    assert case.explanations[0].startswith("after 5 s: broker 2 does not lead 1 of 1 partitions again")
    cluster.ignores_elections = False
    assert cluster.create_executor().undo(case, None).outcome is ActionOutcome.UNDONE
    assert cluster.metadata == before


def test_an_undo_leaves_what_a_broker_that_is_gone_would_have_to_hold(cluster: SimulatedCluster) -> None:
    """Kafka would refuse the whole request, and the case would stay open for ever."""
    metadata = cluster.metadata
    cluster.metadata = replace(
        metadata, partitions=metadata.partitions | {TopicPartition("u", 0): build_partition(2, 1)}
    )
    case = demote(cluster)
    cluster.alerts = ()
    cluster.metadata = replace(cluster.metadata, brokers={1: build_broker(1), 2: build_broker(2)})
    case = cluster.create_executor().undo(case, "an operator's reason")
    assert case.outcome is ActionOutcome.UNDONE
    assert "t-0, t-1 not restored, because broker 3 is not registered any more" in case.explanations
    assert cluster.metadata.led_by(2) == {TopicPartition("u", 0)}
    assert cluster.demotion_marks == set()


def test_an_undo_does_not_wait_for_a_replica_that_is_out_of_sync(cluster: SimulatedCluster) -> None:
    case = demote(cluster)
    cluster.alerts = ()
    cluster.update_partition(TopicPartition("t", 1), in_sync=frozenset({1, 3}))
    case = cluster.create_executor().undo(case, "an operator's reason")
    assert case.outcome is ActionOutcome.UNDONE
    assert case.explanations[-1].startswith("t-1 not led by broker 2 again until it has caught up")
    assert replica_orders(cluster)[1] == (2, 3, 1)


@pytest.mark.parametrize(
    ("change", "explanation"),
    [
        (None, "t-1 deleted during the undo"),
        (build_partition(1, 3), "t-1 reassigned during the undo"),
    ],
)
def test_an_undo_goes_on_although_a_partition_changes_meanwhile(
    change: PartitionMetadata | None, explanation: str
) -> None:
    changed = TopicPartition("t", 1)

    @dataclass
    class ChangingCluster(SimulatedCluster):
        def elect_preferred_leaders(self, partitions: Iterable[TopicPartition]) -> None:
            super().elect_preferred_leaders(partitions)
            if self.is_undoing:
                others = {each: value for each, value in self.metadata.partitions.items() if each != changed}
                partitions_now = others if change is None else others | {changed: change}
                self.metadata = replace(self.metadata, partitions=partitions_now)

        is_undoing: bool = False

    cluster = ChangingCluster(alerts=(degraded_alert(2),))
    case = demote(cluster)
    cluster.alerts, cluster.is_undoing = (), True
    case = cluster.create_executor().undo(case, None)
    assert (case.outcome, case.explanations) == (ActionOutcome.UNDONE, (explanation,))
    assert cluster.demotion_marks == set()


def test_leadership_is_returned_in_batches_a_minute_apart(leading_cluster: SimulatedCluster) -> None:
    cluster, before = leading_cluster, leading_cluster.metadata
    case = demote(cluster)
    cluster.alerts, cluster.requests, began = (), [], cluster.now
    case = cluster.create_executor(limits=TWO_PER_MINUTE).undo(case, None)
    assert (case.outcome, case.ended) == (ActionOutcome.UNDONE, began + 2 * MINUTE)
    assert cluster.requests == ["reorder 3", "elect 2", "reorder 2", "elect 2", "reorder 1", "elect 1"]
    assert cluster.metadata == before
    assert cluster.demotion_marks == set()


def test_a_change_by_an_operator_between_two_batches_is_kept(leading_cluster: SimulatedCluster) -> None:
    cluster = leading_cluster
    case = demote(cluster)
    cluster.alerts = ()

    def observe(excluded_case_id: str) -> ClusterSnapshot:
        if TopicPartition("t", 0) in cluster.metadata.led_by(2):
            cluster.update_partition(TopicPartition("t", 4), replicas=(1, 3, 2), leader=1)
        return cluster.observe(excluded_case_id)

    case = cluster.create_executor(observe, limits=TWO_PER_MINUTE).undo(case, None)
    assert case.outcome is ActionOutcome.UNDONE
    assert case.explanations == ("t-4 not restored, because its replicas were changed to 1, 3, 2",)
    assert cluster.metadata.led_by(2) == {TopicPartition("t", number) for number in range(4)}
    assert replica_orders(cluster)[4] == (1, 3, 2)


@pytest.mark.parametrize(
    ("reason", "outcome", "led"),
    [(None, ActionOutcome.FAILED, 2), ("an experiment", ActionOutcome.UNDONE, 5)],
)
def test_an_alert_between_two_batches_ends_the_undo_unless_an_operator_gave_a_reason(
    leading_cluster: SimulatedCluster, reason: str | None, outcome: ActionOutcome, led: int
) -> None:
    cluster = leading_cluster
    case = demote(cluster)
    cluster.alerts = ()

    def observe(excluded_case_id: str) -> ClusterSnapshot:
        cluster.alerts = (degraded_alert(2),) if cluster.metadata.led_by(2) else ()
        return cluster.observe(excluded_case_id)

    case = cluster.create_executor(observe, limits=TWO_PER_MINUTE).undo(case, reason)
    assert (case.outcome, len(cluster.metadata.led_by(2))) == (outcome, led)
    if not reason:
        assert case.explanations[0].startswith("broker 2 is DEGRADED since")
        assert cluster.demotion_marks == {2}


def test_a_quarantined_broker_is_out_of_sync_until_the_undo(cluster: SimulatedCluster) -> None:
    before = cluster.metadata
    case = quarantine(cluster)
    assert case.outcome is ActionOutcome.DONE
    assert decode_throttles(case.plan) == {"t": "0:2,1:2,2:2"}
    assert cluster.requests == ["throttle ['t']", "restart"]
    assert in_sync_flags(cluster) == [False] * 3
    cluster.alerts = ()
    case = cluster.create_executor().undo(case, None)
    assert case.outcome is ActionOutcome.UNDONE
    assert in_sync_flags(cluster) == [True] * 3
    assert cluster.metadata.throttled_topics == before.throttled_topics


def test_a_quarantine_fails_if_nothing_is_produced(cluster: SimulatedCluster) -> None:
    cluster.idle_partitions = frozenset(cluster.metadata.partitions)
    case = quarantine(cluster)
    assert case.outcome is ActionOutcome.FAILED
    assert "in sync in all partitions: too little is produced to keep it out" in case.explanations[0]


def test_a_quarantine_fails_if_the_broker_is_out_of_sync_only_while_it_starts(
    cluster: SimulatedCluster,
) -> None:
    """Every restarted broker is out of sync for a moment."""

    def observe(excluded_case_id: str) -> ClusterSnapshot:
        if "restart" in cluster.requests and cluster.now > NOON + timedelta(seconds=5):
            for partition, metadata in cluster.metadata.partitions.items():
                cluster.update_partition(partition, in_sync=metadata.in_sync | {2})
        return cluster.observe(excluded_case_id)

    case = quarantine(cluster, cluster.create_executor(observe))
    assert case.outcome is ActionOutcome.FAILED
    assert "in sync in all partitions: too little is produced to keep it out" in case.explanations[0]


def test_a_quarantine_whose_restart_command_fails_can_be_undone(cluster: SimulatedCluster) -> None:
    cluster.restart_fails = True
    case = quarantine(cluster)
    assert (case.outcome, case.explanations) == (ActionOutcome.FAILED, ("systemctl exited with 1",))
    cluster.alerts = ()
    assert cluster.create_executor().undo(case, None).outcome is ActionOutcome.UNDONE
    assert not cluster.metadata.throttled_topics


def test_a_quarantine_is_undone_although_the_broker_needs_long_to_catch_up(
    cluster: SimulatedCluster,
) -> None:
    case = quarantine(cluster)
    cluster.alerts, cluster.catches_up = (), False
    case = cluster.create_executor().undo(case, None)
    assert case.outcome is ActionOutcome.UNDONE
    assert case.explanations == (
        "after 300 s: broker 2 is out of sync in 3 of 3 partitions; it continues to catch up",
    )


def test_a_quarantine_of_a_broker_that_does_not_answer_is_undone(cluster: SimulatedCluster) -> None:
    case = quarantine(cluster)
    cluster.alerts, cluster.is_silent = (), True
    failed = cluster.create_executor().undo(case, None)
    assert failed.outcome is ActionOutcome.FAILED
    assert "give a --reason to close the case without it" in failed.explanations[0]
    undone = cluster.create_executor().undo(case, "its host is gone")
    assert undone.outcome is ActionOutcome.UNDONE
    assert "broker 2 does not answer: its rate of follower.replication" in undone.explanations[-1]
    assert cluster.metadata.throttled_topics == frozenset()


def test_a_restart_ends_once_the_broker_has_returned(cluster: SimulatedCluster) -> None:
    cluster.alerts = (DOWN_ALERT,)
    case = cluster.create_executor().apply(RESTART, "c1", "ann", "BROKER_DOWN")
    assert (case.outcome, case.is_open, case.ended) == (ActionOutcome.DONE, False, cluster.now)
    assert cluster.requests == ["restart"]


def test_a_restart_fails_if_the_broker_is_fenced_when_its_previous_session_expires(
    cluster: SimulatedCluster,
) -> None:
    """Until then, a killed broker that does not return appears registered and in sync."""

    def observe(excluded_case_id: str) -> ClusterSnapshot:
        if "restart" in cluster.requests and cluster.now >= NOON + timedelta(seconds=9):
            cluster.update_broker(2, fenced=True)
        return cluster.observe(excluded_case_id)

    cluster.alerts = (DOWN_ALERT,)
    case = cluster.create_executor(observe).apply(RESTART, "c1", "ann", "STORAGE_STALLED")
    assert (case.outcome, case.explanations) == (
        ActionOutcome.FAILED,
        ("after 300 s: broker 2 has not returned",),
    )


def test_an_operator_can_close_a_failed_restart(cluster: SimulatedCluster) -> None:
    cluster.alerts, cluster.restart_fails = (DOWN_ALERT,), True
    case = cluster.create_executor().apply(RESTART, "c1", "ann", "BROKER_DOWN")
    assert (case.outcome, case.is_open) == (ActionOutcome.FAILED, True)
    cluster.alerts = ()
    undone = cluster.create_executor().undo(case, "started manually")
    assert undone.outcome is ActionOutcome.UNDONE


def test_the_start_of_an_undo_is_stored_before_anything_is_changed() -> None:
    """Otherwise the controller would repeat an undo for as long as it cannot store that it was completed."""

    @dataclass
    class FullDisk(SimulatedCluster):
        is_full: bool = False

        def update_case(self, case: ActionCase) -> None:
            if self.is_full:
                raise OSError("no space")
            super().update_case(case)

    cluster = FullDisk(alerts=(degraded_alert(2),))
    case = demote(cluster)
    cluster.alerts, cluster.is_full, cluster.requests = (), True, []
    with pytest.raises(OSError, match="no space"):
        cluster.create_executor().undo(case, None)
    assert (cluster.requests, cluster.cases["c1"]) == ([], case)
    cluster.is_full = False
    undone = cluster.create_executor().undo(case, "the broker is healthy")
    assert (undone.undone_since, undone.overruled) == (cluster.now, True)


def test_closing_a_failed_case_does_not_overrule_the_decision_to_act(cluster: SimulatedCluster) -> None:
    cluster.ignores_elections = True
    failed = demote(cluster)
    cluster.ignores_elections = False
    closed = cluster.create_executor().undo(failed, "repaired")
    assert (failed.outcome, closed.outcome, closed.overruled) == (
        ActionOutcome.FAILED,
        ActionOutcome.UNDONE,
        False,
    )


def test_a_demotion_keeps_an_order_that_an_operator_sets_after_the_snapshot() -> None:
    @dataclass
    class ReorderedByOperator(SimulatedCluster):
        def set_demotion_mark(self, broker_id: int, *, demoted: bool) -> None:
            super().set_demotion_mark(broker_id, demoted=demoted)
            if demoted:
                self.update_partition(TopicPartition("t", 1), replicas=(2, 1, 3))

    cluster = ReorderedByOperator(alerts=(degraded_alert(2),))
    case = demote(cluster)
    assert case.outcome is ActionOutcome.FAILED
    assert case.explanations == ("the order of replicas was changed in the meantime",)
    assert replica_orders(cluster) == {0: (1, 2, 3), 1: (2, 1, 3), 2: (3, 1, 2)}


@pytest.mark.parametrize("action", [ActionKind.DEMOTE, ActionKind.QUARANTINE_RESTART])
def test_the_case_of_a_removed_broker_is_closed_and_leaves_no_mark_or_throttle(
    cluster: SimulatedCluster, action: ActionKind
) -> None:
    case = cluster.create_executor().apply(ActionRequest(action, "orders", 2), "c1", "ann", "DEGRADED")
    cluster.alerts = ()
    cluster.metadata = replace(cluster.metadata, brokers={1: build_broker(1), 3: build_broker(3)})
    undone = cluster.create_executor().undo(case, "replaced by broker 4")
    assert undone.outcome is ActionOutcome.UNDONE
    assert undone.explanations[0] == "undone: replaced by broker 4"
    assert "broker 2 is not registered any more: nothing is returned to it" in undone.explanations[-1]
    assert (cluster.demotion_marks, cluster.metadata.throttled_topics) == (set(), frozenset())


@pytest.mark.parametrize("fault", [KeyError("min.insync.replicas"), OSError("no space"), RuntimeError()])
def test_any_error_after_the_first_change_is_stored_as_a_failure(
    cluster: SimulatedCluster, fault: Exception
) -> None:
    def observe(excluded_case_id: str) -> ClusterSnapshot:
        if cluster.requests:
            raise fault
        return cluster.observe(excluded_case_id)

    case = demote(cluster, cluster.create_executor(observe))
    assert (case.outcome, cluster.cases["c1"]) == (ActionOutcome.FAILED, case)
    assert case.explanations == (f"{type(fault).__name__}: {fault}",)


def test_a_result_that_cannot_be_stored_is_reported_and_opens_the_circuit_breaker() -> None:
    @dataclass
    class UnwritableAuditLog(SimulatedCluster):
        def update_case(self, case: ActionCase) -> None:
            raise RuntimeError("commit failed")

    cluster = UnwritableAuditLog(alerts=(degraded_alert(2),))
    case = demote(cluster)
    assert case.outcome is ActionOutcome.DONE
    assert case.explanations == ("not stored in ops/actions: RuntimeError: commit failed",)
    refusals = find_refusals(DEMOTION, cluster.observe("another"), cluster.now, RULES[DEMOTION.kind])
    assert RefusalReason.CIRCUIT_OPEN in [refusal.reason for refusal in refusals]


def test_a_broker_is_marked_as_demoted_from_before_the_first_change_until_the_undo() -> None:
    """Agents read the mark, and leave the broker's probe partition to other leaders meanwhile."""

    @dataclass
    class MarkedBeforeReorder(SimulatedCluster):
        def reorder_replicas(
            self,
            orders: Mapping[TopicPartition, Sequence[int]],
            expected: Mapping[TopicPartition, ReplicaOrder],
        ) -> None:
            assert self.demotion_marks == {2}
            super().reorder_replicas(orders, expected)

    cluster = MarkedBeforeReorder(alerts=(degraded_alert(2),))
    case = demote(cluster)
    assert cluster.demotion_marks == {2}
    cluster.alerts = ()
    cluster.create_executor().undo(case, None)
    assert cluster.demotion_marks == set()
