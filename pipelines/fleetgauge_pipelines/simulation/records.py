"""A part as the very records that an agent would have sent."""

from collections.abc import Iterator
from datetime import timedelta
from uuid import UUID

from fleetgauge_core.contract import Leg, ProbeMinute
from fleetgauge_pipelines.simulation.part import ATTEMPTS, Integers, Part
from fleetgauge_pipelines.simulation.randomness import Stream, generator
from fleetgauge_pipelines.simulation.silver import FAILURE, ack_us

_MINUTE = timedelta(minutes=1)
#: A minute's last probe is decided 10 s after it.
_EMITTED_AFTER = timedelta(seconds=71)
#: Of an agent with a machine to itself.
_LAG_P95_US, _LAG_MAX_US = 900, 2_600


def probe_minutes(part: Part, hour: int) -> Iterator[ProbeMinute]:
    """The records of an hour of the history, minute by minute; none of a minute that nobody measured."""
    samples = {leg: part.samples_us(leg, hour) for leg in Leg}
    during, run_id = part.hour(hour), _run_id(part)
    for at, minute in enumerate(range(during.start, during.stop)):
        for broker in part.profile.brokers if not part.silent[minute] else ():
            for leg in Leg:
                yield _record(part, leg, minute, broker, samples[leg][at, broker - 1], run_id)


def _run_id(part: Part) -> str:
    """One run a part."""
    rng = generator(part.seed, Stream.RUN, part.cluster, part.first_minute)
    return str(UUID(bytes=rng.bytes(16), version=4))


def _record(part: Part, leg: Leg, minute: int, broker: int, samples_us: Integers, run_id: str) -> ProbeMinute:
    profile, is_client = part.profile, leg is Leg.CLIENT
    starts = part.start + minute * _MINUTE
    failed = int(part.leg(leg).failed[minute, broker - 1])
    successes = samples_us[failed:]
    return ProbeMinute(
        agent_id="simulated",
        agent_version="simulated",
        run_id=run_id,
        sequence=(minute * len(profile.brokers) + broker - 1) * len(Leg) + list(Leg).index(leg),
        vantage="simulated",
        cluster_id=profile.cluster_id,
        kafka_cluster_uuid=profile.kafka_cluster_uuid,
        broker_id=broker,
        rack=profile.racks[broker - 1],
        leg=leg,
        minute=starts,
        expected_brokers=profile.brokers,
        attempted=ATTEMPTS,
        acknowledged=len(successes),
        received=len(successes) if is_client else 0,
        ack_us=tuple((ack_us(successes) if is_client else successes).tolist()),
        e2e_us=tuple(successes.tolist()) if is_client else (),
        produce_failures={FAILURE: failed} if failed else {},
        consume_failures={},
        lost=0,
        duplicated=0,
        out_of_order=0,
        schedule_lag_p95_us=_LAG_P95_US,
        schedule_lag_max_us=_LAG_MAX_US,
        led_by=(broker,),
        leader_epoch=0,
        emitted_at=starts + _EMITTED_AFTER,
    )
