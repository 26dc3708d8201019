"""Translate the committed offsets of consumer groups and commit them in the passive cluster."""

import logging
import re
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from fleetgauge_core.fleet import FailoverGroups, Fleet
from fleetgauge_core.kafka import CommittedOffset, ConsumerGroups, GroupHasMembersError, TopicOffsets
from fleetgauge_core.metadata import TopicPartition
from fleetgauge_operations.recovery.mirror_observer import CLIENT_ID
from fleetgauge_operations.recovery.offsets.checkpoint import LogRange
from fleetgauge_operations.recovery.offsets.mirror_state import ReplicationState
from fleetgauge_operations.recovery.plan.sync_decision import (
    ClusterPair,
    CommittedPosition,
    PassivePartition,
    SyncDecision,
    SyncVerdict,
    decide_sync,
    passive_topic,
)

_log = logging.getLogger("fleetgauge.recover")

#: Metadata committed with an offset: the active cluster and the offset there that it was translated from.
_METADATA = re.compile(r"fleetgauge (?P<active>\S+) (?P<offset>\d+)")


@dataclass(frozen=True, slots=True)
class GroupSyncPlan:
    """The decisions on all partitions of one group; ``was_applied`` if they have been committed."""

    group: str
    pair: ClusterPair
    decisions: tuple[SyncDecision, ...]
    was_applied: bool = False

    @property
    def is_ok(self) -> bool:
        """Whether the group can resume in all partitions."""
        return all(decision.verdict.is_ok for decision in self.decisions)

    @property
    def without_writes(self) -> "GroupSyncPlan":
        """The plan if nothing is written: the group resumes from what is committed in the passive cluster."""
        return replace(self, decisions=tuple(map(_without_write, self.decisions)))


def _without_write(decision: SyncDecision) -> SyncDecision:
    """Return the decision if nothing is written.

    The committed offset may be higher than the translated one, or lie before the log start offset.
    """
    committed, log = decision.passive.committed, decision.passive.log
    if decision.verdict is not SyncVerdict.WRITE or decision.resume is None:
        return decision
    if committed is None or (log is not None and committed < log.start):
        return replace(decision, resume=None)
    verdict = SyncVerdict.BACKWARDS if committed > decision.resume else decision.verdict
    return replace(decision, resume=committed, verdict=verdict)


class GroupOffsetSync:
    """The groups of one entry of recovery.groups. All methods raise KafkaUnavailableError."""

    def __init__(self, fleet: Fleet, groups: FailoverGroups, now_ms: Callable[[], int]) -> None:
        self._recovery = fleet.recovery
        self._group_pattern = re.compile(groups.groups)
        self.pair = ClusterPair(groups.active, groups.passive)
        active, passive = (fleet.cluster(cluster).access for cluster in (groups.active, groups.passive))
        self._active_groups = ConsumerGroups(active, CLIENT_ID)
        self._passive_groups = ConsumerGroups(passive, CLIENT_ID)
        self._active_offsets, self._passive_offsets = (
            TopicOffsets(access, CLIENT_ID) for access in (active, passive)
        )
        self._now_ms = now_ms
        self._is_started = False

    def _start(self) -> None:
        """Prepare the clients. Raises: KafkaUnavailableError if credentials cannot be read."""
        for client in (
            self._active_groups,
            self._passive_groups,
            self._active_offsets,
            self._passive_offsets,
        ):
            client.start()
        self._is_started = True

    def stop(self) -> None:
        """Close the clients."""
        for client in (self._active_groups, self._passive_groups):
            client.stop()

    def plan_groups(self, state: ReplicationState, only: str | None = None) -> Iterator[GroupSyncPlan]:
        """Yield the plan of each group that has committed offsets, or of the group ``only``.

        Writes nothing.
        """
        if not self._is_started:
            self._start()
        matching = (
            group for group in self._active_groups.list_group_ids() if self._group_pattern.fullmatch(group)
        )
        selected = [group for group in matching if only in (None, group)]
        active_committed = self._active_groups.read_committed_offsets(selected)
        for group in sorted({*selected} - {*active_committed}):
            _log.warning("%s: no permission to read its offsets in %s", group, self.pair.active)
        groups = sorted(group for group, offsets in active_committed.items() if offsets)
        passive_committed = self._passive_groups.read_committed_offsets(groups)
        with_members = self._passive_groups.find_groups_with_members(groups)
        for group in groups:
            decisions = self._decide(
                state, active_committed[group], passive_committed.get(group, {}), group in with_members
            )
            if group not in passive_committed:
                _log.warning("%s: no permission to read its offsets in %s", group, self.pair.passive)
                decisions = _replace_writes(decisions, SyncVerdict.FAILED)
            for decision in decisions:
                if decision.passive.log:
                    state.expire(decision.passive_routes, decision.passive.log.start)
            yield GroupSyncPlan(group, self.pair, decisions)

    def apply(self, plan: GroupSyncPlan) -> GroupSyncPlan:
        """Commit the offsets to be written in the passive cluster, and read them back."""
        offsets = {
            _passive_topic_partition(decision): CommittedOffset(
                decision.resume, self._format_metadata(decision.position)
            )
            for decision in plan.decisions
            if decision.verdict is SyncVerdict.WRITE and decision.resume is not None
        }
        if not offsets:
            return plan
        try:
            errors = self._passive_groups.commit_offsets(plan.group, offsets)
        except GroupHasMembersError:
            return replace(plan, decisions=_replace_writes(plan.decisions, SyncVerdict.GROUP_HAS_MEMBERS))
        for partition, error in errors.items():
            _log.warning(
                "%s: %s/%d: offset not committed: %s",
                plan.group,
                partition.topic,
                partition.partition,
                error,
            )
        committed = self._passive_groups.read_committed_offsets([plan.group]).get(plan.group, {})
        failed = {partition for partition, offset in offsets.items() if committed.get(partition) != offset}
        decisions = tuple(
            replace(decision, verdict=SyncVerdict.FAILED)
            if _passive_topic_partition(decision) in failed
            else decision
            for decision in plan.decisions
        )
        return replace(plan, decisions=decisions, was_applied=True)

    def _decide(
        self,
        state: ReplicationState,
        active_committed: Mapping[TopicPartition, CommittedOffset],
        passive_committed: Mapping[TopicPartition, CommittedOffset],
        has_members: bool,
    ) -> tuple[SyncDecision, ...]:
        led = self._active_offsets.select_led_partitions(active_committed)
        ends = self._active_offsets.read_end_offsets(led)
        logs = self._read_passive_logs(active_committed)
        decisions = []
        for partition, offset in sorted(active_committed.items()):
            replica = TopicPartition(
                passive_topic(self._recovery, self.pair, partition.topic) or partition.topic,
                partition.partition,
            )
            previous = passive_committed.get(replica)
            passive = PassivePartition(
                topic=replica.topic,
                partition=replica.partition,
                log=logs.get(partition),
                has_members=has_members,
                committed=previous.offset if previous else None,
                synced_position=self._parse_metadata(previous.metadata) if previous else None,
            )
            position = CommittedPosition(
                partition.topic, partition.partition, offset.offset, ends.get(partition, offset.offset)
            )
            decisions.append(decide_sync(position, passive, self.pair, self._recovery, state, self._now_ms()))
        return tuple(decisions)

    def _read_passive_logs(self, partitions: Collection[TopicPartition]) -> Mapping[TopicPartition, LogRange]:
        """Return the logs of the replicas that exist, by the active cluster's partitions."""
        replicas = {
            partition: TopicPartition(topic, partition.partition)
            for partition in partitions
            if (topic := passive_topic(self._recovery, self.pair, partition.topic))
        }
        led = self._passive_offsets.select_led_partitions(set(replicas.values()))
        starts = self._passive_offsets.read_start_offsets(led)
        ends = self._passive_offsets.read_end_offsets(led)
        return {
            partition: LogRange(starts[replica], ends[replica])
            for partition, replica in replicas.items()
            if replica in starts and replica in ends
        }

    def _format_metadata(self, position: CommittedPosition) -> str:
        return f"fleetgauge {self.pair.active} {position.committed}"

    def _parse_metadata(self, metadata: str) -> int | None:
        match = _METADATA.fullmatch(metadata)
        return int(match["offset"]) if match and match["active"] == self.pair.active else None


def _passive_topic_partition(decision: SyncDecision) -> TopicPartition:
    return TopicPartition(decision.passive.topic, decision.passive.partition)


def _replace_writes(decisions: Sequence[SyncDecision], verdict: SyncVerdict) -> tuple[SyncDecision, ...]:
    """Replace the verdict of all decisions to write."""
    return tuple(
        replace(decision, verdict=verdict) if decision.verdict is SyncVerdict.WRITE else decision
        for decision in decisions
    )
