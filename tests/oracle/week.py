"""Believable, nasty ProbeMinute records: what agents would send about a fleet that has a bad week.

Everything follows from the seed. Each cluster gets a script (who is expected,
who is ill, which agent is dead or late, minute by minute); agents then record
it probe by probe, and at the end some records are replayed and all shuffled.
Every record keeps the contract: its arrays ascend and its counts add up.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from random import Random
from typing import Any
from uuid import UUID

from tests.oracle.probes import Latencies, client_probes, latencies_by_mood, leader_probes
from tests.oracle.script import TROUBLE, Mood, Script, broker_ids, cluster_id, cluster_script, spans

Record = dict[str, Any]

MINUTE = timedelta(minutes=1)
#: Three hours before a Monday in UTC, one before it in Berlin, on the day its clocks go forward.
START = datetime(2026, 3, 29, 21, 0, tzinfo=UTC)
ON_TIME_AT_MOST_US = 100_000


# --- What fleet.yaml says ----------------------------------------------------


def random_fleet(
    seed: int, *, clusters: int = 3, minutes: int = 300, start: datetime = START
) -> dict[str, Any]:
    """A fleet.yaml document for the records of the same seed: tiers, segments, since, until, retired."""
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


# --- What one agent records --------------------------------------------------


@dataclass(frozen=True, slots=True)
class Run:
    """A stretch of minutes that one agent process lives through."""

    run_id: str
    first: int
    last: int
    attempted_at_first: int
    attempted_at_last: int

    def attempted(self, minute: int, probes_per_minute: int) -> int:
        """Runs that start or are killed in mid-minute write what they really attempted."""
        if minute == self.first:
            return min(self.attempted_at_first, probes_per_minute)
        return min(self.attempted_at_last, probes_per_minute) if minute == self.last else probes_per_minute


def _runs(rng: Random, first: int, last: int) -> Iterator[Run]:
    """Run after run; at a restart both write part of the same minute, together enough or not."""
    begins, attempted_at_first = first, rng.choice([7, 30, 49, 50, 60])
    restarts = sorted({rng.randint(first + 1, last - 1) for _ in range(2)}) if last - first > 4 else []
    for restart in restarts:
        killed_after, back_for = rng.choice([(30, 45), (30, 20), (49, 1), (60, 30), (10, 20), (0, 49)])
        yield Run(_uuid(rng), begins, restart, attempted_at_first, killed_after)
        begins, attempted_at_first = restart, back_for
    yield Run(_uuid(rng), begins, last - 1, attempted_at_first, 100)


def _uuid(rng: Random) -> str:
    return str(UUID(int=rng.getrandbits(128), version=4))


@dataclass(frozen=True, slots=True)
class Agent:
    """One vantage's view of one cluster."""

    rng: Random
    script: Script
    vantage: str
    start: datetime
    probes_per_minute: int
    latencies: dict[Mood, Latencies]
    sees_membership_after: int
    dead: frozenset[int]
    late: frozenset[int]
    without_clients: frozenset[int]

    def records(self) -> Iterator[Record]:
        for run in _runs(self.rng, self.script.first, self.script.last):
            sequence = self.rng.choice([0, 1, 5_000_000_000])
            for minute in range(run.first, run.last + 1):
                if minute in self.dead or minute in self.script.nobody_records:
                    continue
                for record in self._minute(minute, run):
                    yield record | {"run_id": run.run_id, "sequence": sequence}
                    sequence += 1

    def _minute(self, minute: int, run: Run) -> Iterator[Record]:
        attempted = run.attempted(minute, self.probes_per_minute)
        for broker in sorted(self.script.probed[minute]):
            for leg in ("client", "leader"):
                never_arrived = leg == "client" and minute in self.without_clients
                if never_arrived or self.rng.random() < 0.01:
                    continue
                yield self._record(minute, broker, leg, attempted)

    def _record(self, minute: int, broker: int, leg: str, attempted: int) -> Record:
        mood = self.script.mood[broker][minute]
        exact_us = self.script.exact_p99_us.get(minute)
        probes = client_probes if leg == "client" else leader_probes
        return (
            self._who_and_when(minute, broker)
            | {"leg": leg}
            | probes(self.rng, attempted, mood, self.latencies[mood], exact_us)
            | self._schedule_lag(minute)
            | self._leadership(broker, mood)
        )

    def _who_and_when(self, minute: int, broker: int) -> Record:
        seen = max(minute - self.sees_membership_after, 0)
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
            "expected_brokers": sorted(self.script.expected[seen]),
            "emitted_at": begins + timedelta(milliseconds=self.rng.randint(70_000, 75_000)),
        }

    def _schedule_lag(self, minute: int) -> Record:
        late = minute in self.late or self.rng.random() < 0.01
        on_the_edge = self.rng.random() < 0.1
        on_time_us = ON_TIME_AT_MOST_US if on_the_edge else self.rng.randint(50, 20_000)
        late_us = ON_TIME_AT_MOST_US + (1 if on_the_edge else self.rng.randint(2, 800_000))
        p95_us = late_us if late else on_time_us
        return {"schedule_lag_p95_us": p95_us, "schedule_lag_max_us": p95_us + self.rng.randrange(50_000)}

    def _leadership(self, broker: int, mood: Mood) -> Record:
        others = sorted(set(broker_ids(self.script.position)) - {broker})
        other = self.rng.choice(others)
        led_by = {Mood.DOWN: self.rng.choice([[], [other]]), Mood.FLAKY: [other, broker]}.get(mood, [broker])
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
) -> list[Record]:
    """ProbeMinute records of a fleet, shuffled, a few of them twice; the same for the same arguments.

    ``vantages`` is the most that a cluster has; ``minutes`` should be 30 at
    least, 10,080 is a week (some 200,000 records of three clusters).
    """
    rng = Random(f"week {seed}")
    records: list[Record] = []
    for position in range(clusters):
        script = cluster_script(rng, position, minutes)
        agents = _agents(rng, script, start, vantages, probes_per_minute)
        records += _thin_last_minute(rng, [record for agent in agents for record in agent.records()])
    records += [dict(record) for record in rng.sample(records, len(records) // 50)]
    rng.shuffle(records)
    return records


def _agents(
    rng: Random, script: Script, start: datetime, vantages: int, probes_per_minute: int
) -> Iterator[Agent]:
    """A second vantage learns of joins and leaves later and keeps its own dead and late minutes.

    A cluster may begin with records that do not begin it: of late agents, or of the leader leg only.
    """
    trouble = TROUBLE[script.position % len(TROUBLE)]
    minutes = len(script.expected)
    latencies = latencies_by_mood(rng)
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
            dead=spans(rng, minutes, trouble / 2, longest=20),
            late=spans(rng, minutes, trouble, longest=5) | late_at_first,
            without_clients=at_first if script.position % 3 == 2 else frozenset(),
        )


def _thin_last_minute(rng: Random, records: list[Record]) -> list[Record]:
    """Of a cluster's latest minute one record has arrived so far."""
    latest = max(record["minute"] for record in records)
    arrived = rng.choice([record for record in records if record["minute"] == latest])
    return [record for record in records if record["minute"] < latest or record is arrived]
