"""Keeps Fleetgauge's own topics: creates those that are missing and corrects their settings."""

import logging
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from threading import Event

from fleetgauge_core.fleet import ClusterAccess
from fleetgauge_core.kafka.cluster_admin import ClusterAdmin, TopicMetadata, TopicSpec
from fleetgauge_core.kafka.errors import KafkaRequestRejectedError, KafkaUnavailableError
from fleetgauge_core.metadata import SettingDifference, find_differences

_log = logging.getLogger("fleetgauge.kafka")

#: A topic that was deleted is back within this time and that of two requests.
_INTERVAL_S = 5.0
#: Two processes with different fleet files must not alter a setting back and forth all the time.
_CORRECT_AGAIN_AFTER_S = 60.0


class TopicKeeper:
    """Keeps the topics of one cluster that ``build_specs`` returns for a number of live brokers.

    What the cluster rejects is logged once, with the topic and the setting. For use by a single thread.
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
        self._logged: set[str] = set()
        self._file_versions: tuple[object, ...] | None = None

    def ensure(self) -> None:
        """Create the missing topics, and correct the settings of the others. Raises: KafkaUnavailableError.

        A setting that the cluster refuses to change is no error.
        """
        # A secret or a certificate may be replaced while the process runs.
        if (file_versions := tuple(self._access.file_versions())) != self._file_versions:
            self._admin.start()
            self._file_versions = file_versions
        rejection: KafkaRequestRejectedError | None = None
        for spec in self._build_specs(len(self._admin.list_broker_ids())):
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
            self._create(spec)
        else:
            self._correct(spec, topic)

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
