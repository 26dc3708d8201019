"""Many small random fleets in one lake, with every kind of event in a few minutes of a few brokers.

The fleets share the zone and the week of the lake. Each has its own clusters with the label FLEET, and so its
own fleet-weeks. Everything derives from the seed.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from random import Random
from typing import Any
from uuid import UUID

from tests.oracle.clock_changes import CLOCK_CHANGE_WEEKS, ClockChangeWeek
from tests.oracle.operations import Operations
from tests.oracle.probes import (
    Latencies,
    ProbeRecord,
    client_probes,
    draw_latencies_by_behavior,
    leader_probes,
)
from tests.oracle.random_operations import Scope, random_operations
from tests.oracle.script import BrokerBehavior, draw_spans

MINUTE = timedelta(minutes=1)
#: The label with the number of a cluster's fleet.
FLEET = "fleet-number"
BEHAVIORS = (
    (BrokerBehavior.HEALTHY,) * 14
    + (BrokerBehavior.SLOW,) * 3
    + (BrokerBehavior.FLAKY, BrokerBehavior.DOWN, BrokerBehavior.NOT_RECEIVED)
)
OBJECTIVE_US = {"single-zone": 100_000, "multi-zone": 100_000, "gold": 42_500, "bulk": 800_000}
TIERS = {
    "gold": {"latency_p99_ms": 42.5, "availability": 0.995},
    "bulk": {"latency_p99_ms": 800, "availability": 0.95},
}
#: Attempts of a minute; two vantages with 25 each are just enough to be measured.
PROBES = (60, 60, 60, 100, 50, 49, 25)
#: The attempts in the minute of a restart, before and after it.
RESTART_ATTEMPTS = ((30, 20), (30, 19), (49, 1), (10, 20), (0, 49))
WEEK_CLOSING_DELAY = timedelta(hours=48)


@dataclass(frozen=True, slots=True)
class Delivery:
    """Records that are ingested together, and the clock at that time."""

    records: tuple[ProbeRecord, ...]
    clock: datetime


@dataclass(frozen=True, slots=True)
class RandomLake:
    """A fleet.yaml document, the deliveries of records into its lake, and the operations meanwhile."""

    document: dict[str, Any]
    deliveries: tuple[Delivery, ...]
    operations: Operations


@dataclass(frozen=True, slots=True)
class Plan:
    """The events of one cluster, by minute from its start."""

    cluster_id: str
    tier: str
    start: datetime
    expected: tuple[frozenset[int], ...]
    behavior: dict[int, tuple[BrokerBehavior, ...]]
    without_records: frozenset[int]
    at_objective: frozenset[int]

    @property
    def minutes(self) -> int:
        return len(self.expected)

    @property
    def brokers(self) -> list[int]:
        return sorted({broker for brokers in self.expected for broker in brokers})


def random_lake(seed: int, fleets: int = 50) -> RandomLake:
    """Return ``fleets`` fleets of one to four clusters, and a cluster without records for a whole week."""
    rng = Random(f"lake {seed}")
    setting = CLOCK_CHANGE_WEEKS[seed % len(CLOCK_CHANGE_WEEKS)]
    latencies = draw_latencies_by_behavior(rng)
    clusters: list[dict[str, Any]] = [_cluster_file("silent", {})]
    records = list(_silent_week(rng, setting, latencies))
    scopes = []
    for fleet in range(fleets):
        for number in range(rng.choice([1, 1, 2, 2, 3, 4])):
            plan = _plan(rng, f"fleet-{fleet}-cluster-{number}", setting)
            clusters.append(_random_cluster_file(rng, plan, fleet))
            records += _records(rng, plan, latencies)
            scopes.append(_scope(plan, fleet, setting))
    document = {
        "week": {"zone": setting.zone, "start": setting.start},
        "objectives": TIERS,
        "agent_late_ms": 100,
        "clusters": clusters,
    }
    return RandomLake(
        document,
        tuple(_deliveries(rng, records, setting)),
        random_operations(Random(f"operations {seed}"), scopes),
    )


def _scope(plan: Plan, fleet: int, setting: ClockChangeWeek) -> Scope:
    segments = ((FLEET, str(fleet)), (FLEET, str(fleet)), ("tier", plan.tier))
    return Scope(plan.cluster_id, plan.brokers, segments, plan.start, plan.minutes, setting.zone)


# --- The fleet file ----------------------------------------------------


def _cluster_file(cluster_id: str, more: dict[str, Any]) -> dict[str, Any]:
    return {"id": cluster_id, "bootstrap": "nowhere:9092"} | more


def _random_cluster_file(rng: Random, plan: Plan, fleet: int) -> dict[str, Any]:
    """Return a cluster's configuration; a label may have the name of another segment."""
    since = rng.choice([None] * 5 + [-30 * MINUTE, -0.5 * MINUTE, timedelta(0), plan.minutes // 3 * MINUTE])
    until = rng.choice([None] * 5 + [plan.minutes * 3 // 4 * MINUTE, 2 * plan.minutes * MINUTE])
    moments = {"since": since, "until": until}
    more = rng.choice([{}, {}, {"team": "a"}, {"team": "b", "size": "s"}, {"cloud": "aws"}, {"fleet": "own"}])
    return _cluster_file(
        plan.cluster_id,
        {
            "cloud": rng.choice(["aws", "gcp", None]),
            "region": rng.choice(["eu-west-1", "us-east-1", None]),
            "tier": plan.tier,
            "labels": {FLEET: str(fleet)} | more,
            "retired": [rng.choice(plan.brokers)] if rng.random() < 0.15 else [],
        }
        | {name: (plan.start + at).isoformat() for name, at in moments.items() if at is not None},
    )


# --- Events ------------------------------------------------------------


def _plan(rng: Random, cluster_id: str, setting: ClockChangeWeek) -> Plan:
    """Return a plan of some minutes around the clock change or a boundary of the week."""
    minutes = rng.randint(8, 20)
    first, following = setting.bounds
    moment = rng.choice([first, following, setting.changes_at])
    expected = _membership(rng, minutes)
    fault_share = rng.choice([0, 0.3, 1])
    tier = rng.choice(list(OBJECTIVE_US))
    return Plan(
        cluster_id=cluster_id,
        tier=tier,
        start=moment - rng.randint(0, minutes) * MINUTE,
        expected=expected,
        behavior={
            broker: tuple(
                rng.choice(BEHAVIORS) if rng.random() < fault_share else BrokerBehavior.HEALTHY
                for _ in range(minutes)
            )
            for broker in sorted(frozenset().union(*expected))
        },
        without_records=draw_spans(rng, minutes, 2, longest=6),
        at_objective=draw_spans(rng, minutes, 4, longest=2),
    )


def _membership(rng: Random, minutes: int) -> tuple[frozenset[int], ...]:
    """Return one to five brokers by minute; midway a broker may join, leave or be replaced."""
    ids = rng.sample([0, 1, 2, 3, 4, 5, 101, 102, 65_535], rng.randint(1, 5) + 1)
    before, newcomer, at = frozenset(ids[:-1]), ids[-1], rng.randrange(1, minutes)
    left = before - {ids[0]} or before
    outcomes = (before, before, before | {newcomer}, left, left | {newcomer})
    after = rng.choice(outcomes)
    return tuple(before if minute < at else after for minute in range(minutes))


# --- Records ------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Agent:
    """One vantage's agent, which may be restarted once."""

    vantage: str
    run_ids: tuple[str, str]
    killed_at: int
    restart_attempts: tuple[int, int]
    probes: int
    sees_membership_after: int
    dead: frozenset[int]
    late: frozenset[int]

    def attempts(self, minute: int) -> Iterator[tuple[str, int]]:
        """Yield the run id and the attempts of a minute, of two runs in the minute of a restart."""
        before, after = self.run_ids
        if minute == self.killed_at:
            yield from zip(self.run_ids, self.restart_attempts, strict=True)
        elif minute not in self.dead:
            yield (before if minute < self.killed_at else after), self.probes


def _agents(rng: Random, plan: Plan) -> Iterator[Agent]:
    probes = rng.choice(PROBES)
    for number in range(rng.choice([1, 1, 2, 3])):
        at_first = frozenset(range(3)) if rng.random() < 0.15 else frozenset()
        yield Agent(
            vantage=f"zone-{number}",
            run_ids=(_uuid(rng), _uuid(rng)),
            killed_at=rng.choice([plan.minutes, rng.randrange(plan.minutes)]),
            restart_attempts=rng.choice(RESTART_ATTEMPTS),
            probes=probes,
            sees_membership_after=rng.choice([0, 0, 1, 3]),
            dead=draw_spans(rng, plan.minutes, 1, longest=5),
            late=draw_spans(rng, plan.minutes, 1, longest=4) | at_first,
        )


def _uuid(rng: Random) -> str:
    return str(UUID(int=rng.getrandbits(128), version=4))


def _records(rng: Random, plan: Plan, latencies: dict[BrokerBehavior, Latencies]) -> Iterator[ProbeRecord]:
    for agent in _agents(rng, plan):
        sequence = 0
        for minute in range(plan.minutes):
            if minute in plan.without_records:
                continue
            for run_id, attempted in agent.attempts(minute):
                for record in _minute(rng, plan, agent, minute, attempted, latencies):
                    yield record | {"run_id": run_id, "sequence": sequence}
                    sequence += 1


def _minute(
    rng: Random,
    plan: Plan,
    agent: Agent,
    minute: int,
    attempted: int,
    latencies: dict[BrokerBehavior, Latencies],
) -> Iterator[ProbeRecord]:
    """Yield the records of the brokers that the agent lists; a few records are missing."""
    listed = plan.expected[max(minute - agent.sees_membership_after, 0)]
    objective_us = OBJECTIVE_US[plan.tier]
    for broker in sorted(plan.expected[minute]):
        behavior = plan.behavior[broker][minute]
        exact_us = objective_us + rng.randrange(2) if minute in plan.at_objective else None
        for leg, probes in (("client", client_probes), ("leader", leader_probes)):
            if rng.random() < 0.03:
                continue
            yield (
                _identity(plan.cluster_id, plan.start + minute * MINUTE, broker, leg, listed)
                | {"agent_id": f"agent-{agent.vantage}", "vantage": agent.vantage}
                | probes(rng, attempted, behavior, latencies[behavior], exact_us)
                | _lag(rng, minute in agent.late)
                | {"led_by": rng.choice([[], [broker], [broker], [7, broker]])}
            )


def _identity(
    cluster_id: str, minute: datetime, broker: int, leg: str, listed: frozenset[int]
) -> ProbeRecord:
    return {
        "agent_version": "0.1.0",
        "cluster_id": cluster_id,
        "kafka_cluster_uuid": f"uuid-of-{cluster_id}",
        "broker_id": broker,
        "rack": None,
        "leg": leg,
        "minute": minute,
        "expected_brokers": sorted(listed),
        "leader_epoch": 3,
        "emitted_at": minute + timedelta(seconds=72),
    }


def _lag(rng: Random, late: bool) -> ProbeRecord:
    """Return a schedule lag up to the limit if on time, or from one microsecond above it if late."""
    p95_us = rng.choice([100_001, 900_000]) if late else rng.choice([50, 9_000, 100_000])
    return {"schedule_lag_p95_us": p95_us, "schedule_lag_max_us": 2 * p95_us}


def _silent_week(
    rng: Random, setting: ClockChangeWeek, latencies: dict[BrokerBehavior, Latencies]
) -> Iterator[ProbeRecord]:
    """Yield records of the first two minutes and of the last minute of the week, with none between."""
    first, following = setting.bounds
    for sequence, minute in enumerate((first, first + MINUTE, following - MINUTE)):
        yield (
            _identity("silent", minute, 1, "client", frozenset({1}))
            | {"agent_id": "agent", "vantage": "zone-a", "run_id": str(UUID(int=1, version=4))}
            | {"sequence": sequence, "led_by": [1]}
            | client_probes(rng, 60, BrokerBehavior.HEALTHY, latencies[BrokerBehavior.HEALTHY], None)
            | _lag(rng, late=False)
        )


# --- Deliveries ----------------------------------------------------------


def _deliveries(rng: Random, records: Sequence[ProbeRecord], setting: ClockChangeWeek) -> Iterator[Delivery]:
    """Yield two deliveries: most records, and late ones; both have duplicates.

    Clocks are just before or after the time at which weeks close.
    """
    _, following = setting.bounds
    closes = following + WEEK_CLOSING_DELAY
    first = rng.choice([following + 60 * MINUTE, closes - timedelta(seconds=1), closes, closes + 60 * MINUTE])
    later = rng.choice([first, max(first, closes), closes + timedelta(days=7), closes + timedelta(days=70)])
    clusters = sorted({record["cluster_id"] for record in records})
    middle = {
        cluster_id: _middle(records, cluster_id) for cluster_id in rng.sample(clusters, len(clusters) // 4)
    }
    late = [
        record
        for record in records
        if rng.random() < 0.05 or record["minute"] >= middle.get(record["cluster_id"], closes)
    ]
    held_back = {(record["run_id"], record["sequence"]) for record in late}
    on_time = [record for record in records if (record["run_id"], record["sequence"]) not in held_back]
    yield Delivery(_shuffle_with_duplicates(rng, on_time, on_time), first)
    yield Delivery(_shuffle_with_duplicates(rng, late, records), later)


def _middle(records: Sequence[ProbeRecord], cluster_id: str) -> datetime:
    minutes = sorted(record["minute"] for record in records if record["cluster_id"] == cluster_id)
    return minutes[len(minutes) // 2]


def _shuffle_with_duplicates(
    rng: Random, records: Sequence[ProbeRecord], originals: Sequence[ProbeRecord]
) -> tuple[ProbeRecord, ...]:
    """Return the records shuffled with some duplicates of ``originals``."""
    delivered = [*records, *(dict(record) for record in rng.sample(originals, len(originals) // 50))]
    rng.shuffle(delivered)
    return tuple(delivered)
