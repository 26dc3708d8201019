"""Random ProbeMinute records of a fleet in a week with many faults, as agents would send them.

Everything derives from the seed. Each cluster has a script (expected brokers, faults, dead and late agents,
minute by minute); agents record it probe by probe; finally some records are duplicated and all are shuffled.
Every record conforms to the contract: its arrays ascend and its counts add up.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from random import Random
from typing import Any
from uuid import UUID

from tests.oracle.probes import Latencies, client_probes, draw_latencies_by_behavior, leader_probes
from tests.oracle.script import (
    FAULT_RATES,
    BrokerBehavior,
    ClusterScript,
    broker_ids,
    build_cluster_script,
    cluster_id,
    draw_spans,
)

ProbeRecord = dict[str, Any]

MINUTE = timedelta(minutes=1)
#: Three hours before a Monday in UTC, one hour before it in Berlin, on the day when its clocks go forward.
START = datetime(2026, 3, 29, 21, 0, tzinfo=UTC)
ON_TIME_AT_MOST_US = 100_000


# --- The fleet file ----------------------------------------------------


def random_fleet(
    seed: int, *, clusters: int = 3, minutes: int = 300, start: datetime = START
) -> dict[str, Any]:
    """Return a fleet.yaml document for the records of the same seed."""
    rng = Random(f"fleet {seed}")
    return {
        "week": {"zone": rng.choice(["UTC", "Europe/Berlin", "America/New_York"]), "start": "monday"},
        "objectives": {"single-zone": {"latency_p99_ms": 100, "availability": 0.9995}},
        "clusters": [_random_cluster(rng, position, minutes, start) for position in range(clusters)],
    }


def _random_cluster(rng: Random, position: int, minutes: int, start: datetime) -> dict[str, Any]:
    since = rng.choice([None, None, -20 * MINUTE, -0.5 * MINUTE, minutes // 4 * MINUTE])
    until = rng.choice([None, None, minutes * 9 // 10 * MINUTE])
    cluster: dict[str, Any] = {
        "id": cluster_id(position),
        "bootstrap": f"{cluster_id(position)}:9092",
        "cloud": rng.choice(["aws", "gcp", None]),
        "region": rng.choice(["eu-west-1", "us-east-1"]),
        "tier": rng.choice(["single-zone", "multi-zone"]),
        "labels": rng.choice([{}, {"team": "orders"}, {"team": "mail", "size": "s"}]),
        "retired": rng.choice([[], [], [broker_ids(position)[1]]]),
    }
    moments = {"since": since, "until": until}
    return cluster | {name: (start + at).isoformat() for name, at in moments.items() if at is not None}


# --- The records of one agent --------------------------------------------------


@dataclass(frozen=True, slots=True)
class Run:
    """The minutes of one agent process."""

    run_id: str
    first: int
    last: int
    attempted_at_first: int
    attempted_at_last: int

    def attempted(self, minute: int, probes_per_minute: int) -> int:
        """Return the attempts of a minute; fewer if the run starts or is killed within it."""
        if minute == self.first:
            return min(self.attempted_at_first, probes_per_minute)
        return min(self.attempted_at_last, probes_per_minute) if minute == self.last else probes_per_minute


def _runs(rng: Random, first: int, last: int) -> Iterator[Run]:
    """Yield consecutive runs; at a restart both record a part of the same minute."""
    begins, attempted_at_first = first, rng.choice([7, 30, 49, 50, 60])
    restarts = sorted({rng.randint(first + 1, last - 1) for _ in range(2)}) if last - first > 4 else []
    for restart in restarts:
        attempted_before, attempted_after = rng.choice(
            [(30, 45), (30, 20), (49, 1), (60, 30), (10, 20), (0, 49)]
        )
        yield Run(_uuid(rng), begins, restart, attempted_at_first, attempted_before)
        begins, attempted_at_first = restart, attempted_after
    yield Run(_uuid(rng), begins, last - 1, attempted_at_first, 100)


def _uuid(rng: Random) -> str:
    return str(UUID(int=rng.getrandbits(128), version=4))


@dataclass(frozen=True, slots=True)
class Agent:
    """One vantage's agent of one cluster."""

    rng: Random
    script: ClusterScript
    vantage: str
    start: datetime
    probes_per_minute: int
    latencies: dict[BrokerBehavior, Latencies]
    sees_membership_after: int
    dead: frozenset[int]
    late: frozenset[int]
    without_clients: frozenset[int]

    def records(self) -> Iterator[ProbeRecord]:
        for run in _runs(self.rng, self.script.first, self.script.last):
            sequence = self.rng.choice([0, 1, 5_000_000_000])
            for minute in range(run.first, run.last + 1):
                if minute in self.dead or minute in self.script.without_records:
                    continue
                for record in self._minute(minute, run):
                    yield record | {"run_id": run.run_id, "sequence": sequence}
                    sequence += 1

    def _minute(self, minute: int, run: Run) -> Iterator[ProbeRecord]:
        attempted = run.attempted(minute, self.probes_per_minute)
        for broker in sorted(self.script.probed[minute]):
            for leg in ("client", "leader"):
                never_arrived = leg == "client" and minute in self.without_clients
                if never_arrived or self.rng.random() < 0.01:
                    continue
                yield self._record(minute, broker, leg, attempted)

    def _record(self, minute: int, broker: int, leg: str, attempted: int) -> ProbeRecord:
        behavior = self.script.behavior[broker][minute]
        exact_us = self.script.exact_p99_us.get(minute)
        probes = client_probes if leg == "client" else leader_probes
        return (
            self._identity(minute, broker)
            | {"leg": leg}
            | probes(self.rng, attempted, behavior, self.latencies[behavior], exact_us)
            | self._schedule_lag(minute)
            | self._leadership(broker, behavior)
        )

    def _identity(self, minute: int, broker: int) -> ProbeRecord:
        listed_at = max(minute - self.sees_membership_after, 0)
        begins = self.start + minute * MINUTE
        return {
            "agent_id": f"agent-{self.vantage}",
            "agent_version": "0.1.0",
            "vantage": self.vantage,
            "cluster_id": cluster_id(self.script.position),
            "kafka_cluster_uuid": f"uuid-{self.script.position}",
            "broker_id": broker,
            "rack": f"zone-{broker % 3}" if self.script.position else None,
            "minute": begins,
            "expected_brokers": sorted(self.script.expected[listed_at]),
            "emitted_at": begins + timedelta(milliseconds=self.rng.randint(70_000, 75_000)),
        }

    def _schedule_lag(self, minute: int) -> ProbeRecord:
        late = minute in self.late or self.rng.random() < 0.01
        at_limit = self.rng.random() < 0.1
        on_time_us = ON_TIME_AT_MOST_US if at_limit else self.rng.randint(50, 20_000)
        late_us = ON_TIME_AT_MOST_US + (1 if at_limit else self.rng.randint(2, 800_000))
        p95_us = late_us if late else on_time_us
        return {"schedule_lag_p95_us": p95_us, "schedule_lag_max_us": p95_us + self.rng.randrange(50_000)}

    def _leadership(self, broker: int, behavior: BrokerBehavior) -> ProbeRecord:
        peers = sorted(set(broker_ids(self.script.position)) - {broker})
        other = self.rng.choice(peers)
        led_by = {
            BrokerBehavior.DOWN: self.rng.choice([[], [other]]),
            BrokerBehavior.FLAKY: [other, broker],
        }.get(behavior, [broker])
        return {"led_by": led_by, "leader_epoch": self.rng.choice([None, 3])}


# --- The fleet ---------------------------------------------------------------


def random_week(
    seed: int,
    *,
    clusters: int = 3,
    minutes: int = 300,
    start: datetime = START,
    vantages: int = 2,
    probes_per_minute: int = 100,
) -> list[ProbeRecord]:
    """Return shuffled ProbeMinute records of a fleet with a few duplicates; deterministic.

    ``vantages``: the maximum per cluster; ``minutes``: at least 30; a week of 10,080 has about 200,000
    records of three clusters.
    """
    rng = Random(f"week {seed}")
    records: list[ProbeRecord] = []
    for position in range(clusters):
        script = build_cluster_script(rng, position, minutes)
        agents = _agents(rng, script, start, vantages, probes_per_minute)
        records += _thin_last_minute(rng, [record for agent in agents for record in agent.records()])
    records += [dict(record) for record in rng.sample(records, len(records) // 50)]
    rng.shuffle(records)
    return records


def _agents(
    rng: Random, script: ClusterScript, start: datetime, vantages: int, probes_per_minute: int
) -> Iterator[Agent]:
    """Yield the agents; a second vantage sees membership changes later and has its own dead and late minutes.

    The first records of a cluster may not count: they are of late agents, or of the leader leg only.
    """
    trouble = FAULT_RATES[script.position % len(FAULT_RATES)]
    minutes = len(script.expected)
    latencies = draw_latencies_by_behavior(rng)
    at_first = frozenset(range(script.first, script.first + 4))
    late_at_first = at_first if script.position % 3 == 1 else frozenset()
    for number in range(1 + (script.position + 1) % vantages):
        yield Agent(
            rng=rng,
            script=script,
            vantage=f"zone-{number}",
            start=start,
            probes_per_minute=probes_per_minute,
            latencies=latencies,
            sees_membership_after=number * rng.randint(1, 3),
            dead=draw_spans(rng, minutes, trouble / 2, longest=20),
            late=draw_spans(rng, minutes, trouble, longest=5) | late_at_first,
            without_clients=at_first if script.position % 3 == 2 else frozenset(),
        )


def _thin_last_minute(rng: Random, records: list[ProbeRecord]) -> list[ProbeRecord]:
    """Return the records with only one of the cluster's latest minute."""
    latest = max(record["minute"] for record in records)
    kept = rng.choice([record for record in records if record["minute"] == latest])
    return [record for record in records if record["minute"] < latest or record is kept]
