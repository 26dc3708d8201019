"""Many small random fleets in one lake: everything that may befall a few minutes of a few brokers.

The fleets of a lake share its zone and its week, for a lake is one fleet; each
has clusters of its own and the label FLEET, so that each has fleet-weeks of
its own. Everything follows from the seed.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from random import Random
from typing import Any
from uuid import UUID

from tests.oracle.operations import Operations
from tests.oracle.probes import Latencies, Record, client_probes, latencies_by_mood, leader_probes
from tests.oracle.random_operations import Scope, random_operations
from tests.oracle.scenes import SETTINGS, Setting
from tests.oracle.script import Mood, spans

MINUTE = timedelta(minutes=1)
#: The label that names a cluster's fleet.
FLEET = "fleet-number"
MOODS = (Mood.WELL,) * 14 + (Mood.SLOW,) * 3 + (Mood.FLAKY, Mood.DOWN, Mood.DEAF)
OBJECTIVE_US = {"single-zone": 100_000, "multi-zone": 100_000, "gold": 42_500, "bulk": 800_000}
TIERS = {
    "gold": {"latency_p99_ms": 42.5, "availability": 0.995},
    "bulk": {"latency_p99_ms": 800, "availability": 0.95},
}
#: Attempts of a minute; two vantages with 25 each are just enough together.
PROBES = (60, 60, 60, 100, 50, 49, 25)
#: What a run killed in mid-minute and the next one attempt of the same minute.
HALVES = ((30, 20), (30, 19), (49, 1), (10, 20), (0, 49))
CLOSES_AFTER = timedelta(hours=48)


@dataclass(frozen=True, slots=True)
class Delivery:
    """Records that are taken together, and the clock at that moment."""

    records: tuple[Record, ...]
    clock: datetime


@dataclass(frozen=True, slots=True)
class RandomLake:
    """A fleet.yaml document; what comes into its lake, delivery by delivery; what was done meanwhile."""

    document: dict[str, Any]
    deliveries: tuple[Delivery, ...]
    operations: Operations


@dataclass(frozen=True, slots=True)
class Plan:
    """What happens to one cluster; minutes are counted from its start."""

    cluster_id: str
    tier: str
    start: datetime
    expected: tuple[frozenset[int], ...]
    mood: dict[int, tuple[Mood, ...]]
    nobody_records: frozenset[int]
    on_the_objective: frozenset[int]

    @property
    def minutes(self) -> int:
        return len(self.expected)

    @property
    def brokers(self) -> list[int]:
        return sorted({broker for brokers in self.expected for broker in brokers})


def random_lake(seed: int, fleets: int = 50) -> RandomLake:
    """``fleets`` disjoint fleets of one to four clusters, and one cluster that is silent for a whole week."""
    rng = Random(f"lake {seed}")
    setting = SETTINGS[seed % len(SETTINGS)]
    latencies = latencies_by_mood(rng)
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


def _scope(plan: Plan, fleet: int, setting: Setting) -> Scope:
    segments = ((FLEET, str(fleet)), (FLEET, str(fleet)), ("tier", plan.tier))
    return Scope(plan.cluster_id, plan.brokers, segments, plan.start, plan.minutes, setting.zone)


# --- What fleet.yaml says ----------------------------------------------------


def _cluster_file(cluster_id: str, more: dict[str, Any]) -> dict[str, Any]:
    return {"id": cluster_id, "bootstrap": "nowhere:9092"} | more


def _random_cluster_file(rng: Random, plan: Plan, fleet: int) -> dict[str, Any]:
    """A label may repeat a segment of another name; the cluster still counts once in it."""
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


# --- What happens ------------------------------------------------------------


def _plan(rng: Random, cluster_id: str, setting: Setting) -> Plan:
    """Around the odd moment or a week's boundary, and some minutes long."""
    minutes = rng.randint(8, 20)
    first, following = setting.bounds
    moment = rng.choice([first, following, setting.odd_moment])
    expected = _membership(rng, minutes)
    trouble = rng.choice([0, 0.3, 1])
    tier = rng.choice(list(OBJECTIVE_US))
    return Plan(
        cluster_id=cluster_id,
        tier=tier,
        start=moment - rng.randint(0, minutes) * MINUTE,
        expected=expected,
        mood={
            broker: tuple(rng.choice(MOODS) if rng.random() < trouble else Mood.WELL for _ in range(minutes))
            for broker in sorted(frozenset().union(*expected))
        },
        nobody_records=spans(rng, minutes, 2, longest=6),
        on_the_objective=spans(rng, minutes, 4, longest=2),
    )


def _membership(rng: Random, minutes: int) -> tuple[frozenset[int], ...]:
    """One to five brokers; one may join, leave, or be replaced by one with another id in mid-way."""
    ids = rng.sample([0, 1, 2, 3, 4, 5, 101, 102, 65_535], rng.randint(1, 5) + 1)
    before, newcomer, at = frozenset(ids[:-1]), ids[-1], rng.randrange(1, minutes)
    left = before - {ids[0]} or before
    changes = (before, before, before | {newcomer}, left, left | {newcomer})
    after = rng.choice(changes)
    return tuple(before if minute < at else after for minute in range(minutes))


# --- What agents record ------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Agent:
    """One vantage's process, or two of them with a kill in between."""

    vantage: str
    run_ids: tuple[str, str]
    killed_at: int
    halves: tuple[int, int]
    probes: int
    sees_membership_after: int
    dead: frozenset[int]
    late: frozenset[int]

    def attempts(self, minute: int) -> Iterator[tuple[str, int]]:
        """Run and attempts of a minute; of the minute of the kill two runs tell."""
        before, after = self.run_ids
        if minute == self.killed_at:
            yield from zip(self.run_ids, self.halves, strict=True)
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
            halves=rng.choice(HALVES),
            probes=probes,
            sees_membership_after=rng.choice([0, 0, 1, 3]),
            dead=spans(rng, plan.minutes, 1, longest=5),
            late=spans(rng, plan.minutes, 1, longest=4) | at_first,
        )


def _uuid(rng: Random) -> str:
    return str(UUID(int=rng.getrandbits(128), version=4))


def _records(rng: Random, plan: Plan, latencies: dict[Mood, Latencies]) -> Iterator[Record]:
    for agent in _agents(rng, plan):
        sequence = 0
        for minute in range(plan.minutes):
            if minute in plan.nobody_records:
                continue
            for run_id, attempted in agent.attempts(minute):
                for record in _minute(rng, plan, agent, minute, attempted, latencies):
                    yield record | {"run_id": run_id, "sequence": sequence}
                    sequence += 1


def _minute(
    rng: Random, plan: Plan, agent: Agent, minute: int, attempted: int, latencies: dict[Mood, Latencies]
) -> Iterator[Record]:
    """Who is registered is probed, in the agent's view; now and then a record is missing."""
    listed = plan.expected[max(minute - agent.sees_membership_after, 0)]
    objective_us = OBJECTIVE_US[plan.tier]
    for broker in sorted(plan.expected[minute]):
        mood = plan.mood[broker][minute]
        exact_us = objective_us + rng.randrange(2) if minute in plan.on_the_objective else None
        for leg, probes in (("client", client_probes), ("leader", leader_probes)):
            if rng.random() < 0.03:
                continue
            yield (
                _who_and_when(plan.cluster_id, plan.start + minute * MINUTE, broker, leg, listed)
                | {"agent_id": f"agent-{agent.vantage}", "vantage": agent.vantage}
                | probes(rng, attempted, mood, latencies[mood], exact_us)
                | _lag(rng, minute in agent.late)
                | {"led_by": rng.choice([[], [broker], [broker], [7, broker]])}
            )


def _who_and_when(cluster_id: str, minute: datetime, broker: int, leg: str, listed: frozenset[int]) -> Record:
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


def _lag(rng: Random, late: bool) -> Record:
    """On time up to the very limit, late from the next microsecond on."""
    p95_us = rng.choice([100_001, 900_000]) if late else rng.choice([50, 9_000, 100_000])
    return {"schedule_lag_p95_us": p95_us, "schedule_lag_max_us": 2 * p95_us}


def _silent_week(rng: Random, setting: Setting, latencies: dict[Mood, Latencies]) -> Iterator[Record]:
    """The first and the last minute of the odd week have a record, nothing between."""
    first, following = setting.bounds
    for sequence, minute in enumerate((first, following - MINUTE)):
        yield (
            _who_and_when("silent", minute, 1, "client", frozenset({1}))
            | {"agent_id": "agent", "vantage": "here", "run_id": str(UUID(int=1, version=4))}
            | {"sequence": sequence, "led_by": [1]}
            | client_probes(rng, 60, Mood.WELL, latencies[Mood.WELL], None)
            | _lag(rng, late=False)
        )


# --- How it arrives ----------------------------------------------------------


def _deliveries(rng: Random, records: Sequence[Record], setting: Setting) -> Iterator[Delivery]:
    """Most at first, the others late: single records, and the ends of clusters; both with repetitions.

    Clocks lie on either side of the very moments at which weeks close.
    """
    _, following = setting.bounds
    closes = following + CLOSES_AFTER
    first = rng.choice([following + 60 * MINUTE, closes - timedelta(seconds=1), closes, closes + 60 * MINUTE])
    later = rng.choice([first, max(first, closes), closes + timedelta(days=7), closes + timedelta(days=70)])
    clusters = sorted({record["cluster_id"] for record in records})
    middle = {one: _middle(records, one) for one in rng.sample(clusters, len(clusters) // 4)}
    late = [
        record
        for record in records
        if rng.random() < 0.05 or record["minute"] >= middle.get(record["cluster_id"], closes)
    ]
    held_back = {(record["run_id"], record["sequence"]) for record in late}
    at_first = [r for r in records if (r["run_id"], r["sequence"]) not in held_back]
    yield Delivery(_disorderly(rng, at_first, at_first), first)
    yield Delivery(_disorderly(rng, late, records), later)


def _middle(records: Sequence[Record], cluster_id: str) -> datetime:
    minutes = sorted(record["minute"] for record in records if record["cluster_id"] == cluster_id)
    return minutes[len(minutes) // 2]


def _disorderly(rng: Random, records: Sequence[Record], again: Sequence[Record]) -> tuple[Record, ...]:
    """The records in no order, with some of ``again`` among them."""
    delivered = [*records, *(dict(record) for record in rng.sample(again, len(again) // 50))]
    rng.shuffle(delivered)
    return tuple(delivered)
