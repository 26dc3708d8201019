"""Whether a broker gets on with its work, by its own counters.

Motivation: a broker whose disk hangs answers nobody, as one does that hangs itself or is cut off, and goes on
telling its cluster that it lives. Only its own counters tell that it gets on with nothing.

Approach: of the JMX exporter's text the count of answered producers and consumers, the bytes that it has
copied from other brokers, how many requests wait, and how many log directories are given up. Who is cut off
from clients goes on copying; of who has nothing to copy only a queue of requests tells.
"""

from collections.abc import Iterable
from dataclasses import dataclass

import urllib3
from prometheus_client.parser import text_string_to_metric_families
from prometheus_client.samples import Sample

_WAITING = "kafka_network_requestchannel_requestqueuesize"
_COMPLETED = "kafka_network_requestmetrics_requests_total"
_COPIED = "kafka_server_brokertopicmetrics_replicationbytesin_total"
_OFFLINE = "kafka_log_logmanager_offlinelogdirectorycount"
#: Who asks of the cluster goes on being answered where the disk does not.
_CLIENTS = ("Produce", "FetchConsumer")
_TIMEOUT_S = 2
#: Three readings missed.
_FRESH_NS = 15_000_000_000
_MS = 1_000_000


@dataclass(frozen=True, slots=True)
class Counters:
    """What a broker's exporter says at one moment; ``completed`` and ``copied`` since the broker started."""

    waiting: int
    completed: int
    copied: int
    offline_dirs: int

    def stands_where(self, before: "Counters") -> bool:
        """Whether it has done nothing since, though it has work."""
        has_work = self.waiting > 0 or self.copied > 0
        return has_work and (self.completed, self.copied) == (before.completed, before.copied)


@dataclass(frozen=True, slots=True)
class _Reading:
    at_ns: int
    counters: Counters
    stands_since_ns: int


class Progress:
    """By broker; its owner guards it."""

    def __init__(self) -> None:
        self._readings: dict[int, _Reading] = {}

    def note(self, broker_id: int, at_ns: int, counters: Counters) -> None:
        """What it said then."""
        before = self._readings.get(broker_id)
        stands = before is not None and counters.stands_where(before.counters)
        since_ns = before.stands_since_ns if before and stands else at_ns
        self._readings[broker_id] = _Reading(at_ns, counters, since_ns)

    def counters(self, broker_id: int, now_ns: int) -> Counters | None:
        """The last; None where nothing was said for a while."""
        reading = self._fresh(broker_id, now_ns)
        return reading.counters if reading else None

    def stalled_ms(self, broker_id: int, now_ns: int) -> int | None:
        """For how long it had done nothing, when it was last heard."""
        reading = self._fresh(broker_id, now_ns)
        return (reading.at_ns - reading.stands_since_ns) // _MS if reading else None

    def _fresh(self, broker_id: int, now_ns: int) -> _Reading | None:
        reading = self._readings.get(broker_id)
        return reading if reading and now_ns - reading.at_ns < _FRESH_NS else None


def exporters() -> urllib3.PoolManager:
    """Tries nothing twice: the next reading is due in seconds."""
    return urllib3.PoolManager(retries=False, timeout=urllib3.Timeout(_TIMEOUT_S))


def scrape(pool: urllib3.PoolManager, url: str) -> Counters | None:
    """What the exporter there says; None where it is silent, or does not say all of it."""
    wanted = [("name[]", name) for name in (_WAITING, _COMPLETED, _COPIED, _OFFLINE)]
    try:
        answer = pool.request("GET", url, fields=wanted)
    except urllib3.exceptions.HTTPError:
        return None
    return counters_in(answer.data.decode(errors="replace")) if answer.status == 200 else None


def counters_in(text: str) -> Counters | None:
    """Of an exposition in Prometheus' text format. None where something is missing or no number."""
    try:
        samples = [one for family in text_string_to_metric_families(text) for one in family.samples]
        clients = [one for one in samples if one.labels.get("request") in _CLIENTS]
        waiting, offline = _sum(samples, _WAITING), _sum(samples, _OFFLINE)
        # Of what has never happened a broker says nothing.
        completed, copied = _sum(clients, _COMPLETED) or 0, _sum(samples, _COPIED) or 0
    except (ValueError, OverflowError):
        return None
    if waiting is None or offline is None:
        return None
    return Counters(waiting, completed, copied, offline)


def _sum(samples: Iterable[Sample], name: str) -> int | None:
    found = [int(one.value) for one in samples if one.name == name]
    return sum(found) if found else None
