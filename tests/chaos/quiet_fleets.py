"""Folds the pulses of simulated fleets: a quiet one pages nobody, and what is planted in one is found.

    python -m tests.chaos.quiet_fleets --brokers 200 --days 28
    python -m tests.chaos.quiet_fleets --brokers 1000 --days 2 --vantages 2
    python -m tests.chaos.quiet_fleets --brokers 30 --days 2 --planted 8

Clusters of five brokers. What is quiet is not smooth: a broker pauses, an agent starts again, leadership
drifts, days are busier than nights. Clusters are folded on all processors and kept in a file: the same
command goes on after those that are done. Prints one JSON value; exit 0 iff nothing was named but what was
planted, all of that was, and all ended.
"""

import json
import math
import sys
import tempfile
import time
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from random import Random
from statistics import median
from typing import Any

import click

from fleetgauge_core.contract import (
    BrokerPulse,
    Leg,
    LegPulse,
    ProbePulse,
)
from fleetgauge_core.detection import (
    Finding,
    FleetState,
    judge,
    pass_time,
)
from tests.chaos._streaming import say

BROKERS = 5
START = datetime(2026, 3, 2, tzinfo=UTC)
PULSE_S, WINDOW_S, PROBE_S, DEADLINE_S = 5, 15, 0.6, 5
PROBES = round(WINDOW_S / PROBE_S)
#: As seen of three brokers with a session of 6 s.
FENCED_AFTER_S, BACK_AFTER_S = 9.4, 1
#: An hour and a half in which is learnt what is usual, and as long after each that is planted.
APART_S = 5400
#: How long after its end a finding may last: a flapping broker's two minutes and a slow tail's 75 s are less.
ENDS_WITHIN_S = 180
#: Shares of all windows: a pause that one probe in 25 meets, and a burst that many meet.
PAUSES, BURSTS = 0.02, 0.0005
#: Shares of all pulses: an agent starts again, another broker leads for a while.
RESTARTS, DRIFTS = 0.00005, 0.0001


@dataclass(frozen=True, slots=True)
class Planted:
    """Something wrong with a broker, or with all of a cluster (0), between two seconds of its time."""

    kind: str
    broker: int
    start_s: int
    end_s: int
    ms: float

    def named_by(self, finding: Finding) -> bool:
        """Whether this is what it is to be found as."""
        whom = (finding.subject.broker_id or 0, finding.event.kind)
        return finding.names and (whom[0], whom[1]) in {(self.broker, kind) for kind in AS_KINDS[self.kind]}


AS_KINDS: Mapping[str, Sequence[str]] = {
    "hang": ("BROKER_DOWN",),
    "slow": ("DEGRADED",),
    "tail": ("DEGRADED",),
    "cluster": ("CLUSTER_DOWN",),
    "no_data": ("NO_DATA",),
}
LASTS_S = {
    "hang": (20, 300),
    "slow": (180, 900),
    "tail": (600, 1800),
    "cluster": (20, 300),
    "no_data": (60, 600),
}
OF_CLUSTERS = ("cluster", "no_data")


def plant(chance: Random, seconds: int, times: int) -> list[Planted]:
    """Each in a part of the time of its own."""
    found = []
    for number in range(times):
        part_s = seconds // times
        kind = chance.choice(list(AS_KINDS))
        lasts_s = chance.randint(*LASTS_S[kind])
        start_s = (
            number * part_s + APART_S + chance.randrange(max(1, part_s - APART_S - lasts_s - ENDS_WITHIN_S))
        )
        broker = 0 if kind in OF_CLUSTERS else chance.randint(1, BROKERS)
        found.append(Planted(kind, broker, start_s, start_s + lasts_s, chance.uniform(50, 300)))
    return found


class Cluster:
    """A cluster's pulses, from its vantages in turn; all follows from the seed."""

    def __init__(self, seed: int, seconds: int, vantages: int, planted: Sequence[Planted]) -> None:
        self._chance = Random(seed)
        self._seconds = seconds
        self._planted = planted
        self._usual_ms = {broker: self._chance.lognormvariate(1.2, 0.5) for broker in range(1, BROKERS + 1)}
        self._away_until_s = dict.fromkeys(range(vantages), 0)
        self._drifts_until_s = dict.fromkeys(self._usual_ms, 0)
        self._slow_probe_s = dict.fromkeys(self._usual_ms, -math.inf)

    def pulses(self) -> Iterator[ProbePulse]:
        for sequence, at_s in enumerate(range(0, self._seconds, PULSE_S)):
            now = next((one for one in self._planted if one.start_s <= at_s < one.end_s + WINDOW_S), None)
            for vantage in self._away_until_s:
                if self._chance.random() < RESTARTS:
                    self._away_until_s[vantage] = at_s + self._chance.randint(5, 20)
                silent = now is not None and now.kind == "no_data" and at_s < now.end_s
                if not silent and at_s >= self._away_until_s[vantage]:
                    yield self._pulse(sequence, at_s, vantage, now)

    def _pulse(self, sequence: int, at_s: int, vantage: int, now: Planted | None) -> ProbePulse:
        name = f"zone-{vantage}"
        return ProbePulse(
            agent_id=name,
            run_id=name,
            vantage=name,
            cluster_id="orders",
            sequence=sequence,
            emitted_at=START + timedelta(seconds=at_s + PULSE_S * vantage / len(self._away_until_s)),
            window_ms=WINDOW_S * 1000,
            brokers=tuple(self._broker(broker, at_s, now) for broker in self._usual_ms),
        )

    def _broker(self, broker: int, at_s: int, now: Planted | None) -> BrokerPulse:
        if now and now.kind in ("hang", "cluster") and now.broker in (0, broker):
            return self._hung(broker, at_s, now)
        if self._chance.random() < DRIFTS:
            self._drifts_until_s[broker] = at_s + self._chance.randint(5, 60)
        leads = at_s >= self._drifts_until_s[broker]
        p50_us, p99_us = self._took_us(broker, at_s, now)
        leader = self._leg(PROBES, 0, None, self._chance.random() * PROBE_S, p50_us, p99_us)
        return self._told(broker, 1.1 * self._chance.random(), (leader,) if leads else (), in_sync=True)

    def _took_us(self, broker: int, at_s: int, now: Planted | None) -> tuple[int, int]:
        chance = self._chance
        busy = 1 + 0.5 * math.sin(2 * math.pi * at_s / 86_400)
        p50_ms = self._usual_ms[broker] * busy * chance.lognormvariate(0, 0.1)
        p99_ms = p50_ms * chance.lognormvariate(1, 0.4)
        if chance.random() < PAUSES:
            p99_ms += chance.uniform(20, 250)
        if chance.random() < BURSTS:
            p50_ms += chance.uniform(10, 60)
            p99_ms += chance.uniform(50, 400)
        if now and now.broker == broker and now.kind == "slow":
            # How much of the window was slow.
            slow_s = min(at_s, now.end_s) - max(at_s - WINDOW_S, now.start_s)
            p50_ms += now.ms if slow_s > WINDOW_S / 2 else 0
            p99_ms += now.ms if slow_s > 0 else 0
        if now and now.broker == broker and now.kind == "tail":
            met = any(chance.random() < 0.05 for _ in range(round(PULSE_S / PROBE_S)))
            if met and at_s < now.end_s:
                self._slow_probe_s[broker] = at_s
            if at_s - self._slow_probe_s[broker] < WINDOW_S:
                p99_ms += 100 + now.ms
        return round(p50_ms * 1000), round(p99_ms * 1000)

    def _hung(self, broker: int, at_s: int, now: Planted) -> BrokerPulse:
        back_s = at_s - now.end_s - BACK_AFTER_S
        if back_s >= 0:
            succeeded = min(PROBES, int(back_s / PROBE_S) + 1)
            took_us = self._took_us(broker, at_s, None)
            leader = self._leg(succeeded, PROBES - succeeded, None, back_s % PROBE_S, *took_us)
            return self._told(broker, self._chance.random(), (leader,), in_sync=True)
        for_s = at_s - now.start_s
        failed = int(max(0, for_s - DEADLINE_S) / PROBE_S)
        left = max(0, PROBES - int(for_s / PROBE_S))
        leader = self._leg(left, min(PROBES, failed), min(for_s, DEADLINE_S), for_s + PROBE_S / 2, None, None)
        return self._told(broker, for_s + 0.5, (leader,), in_sync=for_s < FENCED_AFTER_S)

    def _leg(
        self,
        succeeded: int,
        failed: int,
        oldest_s: float | None,
        success_s: float,
        p50_us: int | None,
        p99_us: int | None,
    ) -> LegPulse:
        waiting, oldest_ms = (0, None) if oldest_s is None else (1, round(oldest_s * 1000))
        success_ms = round(success_s * 1000)
        return LegPulse(
            Leg.LEADER,
            succeeded + failed + waiting,
            succeeded,
            failed,
            waiting,
            oldest_ms,
            success_ms,
            p50_us,
            p99_us,
        )

    def _told(
        self, broker: int, answered_s: float, legs: tuple[LegPulse, ...], *, in_sync: bool
    ) -> BrokerPulse:
        leads = in_sync and bool(legs)
        return BrokerPulse(broker, leads, in_sync, not in_sync, round(answered_s * 1000), None, legs)


def folded(seed: int, seconds: int, vantages: int, times: int) -> dict[str, Any]:
    """One cluster: what was planted, when it was found, and what was named besides."""
    planted = plant(Random(-seed - 1), seconds, times) if times else []
    state, pulses, named = FleetState(), 0, list[Finding]()
    for pulse in Cluster(seed, seconds, vantages, planted).pulses():
        pulses += 1
        state, missed = pass_time(state, pulse.emitted_at)
        state, found = judge(state, pulse)
        named += [one for one in (*missed, *found) if one.names or one.clears]
    rows = [_row(one, named) for one in planted]
    return {
        "seed": seed,
        "pulses": pulses,
        "planted": rows,
        "wrong": [_words(one) for one in named if one.names and not any(_is_of(one, of) for of in planted)],
        "open": [phase.value for _, phase in state.open_findings()],
    }


def _row(planted: Planted, named: Sequence[Finding]) -> dict[str, Any]:
    first = next((one for one in named if _is_of(one, planted)), None)
    after_s = (first.event.at - START).total_seconds() - planted.start_s if first else None
    return {"kind": planted.kind, "lasts_s": planted.end_s - planted.start_s, "named_after_s": after_s}


def _is_of(finding: Finding, planted: Planted) -> bool:
    at_s = (finding.event.at - START).total_seconds()
    return planted.named_by(finding) and planted.start_s <= at_s < planted.end_s + ENDS_WITHIN_S


def _words(one: Finding) -> str:
    return f"{one.event.at:%FT%TZ} {one.subject.broker_id} {one.event.kind} {one.event.evidence}"


def verdict(rows: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    planted = [one for row in rows for one in row["planted"]]
    detected = defaultdict(list)
    for one in planted:
        if one["named_after_s"] is not None:
            detected[one["kind"]].append(one["named_after_s"])
    wrong = [words for row in rows for words in row["wrong"]]
    return {
        "clusters": len(rows),
        "broker_pulses": sum(row["pulses"] for row in rows) * BROKERS,
        "planted": len(planted),
        "missed": [one for one in planted if one["named_after_s"] is None],
        "pages_wrong": len(wrong),
        "examples": wrong[:10],
        "open": sum(len(row["open"]) for row in rows),
        "detect_s": {kind: {"median": median(of), "max": max(of)} for kind, of in sorted(detected.items())},
    }


@click.command()
@click.option("--brokers", default=200, show_default=True, help=f"In clusters of {BROKERS}.")
@click.option("--days", default=28.0, show_default=True)
@click.option("--vantages", default=1, show_default=True, type=click.IntRange(1, 3))
@click.option("--planted", default=0, show_default=True, help="How much goes wrong in each cluster.")
@click.option("--seed", default=1, show_default=True)
@click.option("--again", is_flag=True, help="From the beginning, whatever an earlier run has done.")
def main(brokers: int, days: float, vantages: int, planted: int, seed: int, again: bool) -> None:
    name = f"fleetgauge-quiet-{brokers}-{days:g}-{vantages}-{planted}-{seed}.jsonl"
    kept = Path(tempfile.gettempdir(), name)
    if again:
        kept.unlink(missing_ok=True)
    rows = [json.loads(line) for line in kept.read_text().splitlines()] if kept.exists() else []
    done = {row["seed"] for row in rows}
    left = [one for one in range(seed * 10_000, seed * 10_000 + brokers // BROKERS) if one not in done]
    say(f"{len(done)} clusters are done, {len(left)} are left")
    started = time.monotonic()
    with ProcessPoolExecutor() as pool:
        seconds = round(days * 86_400)
        for future in as_completed(pool.submit(folded, one, seconds, vantages, planted) for one in left):
            rows.append(future.result())
            with kept.open("a") as file:
                file.write(f"{json.dumps(rows[-1])}\n")
            say(f"{len(rows)} of {len(done) + len(left)}: {len(rows[-1]['wrong'])} wrong")
    kept.unlink(missing_ok=True)
    found = verdict(rows) | {"seconds": round(time.monotonic() - started)}
    print(json.dumps(found, indent=2))
    sys.exit(1 if found["missed"] or found["pages_wrong"] or found["open"] else 0)


if __name__ == "__main__":
    main()
