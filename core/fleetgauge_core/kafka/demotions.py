"""Marks of brokers that lead nothing for a while, in a compacted topic of the telemetry cluster.

Motivation: an agent gives each broker its probe partition back, and so would fight whoever has just taken
leadership from one.

Approach: who acts on a broker marks it first. Agents read the marks when a broker is first nowhere, which
one that was demoted is.
"""

import logging
from datetime import datetime

from pydantic import AwareDatetime, BaseModel, ConfigDict, ValidationError

from fleetgauge_core.fleet import Telemetry
from fleetgauge_core.kafka.admin import Admin
from fleetgauge_core.kafka.consumer import values_now
from fleetgauge_core.kafka.errors import KafkaUnavailableError
from fleetgauge_core.kafka.producer import RecordProducer
from fleetgauge_core.kafka.telemetry_topics import ensure_state_topic

_log = logging.getLogger("fleetgauge.probe")

_CLIENT = "fleetgauge-demotions"
#: An agent has more to do than to wait for it.
_READ_WITHIN_S = 2
_WRITTEN_WITHIN_S = 10


class _Mark(BaseModel):
    """A record. One that is taken back stays, as ``demoted`` false: a broker has a single one."""

    model_config = ConfigDict(frozen=True)
    cluster: str
    broker: int
    demoted: bool
    at: AwareDatetime

    @property
    def key(self) -> str:
        return f"{self.cluster}/{self.broker}"


def mark_demoted(telemetry: Telemetry, cluster_id: str, broker_id: int, demoted: bool, now: datetime) -> None:
    """Keep whether it is; stored when the call returns. Raises KafkaUnavailableError."""
    topic = telemetry.topics.demotions
    ensure_state_topic(telemetry, topic)
    mark = _Mark(cluster=cluster_id, broker=broker_id, demoted=demoted, at=now)
    producer = RecordProducer(telemetry.access, _CLIENT, give_up_after_s=_WRITTEN_WITHIN_S)
    producer.start()
    producer.send(topic.name, mark.key, mark.model_dump_json().encode())
    if producer.stop(_WRITTEN_WITHIN_S) or producer.failed:
        raise KafkaUnavailableError(f"{topic.name}: not stored within {_WRITTEN_WITHIN_S} s")


def demoted_now(telemetry: Telemetry, cluster_id: str) -> frozenset[int]:
    """Its brokers that are marked. Raises KafkaUnavailableError."""
    name = telemetry.topics.demotions.name
    admin = Admin(telemetry.access, timeout_s=_READ_WITHIN_S)
    admin.start()
    if admin.topic(name) is None:
        return frozenset()
    found: dict[str, _Mark] = {}
    for value in values_now(telemetry.access, name, _CLIENT, timeout_s=_READ_WITHIN_S):
        try:
            mark = _Mark.model_validate_json(value)
        except ValidationError as error:
            _log.warning("a mark of a demoted broker was passed over: %d faults", error.error_count())
            continue
        found[mark.key] = mark
    return frozenset(one.broker for one in found.values() if one.demoted and one.cluster == cluster_id)
