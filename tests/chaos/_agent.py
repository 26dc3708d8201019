"""Probe minutes of an agent under test, and waiting for them."""

from collections import defaultdict
from collections.abc import Sequence
from datetime import datetime, timedelta

from fleetgauge_core.contract import PROBE_MINUTE
from fleetgauge_core.fleet import Telemetry
from fleetgauge_core.kafka import KafkaUnavailableError
from tests.chaos._streaming import Row
from tests.topic_values import read_values
from tests.waiting import wait_until

MINUTE = timedelta(minutes=1)
DEADLINE_S = 300
#: Of the default local fleet: two measured clusters of three brokers, two legs each.
BROKERS_AND_LEGS = 2 * 3 * 2

#: Cluster, broker and leg.
BrokerLegKey = tuple[str, int, str]


def wait_for_minute(telemetry: Telemetry, at: datetime) -> None:
    """Wait until every broker and leg has a record of the minute that contains ``at``."""

    def is_complete() -> bool:
        minutes_by_leg = count_attempts(read_available_records(telemetry))
        return len(minutes_by_leg) == BROKERS_AND_LEGS and all(
            max(minutes) + MINUTE > at for minutes in minutes_by_leg.values()
        )

    wait_until(is_complete, DEADLINE_S, "a record of every broker and leg")


def read_available_records(telemetry: Telemetry) -> list[Row]:
    """Return the records on the topic; none if the topic or its broker is not available yet."""
    try:
        return read_records(telemetry)
    except KafkaUnavailableError:
        return []


def read_records(telemetry: Telemetry) -> list[Row]:
    """Return every distinct record on the topic once."""
    values = read_values(telemetry.access, telemetry.topics.probe_minutes.name)
    return [PROBE_MINUTE.decode(value) for value in dict.fromkeys(values)]


def count_attempts(records: Sequence[Row]) -> dict[BrokerLegKey, dict[datetime, int]]:
    """Return the attempted probes by cluster, broker and leg, and by minute."""
    attempts: dict[BrokerLegKey, dict[datetime, int]] = defaultdict(lambda: defaultdict(int))
    for record in records:
        key = record["cluster_id"], record["broker_id"], record["leg"]
        attempts[key][record["minute"]] += record["attempted"]
    return attempts
