"""The probe records that an agent would have sent in a simulated week."""

from collections.abc import Iterator
from datetime import timedelta
from uuid import UUID

from fleetgauge_core.contract import Leg, ProbeMinute
from fleetgauge_pipelines.simulation.randomness import RandomStream, create_generator
from fleetgauge_pipelines.simulation.silver import FAILURE, derive_ack_us
from fleetgauge_pipelines.simulation.simulated_week import PROBES_PER_MINUTE, Integers, SimulatedWeek

_MINUTE = timedelta(minutes=1)
#: From a minute's start to its record: the last probe is decided 10 s after the minute's end.
_EMITTED_AFTER = timedelta(seconds=71)
#: Schedule lag of an agent on a dedicated machine.
_LAG_P95_US, _LAG_MAX_US = 900, 2_600


def make_probe_minutes(week: SimulatedWeek, hour: int) -> Iterator[ProbeMinute]:
    """Yield the records of an hour of the history, minute by minute; unmeasured minutes have none."""
    samples = {leg: week.samples_us(leg, hour) for leg in Leg}
    during, run_id = week.hour(hour), _run_id(week)
    for index, minute in enumerate(range(during.start, during.stop)):
        for broker in week.profile.brokers if not week.silent[minute] else ():
            for leg in Leg:
                yield _record(week, leg, minute, broker, samples[leg][index, broker - 1], run_id)


def _run_id(week: SimulatedWeek) -> str:
    # The simulated agent restarts each week.
    rng = create_generator(week.seed, RandomStream.RUN, week.cluster, week.first_minute)
    return str(UUID(bytes=rng.bytes(16), version=4))


def _record(
    week: SimulatedWeek, leg: Leg, minute: int, broker: int, samples_us: Integers, run_id: str
) -> ProbeMinute:
    profile, is_client = week.profile, leg is Leg.CLIENT
    starts = week.start + minute * _MINUTE
    failed = int(week.leg(leg).failed[minute, broker - 1])
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
        attempted=PROBES_PER_MINUTE,
        acknowledged=len(successes),
        received=len(successes) if is_client else 0,
        ack_us=tuple((derive_ack_us(successes) if is_client else successes).tolist()),
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
