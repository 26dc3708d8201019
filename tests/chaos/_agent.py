"""What the demonstrations on the agent share: its records, and waiting for them."""

from collections import defaultdict
from collections.abc import Sequence
from datetime import datetime, timedelta

from fleetgauge_core.contract import PROBE_MINUTE
from fleetgauge_core.fleet import Telemetry
from fleetgauge_core.kafka import KafkaUnavailableError
from tests.chaos._streaming import Row
from tests.waiting import wait_until
from tests.whole_topic import values_on

MINUTE = timedelta(minutes=1)
PATIENCE_S = 300
#: The default local fleet: two measured clusters of three.
BROKERS_AND_LEGS = 2 * 3 * 2

Key = tuple[str, int, str]


def wait_for_minute(telemetry: Telemetry, at: datetime) -> None:
    """Until the minute in which that is has come from every broker and leg."""

    def has_come() -> bool:
        found = attempts(so_far(telemetry))
        return len(found) == BROKERS_AND_LEGS and all(max(of) + MINUTE > at for of in found.values())

    wait_until(has_come, PATIENCE_S, "every broker's minute")


def so_far(telemetry: Telemetry) -> list[Row]:
    """What can be read by now: none where the topic, or its broker, has only just come."""
    try:
        return on_the_topic(telemetry)
    except KafkaUnavailableError:
        return []


def on_the_topic(telemetry: Telemetry) -> list[Row]:
    """Every record once, however often it came."""
    values = values_on(telemetry.access, telemetry.topics.probe_minutes.name)
    return [PROBE_MINUTE.decode(value) for value in dict.fromkeys(values)]


def attempts(records: Sequence[Row]) -> dict[Key, dict[datetime, int]]:
    found: dict[Key, dict[datetime, int]] = defaultdict(lambda: defaultdict(int))
    for one in records:
        found[one["cluster_id"], one["broker_id"], one["leg"]][one["minute"]] += one["attempted"]
    return found
