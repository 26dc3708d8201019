"""The steps by which each kind of mitigation changes a cluster."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Protocol

from fleetgauge_core.kafka import FOLLOWER_THROTTLED_RATE
from fleetgauge_core.metadata import TopicPartition
from fleetgauge_core.tables import ActionKind
from fleetgauge_operations.actions.executor import ActionFailedError, ActionRun, ActionSteps
from fleetgauge_operations.actions.plan.refusal import format_partitions
from fleetgauge_operations.mitigation.plan.demotion import (
    ReplicaOrder,
    Restoration,
    check_demoted,
    check_restored,
    decode_orders,
    encode_orders,
    find_electable,
    find_led_by_need,
    find_unreturned,
    plan_restoration,
)
from fleetgauge_operations.mitigation.plan.limits import MitigationLimits
from fleetgauge_operations.mitigation.plan.restarts import (
    check_in_sync,
    check_quarantined,
    check_restarted,
    decode_throttles,
)

#: Metadata shows an election within milliseconds.
_ELECTION_TIMEOUT = timedelta(seconds=5)
#: A broker starts within a minute, and catches up at the speed of its disk and network.
_RESTART_TIMEOUT = timedelta(minutes=5)
#: A killed broker remains registered until its session expires, by default after 9 s.
_RESTARTED_FOR = timedelta(seconds=30)
#: Every restarted broker is out of sync for a moment.
_QUARANTINED_FOR = timedelta(seconds=30)
_MINUTE_S = 60.0


class ClusterControl(Protocol):
    """The changes that mitigation makes to a cluster. All methods raise KafkaUnavailableError."""

    def set_demotion_mark(self, broker_id: int, *, demoted: bool) -> None:
        """Tell the cluster's agents whether to leave the broker's probe partition to other leaders."""

    def reorder_replicas(
        self,
        orders: Mapping[TopicPartition, Sequence[int]],
        expected: Mapping[TopicPartition, ReplicaOrder],
    ) -> None:
        """Change the order of replicas if all partitions have one of the expected orders, else nothing."""

    def elect_preferred_leaders(self, partitions: Iterable[TopicPartition]) -> None:
        """Elect the first replicas as leaders."""

    def throttle_replication(self, broker_id: int, replicas: Mapping[str, str]) -> None:
        """Throttle the broker's replication of these replicas, which are by topic."""

    def remove_throttle(self, broker_id: int, replicas: Mapping[str, str], *, registered: bool) -> bool:
        """Remove the throttle; settings that were changed since are left unchanged.

        Returns: False if the broker does not tell its rate, which is left then.
        """

    def restart_broker(self, broker_id: int) -> None:
        """Run the restart command. Raises: RestartCommandError if it fails."""


class RestartCommandError(ActionFailedError):
    """The command that restarts a broker failed; the message is one line."""


def build_steps(cluster: ClusterControl, limits: MitigationLimits) -> Mapping[ActionKind, ActionSteps]:
    """Return the steps of each kind that can be applied; an evacuation is always refused."""
    return {
        ActionKind.DEMOTE: DemotionSteps(cluster, limits.max_led_per_minute),
        ActionKind.RESTART: RestartSteps(cluster),
        ActionKind.QUARANTINE_RESTART: QuarantineSteps(cluster),
    }


@dataclass(frozen=True, slots=True)
class DemotionSteps:
    """Move the leadership of a broker's partitions away, and return it in batches."""

    cluster: ClusterControl
    max_led_per_minute: int

    def apply(self, run: ActionRun) -> None:
        """Make the broker the last replica of its partitions, and elect their first replicas."""
        orders = decode_orders(run.case.plan)
        run.require_leadership()
        self.cluster.set_demotion_mark(run.broker_id, demoted=True)
        run.require_leadership()
        self.cluster.reorder_replicas({partition: order.after for partition, order in orders.items()}, orders)
        metadata = run.check_again()
        run.require_leadership()
        self.cluster.elect_preferred_leaders(find_electable(metadata, run.broker_id))
        run.verify(lambda metadata: check_demoted(metadata, run.broker_id, orders), _ELECTION_TIMEOUT)
        if kept := find_led_by_need(metadata, run.broker_id):
            run.explain(
                f"{len(kept)} partitions stay with broker {run.broker_id}, because no other replica is "
                f"in sync: {format_partitions(kept)}"
            )

    def undo(self, run: ActionRun) -> None:
        """Restore the order of replicas, and return leadership in batches a minute apart."""
        orders = decode_orders(run.case.plan)
        restoration = plan_restoration(run.snapshot.metadata, orders)
        _explain(run, restoration.kept)
        first, *later = restoration.split_into_batches(run.broker_id, self.max_led_per_minute)
        self._restore_batch(run, orders, first)
        for batch in later:
            run.wait(_MINUTE_S)
            remaining = {partition: orders[partition] for partition in batch.orders}
            restoration = plan_restoration(run.check_undo_again(encode_orders(remaining)), remaining)
            self._restore_batch(run, orders, restoration)
            _explain(run, restoration.kept)
        run.require_leadership()
        self.cluster.set_demotion_mark(run.broker_id, demoted=False)

    def clean_up(self, run: ActionRun) -> None:
        """Remove the mark."""
        _explain(run, plan_restoration(run.snapshot.metadata, decode_orders(run.case.plan)).kept)
        run.require_leadership()
        self.cluster.set_demotion_mark(run.broker_id, demoted=False)

    def _restore_batch(
        self, run: ActionRun, expected: Mapping[TopicPartition, ReplicaOrder], restoration: Restoration
    ) -> None:
        run.require_leadership()
        self.cluster.reorder_replicas(restoration.orders, expected)
        run.require_leadership()
        self.cluster.elect_preferred_leaders(restoration.led_by(run.broker_id))
        metadata = run.verify(
            lambda metadata: check_restored(metadata, run.broker_id, restoration.orders), _ELECTION_TIMEOUT
        )
        _explain(run, find_unreturned(metadata, run.broker_id, restoration.orders))


@dataclass(frozen=True, slots=True)
class RestartSteps:
    """Restart a broker. An undo changes nothing: the case is closed once the broker works."""

    cluster: ClusterControl

    def apply(self, run: ActionRun) -> None:
        """Restart the broker, and wait until it works."""
        run.require_leadership()
        self.cluster.restart_broker(run.broker_id)
        _wait_until_restarted(run)

    def undo(self, run: ActionRun) -> None:
        """Wait until the broker works."""
        _wait_until_restarted(run)

    def clean_up(self, run: ActionRun) -> None:
        """Change nothing: a restart leaves nothing behind."""


@dataclass(frozen=True, slots=True)
class QuarantineSteps:
    """Restart a broker with throttled replication, and remove the throttle."""

    cluster: ClusterControl

    def apply(self, run: ActionRun) -> None:
        """Throttle the replication to the broker, restart it, and wait until it is out of sync."""
        run.require_leadership()
        self.cluster.throttle_replication(run.broker_id, decode_throttles(run.case.plan))
        run.check_again()
        run.require_leadership()
        self.cluster.restart_broker(run.broker_id)
        run.verify(
            lambda metadata: check_quarantined(metadata, run.broker_id),
            _RESTART_TIMEOUT,
            holds=_QUARANTINED_FOR,
        )

    def undo(self, run: ActionRun) -> None:
        """Remove the throttle; a broker that has not caught up after five minutes is not a failure."""
        run.require_leadership()
        throttles = decode_throttles(run.case.plan)
        if not self.cluster.remove_throttle(run.broker_id, throttles, registered=True):
            if run.request.reason is None:
                raise ActionFailedError(
                    f"broker {run.broker_id} does not answer, so that its {FOLLOWER_THROTTLED_RATE} is still "
                    "set; give a --reason to close the case without it"
                )
            run.explain(
                f"broker {run.broker_id} does not answer: its rate of {FOLLOWER_THROTTLED_RATE} stays set, "
                "and throttles nothing without replicas"
            )
            return
        try:
            run.verify(lambda metadata: check_in_sync(metadata, run.broker_id), _RESTART_TIMEOUT)
        except ActionFailedError as error:
            run.explain(f"{error}; it continues to catch up")

    def clean_up(self, run: ActionRun) -> None:
        """Remove the throttle from the topics."""
        run.require_leadership()
        self.cluster.remove_throttle(run.broker_id, decode_throttles(run.case.plan), registered=False)


def _wait_until_restarted(run: ActionRun) -> None:
    run.verify(
        lambda metadata: check_restarted(metadata, run.broker_id), _RESTART_TIMEOUT, holds=_RESTARTED_FOR
    )


def _explain(run: ActionRun, partitions: Mapping[TopicPartition, str]) -> None:
    """Add an explanation for each reason, with the partitions that it applies to."""
    for explanation in sorted(set(partitions.values())):
        affected = [partition for partition, reason in partitions.items() if reason == explanation]
        run.explain(f"{format_partitions(affected)} {explanation}")
