"""Receivers see the outcomes of actions, whenever the notifier reads the cases while an action runs."""

import time
from dataclasses import dataclass, field, replace
from datetime import timedelta

import pytest

from fleetgauge_core.fleet import Notifier
from fleetgauge_core.tables import ActionKind, ActionOutcome
from fleetgauge_operations.actions.case_notifier import CaseNotifier
from fleetgauge_operations.actions.plan.case import ActionCase, ActionRequest
from fleetgauge_operations.notify.outbox import RetryPolicy
from fleetgauge_operations.notify.outboxes import RESENT, Outboxes
from tests.receiver import Receiver
from tests.unit.operations.mitigation.simulated_cluster import NOON, SimulatedCluster, degraded_alert

DEMOTION = ActionRequest(ActionKind.DEMOTE, "orders", 2)


@dataclass
class NotifyingCluster(SimulatedCluster):
    """A cluster whose cases are notified after every write, as another thread may do at any time."""

    receiver: Receiver = field(default_factory=Receiver)

    def __post_init__(self) -> None:
        notifiers = [Notifier(kind="webhook", url=self.receiver.url)]
        policy = RetryPolicy(first_pause_s=0, longest_pause_s=0)
        outboxes = Outboxes(notifiers, lambda: NOON, time.monotonic, RESENT, policy)
        self.notifier = CaseNotifier(self, outboxes, lambda: NOON)

    def add_case(self, case: ActionCase) -> None:
        super().add_case(case)
        self.notify()

    def update_case(self, case: ActionCase) -> None:
        super().update_case(case)
        self.notify()

    def amend_case(self, case_id: str, change: object) -> None:
        assert callable(change)
        changed = change(self.cases[case_id])
        if changed is not None:
            self.cases[case_id] = changed

    def notify(self) -> None:
        self.notifier.notify(list(self.cases.values()))
        self.notifier.send()

    def sent(self) -> list[tuple[str, str]]:
        return [(body["kind"].removeprefix("MITIGATION_"), body["status"]) for body in self.receiver.bodies]


@pytest.fixture
def cluster(receiver: Receiver) -> NotifyingCluster:
    return NotifyingCluster(alerts=(degraded_alert(2),), receiver=receiver)


def test_a_refusal_is_sent_once_and_fires(cluster: NotifyingCluster) -> None:
    cluster.alerts += (degraded_alert(3),)
    cluster.create_executor().apply(DEMOTION, "c1", "ann", "DEGRADED", must_notify=True)
    cluster.notify()
    assert cluster.sent() == [("REFUSED", "firing")]


def test_an_undo_is_sent_when_it_ends_and_not_when_it_begins(cluster: NotifyingCluster) -> None:
    case = cluster.create_executor().apply(DEMOTION, "c1", "ann", "DEGRADED", must_notify=True)
    assert case.outcome is ActionOutcome.DONE
    cluster.alerts = ()
    cluster.create_executor().undo(cluster.cases["c1"], None)
    assert [kind for kind, _ in cluster.sent()] == ["DONE", "UNDONE"]


def test_an_undo_that_fails_again_pages_again(cluster: NotifyingCluster) -> None:
    cluster.ignores_elections = True
    failed = cluster.create_executor().apply(DEMOTION, "c1", "ann", "DEGRADED", must_notify=True)
    assert failed.outcome is ActionOutcome.FAILED
    cluster.now += timedelta(minutes=1)
    cluster.alerts = ()
    for partition, order in list(cluster.metadata.partitions.items()):
        cluster.update_partition(partition, leader=order.replicas[0] if order.replicas[0] != 2 else 1)
    cluster.create_executor().undo(cluster.cases["c1"], "repaired")
    assert [kind for kind, _ in cluster.sent()] == ["FAILED", "FAILED"]
    assert replace(cluster.cases["c1"], accepted_by=None).is_open
