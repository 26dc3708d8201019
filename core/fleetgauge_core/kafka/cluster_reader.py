"""Observations of one cluster, each read from a single broker that is no less current than the one before.

Motivation: brokers follow the metadata log at their own pace. One that has just started, or was paused, still
tells of topics that are deleted and leaders that have changed; compared with what another broker said before,
that looks like two changes that never happened.

Approach: a broker says with ApiVersions how far it has followed the metadata log. An observation is read from
the broker that was asked last, as long as it answers and its offset grows; else from the most advanced of
all. What only a broker itself can say (its settings, its log directories) is asked of all of them at once.
"""

import time
from collections import Counter
from collections.abc import Callable, Collection, Mapping
from contextlib import suppress
from dataclasses import replace
from datetime import datetime
from typing import Any, TypeVar

from fleetgauge_core.fleet import ClusterAccess
from fleetgauge_core.kafka import observed_parts as parts
from fleetgauge_core.kafka.cluster_queries import QueryFailure
from fleetgauge_core.kafka.directed_client import DirectedClient, is_unanswered
from fleetgauge_core.kafka.errors import KafkaUnavailableError
from fleetgauge_core.metadata import TopicPartition
from fleetgauge_core.metadata.observation import (
    ClusterObservation,
    ObservedBroker,
    ObservedLogDir,
    ObservedSettings,
    ObservedTopic,
    ReplicaMove,
    SettingOwner,
    SettingScope,
)

_CLIENT_ID = "fleetgauge-observe"
_TIMEOUT_S = 4.0
#: How much later than the first another broker may answer that is more advanced.
_GRACE_S = 0.5
_TOPICS_PER_REQUEST = 500
#: Brokers that are all behind for so long belong to a cluster that was restored from a copy.
_RESTORED_AFTER_S = 120.0

T = TypeVar("T")


class ClusterReader:
    """Reads observations of one cluster. For use in one thread."""

    def __init__(
        self, access: ClusterAccess, clock: Callable[[], datetime], timeout_s: float = _TIMEOUT_S
    ) -> None:
        """``timeout_s`` limits each request."""
        self._access = access
        self._clock = clock
        self._client = DirectedClient(access, _CLIENT_ID, timeout_s)
        self._broker_id = -1
        self._metadata_offset = -1
        self._whole_offset = -1
        """The metadata offset of the last whole observation."""
        self._cluster_uuid: str | None = None
        self._topic_names: frozenset[str] = frozenset()
        self._is_odd_read = False
        self._behind_since_s: float | None = None
        self._silent: set[int] = set()
        """Brokers that have not answered during this read, and so are not asked again."""

    def read(self, with_sizes: bool = False) -> ClusterObservation:
        """Read all parts; with the size of every broker's replicas if ``with_sizes``.

        A broker that ceases to answer meanwhile is replaced by another one, once. If that fails too, the
        client is created anew at the next read: it does not find brokers of which all addresses have changed.

        Raises: KafkaUnavailableError if no broker answers, or none is as current as the last observation.
        """
        try:
            try:
                return self._read(with_sizes)
            except KafkaUnavailableError:
                self._broker_id = -1
                return self._read(with_sizes)
        except KafkaUnavailableError:
            self.close()
            raise

    def _read(self, with_sizes: bool) -> ClusterObservation:
        began_at = self._clock()
        versions, described = self._ask_current_broker(is_whole=True)
        failures: dict[str, str] = {}
        self._silent = set()
        brokers = _keep(failures, "brokers", described, parts.parse_brokers)
        topics, hidden = self._read_topics(failures)
        moves = _keep(
            failures, "reassignments", self._ask_controller(parts.request_moves()), parts.parse_moves
        )
        live = self._find_live_brokers(brokers)
        observation = ClusterObservation(
            at=began_at,
            began_at=began_at,
            kafka_cluster_uuid=described.cluster_id,
            asked_broker=self._broker_id,
            brokers=brokers,
            lists_fenced=parts.lists_fenced_brokers(described),
            topics=topics,
            hidden_topics=hidden,
            moves=moves,
            moved_bytes=self._read_moved_bytes(moves or {}, live),
            quorum=_keep(
                failures, "quorum", self._ask_controller(parts.request_quorum()), parts.parse_quorum
            ),
            feature_levels=parts.parse_feature_levels(versions),
            settings=self._read_settings(failures, topics or {}, live),
            quotas=_keep(failures, "client quotas", self._ask(parts.request_quotas()), parts.parse_quotas),
            acls=_keep(failures, "ACLs", self._ask(parts.request_acls()), parts.parse_acls),
            log_dirs=self._read_log_dirs(failures, live),
            stored_bytes=self._read_sizes(live) if with_sizes else {},
            failures=failures,
        )
        self._whole_offset = self._metadata_offset
        return replace(observation, at=self._clock())

    def read_brokers(self) -> ClusterObservation:
        """Read only the registered brokers. Raises: KafkaUnavailableError as ``read`` does."""
        began_at = self._clock()
        _, described = self._ask_current_broker(is_whole=False)
        brokers = parts.parse_brokers(described)
        if isinstance(brokers, QueryFailure):
            raise KafkaUnavailableError(f"{self._access.bootstrap}: {brokers.reason}")
        return ClusterObservation(
            at=self._clock(),
            began_at=began_at,
            kafka_cluster_uuid=described.cluster_id,
            is_whole=False,
            brokers=brokers,
            lists_fenced=parts.lists_fenced_brokers(described),
        )

    def close(self) -> None:
        """Close all connections; the next read opens them again, and learns which requests brokers know."""
        self._client.close()

    def _ask(self, request: Any) -> Any:
        return self._client.request(self._broker_id, request)

    def _ask_controller(self, request: Any) -> Any:
        """Return the response to a request that brokers forward; while controllers elect, there is none."""
        return self._client.request_all({self._broker_id: request})[self._broker_id]

    def _ask_current_broker(self, is_whole: bool) -> tuple[Any, Any]:
        """Choose a broker; return its answers to ApiVersions and DescribeCluster."""
        self._client.connect()
        versions = None
        if self._broker_id in self._client.broker_ids:
            with suppress(KafkaUnavailableError):
                versions = self._ask(parts.request_versions())
        # The metadata log grows twice a second by default (metadata.max.idle.interval.ms): a broker whose
        # offset has not grown since the last whole observation may be cut off from the controllers.
        if (
            versions is None
            or self._is_behind(versions)
            or (is_whole and parts.parse_metadata_offset(versions) == self._whole_offset)
        ):
            versions = self._choose_broker()
        described = self._ask(parts.request_brokers())
        if isinstance(described, QueryFailure):
            raise KafkaUnavailableError(f"{self._access.bootstrap}: {described.reason}")
        if (
            self._is_behind(versions)
            and described.cluster_id == self._cluster_uuid
            and not self._is_behind_for_long()
        ):
            raise KafkaUnavailableError(
                f"{self._access.bootstrap}: no broker that answers is as current as the one asked last"
            )
        if described.cluster_id != self._cluster_uuid:
            self._cluster_uuid, self._topic_names = described.cluster_id, frozenset()
            self._whole_offset = -1
        self._behind_since_s = None
        self._metadata_offset = parts.parse_metadata_offset(versions)
        self._client.adopt_brokers(self._ask(parts.request_topics(())))
        return versions, described

    def _choose_broker(self) -> Any:
        """Return the versions of the most advanced broker that answers."""
        request = parts.request_versions
        results = self._client.request_all(
            {broker_id: request() for broker_id in self._client.broker_ids}, _GRACE_S
        )
        answers = {
            broker_id: result for broker_id, result in results.items() if not isinstance(result, QueryFailure)
        }
        if not answers:
            reasons = {result.reason for result in results.values()} or {"no broker is known"}
            raise KafkaUnavailableError(f"{self._access.bootstrap}: {'; '.join(sorted(reasons))}")
        self._broker_id = max(
            answers,
            key=lambda broker_id: (
                parts.parse_metadata_offset(answers[broker_id]),
                broker_id == self._broker_id,
            ),
        )
        return answers[self._broker_id]

    def _is_behind_for_long(self) -> bool:
        """Return whether all brokers have been behind for minutes: the cluster was restored from a copy."""
        now_s = time.monotonic()
        self._behind_since_s = self._behind_since_s or now_s
        return now_s - self._behind_since_s > _RESTORED_AFTER_S

    def _is_behind(self, versions: Any) -> bool:
        return parts.parse_metadata_offset(versions) < self._metadata_offset

    def _find_live_brokers(self, brokers: Mapping[int, ObservedBroker] | None) -> tuple[int, ...]:
        fenced = {broker_id for broker_id, broker in (brokers or {}).items() if broker.is_fenced}
        return tuple(broker_id for broker_id in self._client.broker_ids if broker_id not in fenced)

    def _read_topics(
        self, failures: dict[str, str]
    ) -> tuple[Mapping[str, ObservedTopic] | None, frozenset[str]]:
        response = self._ask(parts.request_topics(None))
        topics = _keep(failures, "topics", response, parts.parse_topics)
        if topics is None:
            return None, frozenset()
        vanished = self._topic_names - topics.keys()
        hidden: frozenset[str] = frozenset()
        if vanished:
            # A list lacks the topics that this client may not describe, as if they were deleted.
            response = self._ask(parts.request_topics(vanished))
            hidden = _keep(failures, "topics", response, parts.parse_hidden_topics) or frozenset()
            if isinstance(response, QueryFailure):
                return None, frozenset()
            topics |= parts.parse_topics(response)
        if hidden:
            failures["topics"] = f"this client may not describe {len(hidden)} topics any more"
        self._topic_names = frozenset(topics) | hidden
        return topics, hidden

    def _read_moved_bytes(
        self, moves: Mapping[TopicPartition, ReplicaMove], live: Collection[int]
    ) -> dict[TopicPartition, int]:
        """Return the size of the replicas that are being added, by partition, where it is known."""
        partitions = parts.group_moves_by_destination(moves)
        requests = {
            broker_id: parts.request_sizes(listed)
            for broker_id, listed in partitions.items()
            if broker_id in live
        }
        moved_bytes: Counter[TopicPartition] = Counter()
        for response in self._ask_all(requests).values():
            sizes = _parse(response, parts.parse_sizes)
            if not isinstance(sizes, QueryFailure):
                moved_bytes.update(sizes)
        return dict(moved_bytes)

    def _read_settings(
        self, failures: dict[str, str], topics: Collection[str], live: Collection[int]
    ) -> dict[SettingOwner, ObservedSettings]:
        settings: dict[SettingOwner, ObservedSettings] = {}
        shared = [SettingOwner(SettingScope.ALL_BROKERS, "")]
        named = [SettingOwner(SettingScope.TOPIC, name) for name in self._select_topics(topics)]
        batches = [
            named[start : start + _TOPICS_PER_REQUEST] for start in range(0, len(named), _TOPICS_PER_REQUEST)
        ]
        for owners in (shared, *batches):
            response = self._ask(parts.request_settings(owners))
            settings |= _take_settings(failures, response, owners)
        owner_by_broker = {broker_id: SettingOwner(SettingScope.BROKER, str(broker_id)) for broker_id in live}
        requests = {
            broker_id: parts.request_settings([owner]) for broker_id, owner in owner_by_broker.items()
        }
        for broker_id, response in self._ask_all(requests).items():
            if not isinstance(response, QueryFailure):
                settings |= _take_settings(failures, response, [owner_by_broker[broker_id]])
        return settings

    def _select_topics(self, topics: Collection[str]) -> list[str]:
        """Return the topics whose settings are read now: all, or of many every other one in turn.

        A topic has some 35 settings, so that those of a thousand cost more than all else.
        """
        names = sorted(topics)
        if len(names) <= _TOPICS_PER_REQUEST:
            return names
        self._is_odd_read = not self._is_odd_read
        return names[self._is_odd_read :: 2]

    def _read_log_dirs(
        self, failures: dict[str, str], live: Collection[int]
    ) -> dict[int, Mapping[str, ObservedLogDir]]:
        log_dirs: dict[int, Mapping[str, ObservedLogDir]] = {}
        requests = {broker_id: parts.request_log_dirs() for broker_id in live}
        for broker_id, response in self._ask_all(requests).items():
            # A broker that does not answer is no lack of permission: it is asked again at the next look.
            if not isinstance(response, QueryFailure):
                directories = _keep(failures, "log directories", response, parts.parse_log_dirs)
                if directories is not None:
                    log_dirs[broker_id] = directories
        return log_dirs

    def _read_sizes(self, live: Collection[int]) -> dict[int, int]:
        requests = {broker_id: parts.request_sizes(None) for broker_id in live}
        sizes = {
            broker_id: _parse(response, parts.parse_sizes)
            for broker_id, response in self._ask_all(requests).items()
        }
        return {
            broker_id: sum(size.values())
            for broker_id, size in sizes.items()
            if not isinstance(size, QueryFailure)
        }

    def _ask_all(self, requests: Mapping[int, Any]) -> Mapping[int, Any]:
        """Return the responses of brokers, without those that did not answer before."""
        results = self._client.request_all(
            {broker_id: request for broker_id, request in requests.items() if broker_id not in self._silent}
        )
        self._silent |= {broker_id for broker_id, result in results.items() if is_unanswered(result)}
        return results


def _parse(response: Any, parse: Callable[[Any], T | QueryFailure]) -> T | QueryFailure:
    return response if isinstance(response, QueryFailure) else parse(response)


def _keep(
    failures: dict[str, str], part: str, response: Any, parse: Callable[[Any], T | QueryFailure]
) -> T | None:
    """Return the parsed response, or None with the reason among the failures."""
    value = _parse(response, parse)
    if isinstance(value, QueryFailure):
        failures[part] = value.reason
        return None
    return value


def _take_settings(
    failures: dict[str, str], response: Any, owners: Collection[SettingOwner]
) -> dict[SettingOwner, ObservedSettings]:
    if isinstance(response, QueryFailure):
        failures["settings"] = response.reason
        return {}
    if reason := parts.parse_settings_failures(response):
        failures["settings"] = reason
    return parts.parse_settings(response, owners)
