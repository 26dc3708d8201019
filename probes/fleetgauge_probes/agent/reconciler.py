"""Puts a cluster's probe topic right, as far as the cluster lets us."""

import logging
from collections.abc import Mapping, Sequence

from fleetgauge_core.fleet import Cluster
from fleetgauge_core.kafka import (
    Admin,
    KafkaRefusedError,
    TopicSpec,
    reassign,
)
from fleetgauge_probes.agent.topic_plan import (
    ALL_LATITUDE,
    TOPIC,
    Change,
    Create,
    Elect,
    Home,
    Partition,
    ProbeTopic,
    Reassign,
    Require,
    Widen,
    narrowed,
    plan,
)

_log = logging.getLogger("fleetgauge.probe")

_MIN_IN_SYNC = "min.insync.replicas"
_SECOND_NS = 1_000_000_000
#: An election that does not help is tried again soon; a move is given time to be seen.
_PAUSE_NS = {Elect: 3 * _SECOND_NS, Reassign: 10 * _SECOND_NS}
_READ_SETTING_EVERY_NS = 10 * _SECOND_NS
#: Somebody may have granted it meanwhile.
_ASK_AGAIN_NS = 300 * _SECOND_NS


class Reconciler:
    """For one thread. It changes nothing where the cluster is not ``managed``, and says what it would do."""

    def __init__(self, admin: Admin) -> None:
        self._admin = admin
        self._min_in_sync: int | None = None
        self._read_setting_at_ns = 0
        self._not_before_ns: dict[type[Change], int] = {}
        self._latitude = ALL_LATITUDE
        self._refused: dict[type[Change], str] = {}
        self._forget_refusals_at_ns = 0
        self._said: set[str] = set()
        self._asked: tuple[tuple[Home, ...], frozenset[int], ProbeTopic | None] | None = None
        self._plan: Sequence[Change] = ()
        self.pending = 0
        """How many changes are due that will not be made: refused, or not ours to make."""

    def mend(
        self,
        cluster: Cluster,
        homes: Sequence[Home],
        live: frozenset[int],
        partitions: Mapping[int, Partition] | None,
        now_ns: int,
    ) -> None:
        """Make the changes that are due. Raises KafkaUnavailableError."""
        if not live:
            return
        topic = None if partitions is None else ProbeTopic(partitions, self._setting(now_ns))
        due = self._due(tuple(homes), live, topic)
        if not cluster.managed:
            self.pending = len(due)
            for change in due:
                self._say_once(cluster, f"its probe topic is not managed; to be done: {change}")
            return
        if now_ns >= self._forget_refusals_at_ns:
            self._refused, self._latitude = {}, ALL_LATITUDE
        allowed = due if self._latitude == ALL_LATITUDE else plan(homes, live, topic, self._latitude)
        for change in allowed:
            if now_ns >= self._not_before_ns.get(type(change), 0):
                self._attempt(cluster, change, now_ns)
        self.pending = sum(type(change) in self._refused for change in due)

    def _due(
        self, homes: tuple[Home, ...], live: frozenset[int], topic: ProbeTopic | None
    ) -> Sequence[Change]:
        """Made anew only when something has changed: for hundreds of brokers it takes a while."""
        if (homes, live, topic) != self._asked:
            self._asked, self._plan = (homes, live, topic), plan(homes, live, topic)
        return self._plan

    def _setting(self, now_ns: int) -> int | None:
        if now_ns >= self._read_setting_at_ns:
            self._read_setting_at_ns = now_ns + _READ_SETTING_EVERY_NS
            try:
                self._min_in_sync = int(self._admin.setting(TOPIC, _MIN_IN_SYNC))
            except KafkaRefusedError:
                self._min_in_sync = None
        return self._min_in_sync

    def _attempt(self, cluster: Cluster, change: Change, now_ns: int) -> None:
        self._not_before_ns[type(change)] = now_ns + _PAUSE_NS.get(type(change), 0)
        try:
            self._make(cluster, change)
        except KafkaRefusedError as error:
            self._say_once(cluster, f"refuses to {change}: {error}")
            self._refused[type(change)] = str(error)
            self._forget_refusals_at_ns = now_ns + _ASK_AGAIN_NS
            asked, self._latitude = self._latitude, narrowed(self._latitude, change)
            if asked == self._latitude:
                self._not_before_ns[type(change)] = self._forget_refusals_at_ns

    def _make(self, cluster: Cluster, change: Change) -> None:
        match change:
            case Create(partitions, copies, replicas):
                factor = -1 if copies is None else copies
                self._admin.create(TopicSpec(TOPIC, change.settings, partitions, factor, replicas))
            case Widen(total, replicas):
                self._admin.widen(TOPIC, total, replicas)
            case Reassign(replicas_of):
                if not reassign(cluster.access, TOPIC, dict(replicas_of)):
                    return
            case Require(min_in_sync):
                self._admin.set(TOPIC, _MIN_IN_SYNC, str(min_in_sync))
                self._read_setting_at_ns = 0
            case Elect(partitions):
                # Every few seconds while it does not help; who leads is on record without it.
                self._admin.elect_preferred(TOPIC, partitions)
                return
        _log.info("%s: done: %s", cluster.id, change)

    def _say_once(self, cluster: Cluster, words: str) -> None:
        if words not in self._said:
            self._said.add(words)
            _log.warning("%s: %s", cluster.id, words)
