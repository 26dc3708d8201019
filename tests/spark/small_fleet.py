"""A fleet of three clusters of three brokers, which an agent measures every minute."""

from collections.abc import Iterator
from dataclasses import replace
from datetime import datetime

from fleetgauge_core.contract import Leg, ProbeMinute
from fleetgauge_core.fleet import Fleet
from tests.probe_minutes import CLIENT, MINUTE, NOON

CLUSTERS, BROKERS = ("orders", "payments", "search"), (1, 2, 3)
RECORDS_A_MINUTE = len(CLUSTERS) * len(BROKERS) * len(Leg)

FLEET = Fleet.model_validate(
    {"clusters": [{"id": cluster, "bootstrap": f"{cluster}.invalid:9092"} for cluster in CLUSTERS]}
)


def minute_at(number: int) -> datetime:
    """Return the minute with this number, counted from 0."""
    return NOON + number * MINUTE


def make_records(number: int) -> Iterator[ProbeMinute]:
    """Yield the records of a minute: of both legs of every broker."""
    for cluster in CLUSTERS:
        for position, (broker, leg) in enumerate((broker, leg) for broker in BROKERS for leg in Leg):
            record = replace(
                CLIENT,
                run_id=f"run/{cluster}",
                sequence=number * len(BROKERS) * len(Leg) + position,
                cluster_id=cluster,
                kafka_cluster_uuid=f"uuid/{cluster}",
                broker_id=broker,
                leg=leg,
                minute=minute_at(number),
                emitted_at=minute_at(number + 1),
                led_by=(broker,),
            )
            yield record if leg is Leg.CLIENT else _to_leader(record)


def _to_leader(record: ProbeMinute) -> ProbeMinute:
    # Nobody consumes what the leader leg produces.
    return replace(record, received=0, lost=0, e2e_us=(), consume_failures={})
