"""Keeps Fleetgauge's own topics: creates those that are missing and corrects their settings.

Brokers are counted only to create a topic, or to judge one that has few replicas. Those that are restarting
count too, because a topic keeps the replicas with which it was created.
"""

import logging
import time
from collections import defaultdict
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import replace
from threading import Event, Lock

from fleetgauge_core.fleet import ClusterAccess
from fleetgauge_core.kafka.broker_registry import read_broker_registry
from fleetgauge_core.kafka.cluster_admin import ClusterAdmin, TopicMetadata, TopicSpec
from fleetgauge_core.kafka.errors import KafkaRequestRejectedError, KafkaUnavailableError
from fleetgauge_core.metadata import ConfirmedTopicId, SettingDifference, find_differences

_log = logging.getLogger("fleetgauge.kafka")

#: A topic that was deleted is back within this time and that of two requests.
_INTERVAL_S = 5.0
#: Two processes with different fleet files must not alter a setting back and forth all the time.
_CORRECT_AGAIN_AFTER_S = 60.0
_COUNT_AGAIN_AFTER_S = 600.0
#: More brokers than any topic has replicas.
_MANY_BROKERS = 1000


class TopicKeeper:
    """Keeps the topics of one cluster that ``build_specs`` returns for a number of brokers.

    What the cluster rejects is logged once, with the topic and the setting. May be used by any thread.
    """

    def __init__(
        self,
        access: ClusterAccess,
        build_specs: Callable[[int], Sequence[TopicSpec]],
        timeout_s: float = 10,
        elapsed_s: Callable[[], float] = time.monotonic,
    ) -> None:
        """``elapsed_s`` reads a monotonic clock."""
        self._access = access
        self._admin = ClusterAdmin(access, timeout_s)
        self._build_specs = build_specs
        self._elapsed_s = elapsed_s
        self._corrected_s: dict[tuple[str, str], float] = {}
        """When each setting was last corrected, by topic ID and setting."""
        self._brokers = 0
        """How many there were when a topic with few replicas was last judged."""
        self._count_at_s = 0.0
        self._logged: set[str] = set()
        self._identities: defaultdict[str, ConfirmedTopicId] = defaultdict(ConfirmedTopicId)
        self.recreations = 0
        """How often a topic was found to have been recreated: producers must be renewed then."""
        self._lock = Lock()
        self._file_versions: tuple[object, ...] | None = None

    def ensure(self) -> None:
        """Create the missing topics, and correct the settings of the others. Raises: KafkaUnavailableError.

        A setting that the cluster refuses to change is no error.
        """
        with self._lock:
            self._ensure_all()

    def _ensure_all(self) -> None:
        # A secret or a certificate may be replaced while the process runs.
        if (file_versions := tuple(self._access.file_versions())) != self._file_versions:
            self._admin.start()
            self._file_versions = file_versions
        rejection: KafkaRequestRejectedError | None = None
        for spec in self._build_specs(_MANY_BROKERS):
            try:
                self._ensure_topic(spec)
            except KafkaRequestRejectedError as error:
                rejection = rejection or error
        if rejection:
            raise rejection

    def run(self, stopping: Event) -> None:
        """Keep the topics until ``stopping`` is set, however often the cluster is unavailable."""
        while not stopping.is_set():
            try:
                self.ensure()
            except KafkaUnavailableError as error:
                self._log_once(f"{self._access.bootstrap}: topics cannot be checked: {error}")
            stopping.wait(_INTERVAL_S)

    def _ensure_topic(self, spec: TopicSpec) -> None:
        topic = self._admin.describe_topic(spec.name)
        if topic is None:
            self._create(self._limit_replicas(spec, self._count_brokers()))
        else:
            self._follow_identity(spec.name, topic.topic_id)
            self._correct(spec, topic)
            self._check_replicas(spec, topic)

    def _follow_identity(self, name: str, topic_id: str) -> None:
        identity = self._identities[name]
        earlier_id = identity.topic_id
        if identity.check(topic_id) and earlier_id not in (None, topic_id):
            self.recreations += 1

    def _count_brokers(self) -> int:
        """Return how many brokers are registered, restarting ones included."""
        return len(read_broker_registry(self._access).brokers)

    def _limit_replicas(self, spec: TopicSpec, brokers: int) -> TopicSpec:
        """Return the specification of the same topic in a cluster of so many brokers."""
        return next(limited for limited in self._build_specs(brokers) if limited.name == spec.name)

    def _check_replicas(self, spec: TopicSpec, topic: TopicMetadata) -> None:
        """Log if the topic has fewer replicas than it would be created with now."""
        fewest = min((len(partition.replicas) for partition in topic.partitions.values()), default=0)
        if fewest >= spec.replication_factor:
            return
        if self._elapsed_s() >= self._count_at_s:
            self._count_at_s = self._elapsed_s() + _COUNT_AGAIN_AFTER_S
            # Unknown for a while, then: the topics themselves are kept all the same.
            with suppress(KafkaUnavailableError):
                self._brokers = self._count_brokers()
        wanted = self._limit_replicas(spec, self._brokers).replication_factor
        if fewest < wanted:
            self._log_once(
                f"topic {spec.name} has replication factor {fewest} instead of {wanted}: add replicas with"
                " kafka-reassign-partitions"
            )

    def _create(self, spec: TopicSpec) -> None:
        try:
            created = self._admin.create_topic(spec)
        except KafkaRequestRejectedError as error:
            if not spec.settings or "AUTHORIZATION_FAILED" in str(error):
                raise
            # A policy may forbid one of the settings. Those that it permits are set one by one afterwards.
            self._log_once(f"topic {spec.name}: created with the cluster's own settings: {error}")
            created = self._admin.create_topic(replace(spec, settings={}))
        if created:
            _log.info("created topic %s", spec.name)

    def _correct(self, spec: TopicSpec, topic: TopicMetadata) -> None:
        try:
            settings = self._admin.read_topic_settings(spec.name)
        except KafkaRequestRejectedError as error:
            self._log_once(f"topic {spec.name}: its settings cannot be checked: {error}", logging.INFO)
            return
        replica_counts = [len(partition.replicas) for partition in topic.partitions.values()]
        for difference in find_differences(spec.settings, settings, replica_counts):
            corrected_s = self._corrected_s.get((topic.topic_id, difference.key))
            if corrected_s is None or self._elapsed_s() - corrected_s >= _CORRECT_AGAIN_AFTER_S:
                self._corrected_s[topic.topic_id, difference.key] = self._elapsed_s()
                self._set(spec.name, difference)

    def _set(self, topic: str, difference: SettingDifference) -> None:
        try:
            self._admin.set_topic_setting(topic, difference.key, difference.specified)
        except KafkaRequestRejectedError as error:
            self._log_once(f"topic {topic} has {difference} and cannot be corrected: {error}")
        else:
            _log.warning("topic %s had %s: corrected", topic, difference)

    def _log_once(self, message: str, level: int = logging.WARNING) -> None:
        if message not in self._logged:
            self._logged.add(message)
            _log.log(level, "%s", message)
