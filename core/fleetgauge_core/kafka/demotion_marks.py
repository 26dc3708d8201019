"""Demotion marks: which brokers must not lead for a while, in a compacted topic of the telemetry cluster.

Motivation: an agent restores each broker's leadership of its probe partition, and so would work against a
mitigation that has just taken all leadership from a broker.

Approach: a mitigation writes the mark before it demotes the broker. An agent reads the marks when a broker
is no partition's preferred leader, as every demoted broker is.
"""

import logging
from datetime import datetime

from pydantic import AwareDatetime, BaseModel, ConfigDict, ValidationError

from fleetgauge_core.fleet import Telemetry
from fleetgauge_core.kafka.cluster_admin import ClusterAdmin
from fleetgauge_core.kafka.errors import KafkaUnavailableError
from fleetgauge_core.kafka.producer import RecordProducer
from fleetgauge_core.kafka.telemetry_topics import ensure_state_topic
from fleetgauge_core.kafka.topic_reader import read_topic_values

_log = logging.getLogger("fleetgauge.probe")

_CLIENT_ID = "fleetgauge-demotions"
#: Short, because the agent's other work waits for the read.
_READ_TIMEOUT_S = 2
_WRITE_TIMEOUT_S = 10


class _DemotionMark(BaseModel):
    """A broker's only record; a demotion that ended remains as a record with ``demoted`` false."""

    model_config = ConfigDict(frozen=True)
    cluster: str
    broker: int
    demoted: bool
    at: AwareDatetime

    @property
    def key(self) -> str:
        return f"{self.cluster}/{self.broker}"


def write_demotion_mark(
    telemetry: Telemetry, cluster_id: str, broker_id: int, demoted: bool, now: datetime
) -> None:
    """Store whether a broker is demoted, and wait for the acknowledgement. Raises: KafkaUnavailableError."""
    topic = telemetry.topics.demotions
    ensure_state_topic(telemetry, topic)
    mark = _DemotionMark(cluster=cluster_id, broker=broker_id, demoted=demoted, at=now)
    producer = RecordProducer(telemetry.access, _CLIENT_ID, delivery_timeout_s=_WRITE_TIMEOUT_S)
    producer.start()
    producer.send(topic.name, mark.key, mark.model_dump_json().encode())
    if producer.stop(_WRITE_TIMEOUT_S) or producer.failed:
        raise KafkaUnavailableError(f"{topic.name}: not stored within {_WRITE_TIMEOUT_S} s")


def read_demotion_marks(telemetry: Telemetry, cluster_id: str) -> dict[int, bool]:
    """Return whether each broker that was ever demoted still is; no broker if the topic does not exist.

    Raises: KafkaUnavailableError.
    """
    name = telemetry.topics.demotions.name
    admin = ClusterAdmin(telemetry.access, timeout_s=_READ_TIMEOUT_S)
    admin.start()
    if admin.describe_topic(name) is None:
        return {}
    marks: dict[int, bool] = {}
    for value in read_topic_values(telemetry.access, name, _CLIENT_ID, timeout_s=_READ_TIMEOUT_S):
        try:
            mark = _DemotionMark.model_validate_json(value)
        except ValidationError as error:
            _log.warning("skipped an invalid demotion mark: %d validation errors", error.error_count())
            continue
        if mark.cluster == cluster_id:
            marks[mark.broker] = mark.demoted
    return marks
