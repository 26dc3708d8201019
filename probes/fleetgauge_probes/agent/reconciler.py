"""Reconciles a cluster's probe topic with its plan, within what the cluster permits."""

import logging
from collections.abc import Callable, Mapping, Sequence

from fleetgauge_core.fleet import Cluster
from fleetgauge_core.kafka import ClusterAdmin, KafkaRequestRejectedError, TopicSpec, reassign_topic
from fleetgauge_core.metadata import PartitionMetadata
from fleetgauge_probes.agent.topic_plan import (
    ALL_CAPABILITIES,
    TOPIC,
    HomeBroker,
    PartitionAddition,
    PreferredLeaderElection,
    ProbeTopicState,
    ReplicaReassignment,
    SettingUpdate,
    TopicAction,
    TopicCreation,
    narrow_capabilities,
    plan_probe_topic,
)

_log = logging.getLogger("fleetgauge.probe")

_SECOND_NS = 1_000_000_000
#: Time from the end of an action until one of its kind is repeated: an election is retried soon, the others
#: take longer to become visible.
_REPEAT_AFTER_NS: Mapping[type[TopicAction], int] = {
    PreferredLeaderElection: 3 * _SECOND_NS,
    ReplicaReassignment: 10 * _SECOND_NS,
    SettingUpdate: 10 * _SECOND_NS,
}
_READ_SETTINGS_EVERY_NS = 10 * _SECOND_NS
#: Rejected actions are attempted again after this time, as the permission may have been granted meanwhile.
_RETRY_REJECTED_NS = 300 * _SECOND_NS


#: Settings are rejected one by one: a provider may forbid some of them.
_ActionKind = type[TopicAction] | str


def _kind_of(action: TopicAction) -> _ActionKind:
    return action.key if isinstance(action, SettingUpdate) else type(action)


class Reconciler:
    """Applies the plan of one cluster's probe topic. For use by a single thread.

    Where the cluster is not ``managed`` it changes nothing and logs the actions that are due.
    """

    def __init__(self, admin: ClusterAdmin, uptime_ns: Callable[[], int]) -> None:
        """Start without any rejected actions; ``uptime_ns`` reads a monotonic clock."""
        self._admin = admin
        self._uptime_ns = uptime_ns
        self._settings: Mapping[str, str] = {}
        self._read_settings_at_ns = 0
        self._not_before_ns: dict[_ActionKind, int] = {}
        self._capabilities = ALL_CAPABILITIES
        self._rejected: dict[_ActionKind, str] = {}
        self._forget_rejections_at_ns = 0
        self._logged: set[str] = set()
        self._plan_input: tuple[tuple[HomeBroker, ...], frozenset[int], ProbeTopicState | None] | None = None
        self._plan: Sequence[TopicAction] = ()
        self.pending_actions = 0
        """How many actions are due but were rejected, or are left to an administrator."""

    def reconcile(
        self,
        cluster: Cluster,
        homes: Sequence[HomeBroker],
        responding: frozenset[int],
        partitions: Mapping[int, PartitionMetadata] | None,
    ) -> None:
        """Apply the actions that are due; do nothing while no broker responds.

        ``partitions`` is None where the topic does not exist. Raises: KafkaUnavailableError when the cluster
        does not respond in time.
        """
        if not responding:
            return
        now_ns = self._uptime_ns()
        topic = None if partitions is None else ProbeTopicState(partitions, self._read_settings(now_ns))
        due = self._plan_due(tuple(homes), responding, topic)
        if not cluster.managed:
            self.pending_actions = len(due)
            for action in due:
                self._log_once(cluster, f"the probe topic is not managed; action required: {action}")
            return
        if now_ns >= self._forget_rejections_at_ns:
            self._rejected, self._capabilities = {}, ALL_CAPABILITIES
        if self._capabilities == ALL_CAPABILITIES:
            permitted = due
        else:
            permitted = plan_probe_topic(homes, responding, topic, self._capabilities)
        for action in permitted:
            if now_ns >= self._not_before_ns.get(_kind_of(action), 0):
                self._attempt(cluster, action)
        self.pending_actions = sum(_kind_of(action) in self._rejected for action in due)

    def _plan_due(
        self, homes: tuple[HomeBroker, ...], responding: frozenset[int], topic: ProbeTopicState | None
    ) -> Sequence[TopicAction]:
        """Return the plan, computed again only if its input changed: with hundreds of brokers it is slow."""
        plan_input = (homes, responding, topic)
        if plan_input != self._plan_input:
            self._plan_input, self._plan = plan_input, plan_probe_topic(homes, responding, topic)
        return self._plan

    def _read_settings(self, now_ns: int) -> Mapping[str, str]:
        if now_ns >= self._read_settings_at_ns:
            self._read_settings_at_ns = now_ns + _READ_SETTINGS_EVERY_NS
            try:
                self._settings = self._admin.read_topic_settings(TOPIC)
            except KafkaRequestRejectedError:
                self._settings = {}
        return self._settings

    def _attempt(self, cluster: Cluster, action: TopicAction) -> None:
        kind = _kind_of(action)
        try:
            self._apply(cluster, action)
        except KafkaRequestRejectedError as error:
            self._log_once(cluster, f"the cluster rejected the request to {action}: {error}")
            self._rejected[kind] = str(error)
            self._forget_rejections_at_ns = self._uptime_ns() + _RETRY_REJECTED_NS
            narrowed = narrow_capabilities(self._capabilities, action)
            if narrowed == self._capabilities:
                self._not_before_ns[kind] = self._forget_rejections_at_ns
            self._capabilities = narrowed
        finally:
            # From the end: an attempt that times out would otherwise be due again at once.
            repeat_at_ns = self._uptime_ns() + _REPEAT_AFTER_NS.get(type(action), 0)
            self._not_before_ns[kind] = max(repeat_at_ns, self._not_before_ns.get(kind, 0))

    def _apply(self, cluster: Cluster, action: TopicAction) -> None:
        match action:
            case TopicCreation(partitions, replication_factor, replicas):
                factor = -1 if replication_factor is None else replication_factor
                self._admin.create_topic(TopicSpec(TOPIC, action.settings, partitions, factor, replicas))
            case PartitionAddition(total, replicas):
                self._admin.add_partitions(TOPIC, total, replicas)
            case ReplicaReassignment(replicas_by_partition):
                if not reassign_topic(cluster.access, TOPIC, dict(replicas_by_partition)):
                    return
            case SettingUpdate(key, value):
                self._admin.set_topic_setting(TOPIC, key, value)
                self._read_settings_at_ns = 0
            case PreferredLeaderElection(partitions):
                # Repeated every few seconds while it has no effect, so it is not logged; the leader is
                # recorded in every probe minute.
                self._admin.elect_preferred_leaders_of_topic(TOPIC, partitions)
                return
        _log.info("%s: done: %s", cluster.id, action)

    def _log_once(self, cluster: Cluster, message: str) -> None:
        if message not in self._logged:
            self._logged.add(message)
            _log.warning("%s: %s", cluster.id, message)
