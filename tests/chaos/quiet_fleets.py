"""Folds the pulses of simulated fleets: a healthy fleet causes no page, and planted faults are detected.

    python -m tests.chaos.quiet_fleets --brokers 200 --days 28
    python -m tests.chaos.quiet_fleets --brokers 1000 --days 2 --vantages 2
    python -m tests.chaos.quiet_fleets --brokers 30 --days 2 --planted 8
    python -m tests.chaos.quiet_fleets --brokers 30 --days 2 --planted 8 --set well=15 --set recurrences=99

Clusters have five brokers. A healthy fleet is not free of variation: brokers pause, agents restart,
leadership drifts, and days are busier than nights. Clusters are folded on all CPUs and their results
are kept in a file: the same command continues after them. Prints one JSON value; exits with 0 iff all planted
faults and nothing else was reported, and every finding ended. `resolve_s` is the time from a fault's end
until its last finding ended.
"""

import json
import math
import sys
import tempfile
import time
from collections import Counter, defaultdict
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
    DEFAULT_THRESHOLDS,
    Finding,
    FleetHealth,
    Thresholds,
    detect_no_data,
    fold_pulse,
)
from fleetgauge_operations.replay.commands import change_thresholds
from tests.chaos._streaming import log_progress

BROKERS = 5
START = datetime(2026, 3, 2, tzinfo=UTC)
PULSE_S, WINDOW_S, PROBE_S, DEADLINE_S = 5, 15, 0.6, 5
PROBES = round(WINDOW_S / PROBE_S)
#: As measured on three brokers with a session timeout of 6 s.
FENCED_AFTER_S, BACK_AFTER_S = 9.4, 1
#: Time in which the baseline is learned, at the start and after each planted fault.
BASELINE_S = 5400
#: How long after its fault a finding may open: one of a broker that comes and goes lasts for 315 s or more.
ENDS_WITHIN_S = 420
#: Shares of all windows with a pause that affects one probe in 25, and with a burst that affects many.
PAUSES, BURSTS = 0.02, 0.0005
#: Shares of all pulses at which an agent restarts, or another broker leads for a while.
RESTARTS, DRIFTS = 0.00005, 0.0001


@dataclass(frozen=True, slots=True)
class PlantedFault:
    """A fault of a broker, or of the whole cluster (broker 0), in spells of seconds of the simulation."""

    kind: str
    broker: int
    spells_s: tuple[tuple[int, int], ...]
    ms: float

    @property
    def start_s(self) -> int:
        return self.spells_s[0][0]

    @property
    def end_s(self) -> int:
        return self.spells_s[-1][1]

    def overlap_s(self, from_s: int, to_s: int) -> int:
        """Return how long the fault was there between two seconds."""
        return sum(max(0, min(to_s, end_s) - max(from_s, start_s)) for start_s, end_s in self.spells_s)

    def is_reported_by(self, finding: Finding) -> bool:
        """Return whether a finding reports this fault."""
        key = (finding.subject.broker_id or 0, finding.event.kind)
        return finding.is_alert and key in {(self.broker, kind) for kind in FINDING_KINDS[self.kind]}


FINDING_KINDS: Mapping[str, Sequence[str]] = {
    "hang": ("BROKER_DOWN",),
    "slow": ("DEGRADED",),
    "tail": ("DEGRADED",),
    "recurring": ("DEGRADED",),
    "cluster": ("CLUSTER_DOWN",),
    "no_data": ("NO_DATA",),
}
DURATION_S = {
    "hang": (20, 300),
    "slow": (180, 900),
    "tail": (600, 1800),
    "cluster": (20, 300),
    "no_data": (60, 600),
}
#: A recurring fault is there so often, for so long, and away in between for so long.
SPELLS, SPELL_S, BETWEEN_S = 5, (60, 120), (30, 120)
CLUSTER_FAULTS = ("cluster", "no_data")


def plant(chance: Random, seconds: int, times: int) -> list[PlantedFault]:
    """Return random faults, each in its own part of the time."""
    faults = []
    for number in range(times):
        part_s = seconds // times
        kind = chance.choice(list(FINDING_KINDS))
        spells_s = _draw_spells(chance, kind)
        lasts_s = spells_s[-1][1]
        start_s = (
            number * part_s
            + BASELINE_S
            + chance.randrange(max(1, part_s - BASELINE_S - lasts_s - ENDS_WITHIN_S))
        )
        broker = 0 if kind in CLUSTER_FAULTS else chance.randint(1, BROKERS)
        moved_s = tuple((start_s + spell_start_s, start_s + end_s) for spell_start_s, end_s in spells_s)
        faults.append(PlantedFault(kind, broker, moved_s, chance.uniform(50, 300)))
    return faults


def _draw_spells(chance: Random, kind: str) -> list[tuple[int, int]]:
    """Return the spells of a fault that starts at second 0."""
    if kind != "recurring":
        return [(0, chance.randint(*DURATION_S[kind]))]
    spells_s, at_s = [], 0
    for _ in range(SPELLS):
        end_s = at_s + chance.randint(*SPELL_S)
        spells_s.append((at_s, end_s))
        at_s = end_s + chance.randint(*BETWEEN_S)
    return spells_s


class SimulatedCluster:
    """The pulses of a cluster from its vantages in turn, determined by the seed."""

    def __init__(self, seed: int, seconds: int, vantages: int, planted: Sequence[PlantedFault]) -> None:
        self._chance = Random(seed)
        self._seconds = seconds
        self._planted = planted
        self._usual_ms = {broker: self._chance.lognormvariate(1.2, 0.5) for broker in range(1, BROKERS + 1)}
        self._away_until_s = dict.fromkeys(range(vantages), 0)
        self._drifts_until_s = dict.fromkeys(self._usual_ms, 0)
        self._slow_probe_s = dict.fromkeys(self._usual_ms, -math.inf)

    def pulses(self) -> Iterator[ProbePulse]:
        for sequence, at_s in enumerate(range(0, self._seconds, PULSE_S)):
            now = next(
                (fault for fault in self._planted if fault.start_s <= at_s < fault.end_s + WINDOW_S), None
            )
            for vantage in self._away_until_s:
                if self._chance.random() < RESTARTS:
                    self._away_until_s[vantage] = at_s + self._chance.randint(5, 20)
                silent = now is not None and now.kind == "no_data" and at_s < now.end_s
                if not silent and at_s >= self._away_until_s[vantage]:
                    yield self._pulse(sequence, at_s, vantage, now)

    def _pulse(self, sequence: int, at_s: int, vantage: int, now: PlantedFault | None) -> ProbePulse:
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

    def _broker(self, broker: int, at_s: int, now: PlantedFault | None) -> BrokerPulse:
        if now and now.kind in ("hang", "cluster") and now.broker in (0, broker):
            return self._hung(broker, at_s, now)
        if self._chance.random() < DRIFTS:
            self._drifts_until_s[broker] = at_s + self._chance.randint(5, 60)
        leads = at_s >= self._drifts_until_s[broker]
        p50_us, p99_us = self._draw_latencies_us(broker, at_s, now)
        leader = self._leg(PROBES, 0, None, self._chance.random() * PROBE_S, p50_us, p99_us)
        return self._broker_pulse(
            broker, 1.1 * self._chance.random(), (leader,) if leads else (), in_sync=True
        )

    def _draw_latencies_us(self, broker: int, at_s: int, now: PlantedFault | None) -> tuple[int, int]:
        chance = self._chance
        busy = 1 + 0.5 * math.sin(2 * math.pi * at_s / 86_400)
        p50_ms = self._usual_ms[broker] * busy * chance.lognormvariate(0, 0.1)
        p99_ms = p50_ms * chance.lognormvariate(1, 0.4)
        if chance.random() < PAUSES:
            p99_ms += chance.uniform(20, 250)
        if chance.random() < BURSTS:
            p50_ms += chance.uniform(10, 60)
            p99_ms += chance.uniform(50, 400)
        if now and now.broker == broker and now.kind in ("slow", "recurring"):
            slow_s = now.overlap_s(at_s - WINDOW_S, at_s)
            p50_ms += now.ms if slow_s > WINDOW_S / 2 else 0
            p99_ms += now.ms if slow_s > 0 else 0
        if now and now.broker == broker and now.kind == "tail":
            met = any(chance.random() < 0.05 for _ in range(round(PULSE_S / PROBE_S)))
            if met and at_s < now.end_s:
                self._slow_probe_s[broker] = at_s
            if at_s - self._slow_probe_s[broker] < WINDOW_S:
                p99_ms += 100 + now.ms
        return round(p50_ms * 1000), round(p99_ms * 1000)

    def _hung(self, broker: int, at_s: int, now: PlantedFault) -> BrokerPulse:
        back_s = at_s - now.end_s - BACK_AFTER_S
        if back_s >= 0:
            succeeded = min(PROBES, int(back_s / PROBE_S) + 1)
            took_us = self._draw_latencies_us(broker, at_s, None)
            leader = self._leg(succeeded, PROBES - succeeded, None, back_s % PROBE_S, *took_us)
            return self._broker_pulse(broker, self._chance.random(), (leader,), in_sync=True)
        for_s = at_s - now.start_s
        failed = int(max(0, for_s - DEADLINE_S) / PROBE_S)
        left = max(0, PROBES - int(for_s / PROBE_S))
        leader = self._leg(left, min(PROBES, failed), min(for_s, DEADLINE_S), for_s + PROBE_S / 2, None, None)
        return self._broker_pulse(broker, for_s + 0.5, (leader,), in_sync=for_s < FENCED_AFTER_S)

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

    def _broker_pulse(
        self, broker: int, answered_s: float, legs: tuple[LegPulse, ...], *, in_sync: bool
    ) -> BrokerPulse:
        leads = in_sync and bool(legs)
        return BrokerPulse(broker, leads, in_sync, not in_sync, round(answered_s * 1000), None, legs)


def fold_cluster(seed: int, seconds: int, vantages: int, times: int, limits: Thresholds) -> dict[str, Any]:
    """Fold one cluster; return its planted faults, when each was found and resolved, and wrong findings."""
    planted = plant(Random(-seed - 1), seconds, times) if times else []
    state, pulses, findings = FleetHealth(), 0, list[Finding]()
    for pulse in SimulatedCluster(seed, seconds, vantages, planted).pulses():
        pulses += 1
        state, no_data = detect_no_data(state, pulse.emitted_at, limits)
        state, detected = fold_pulse(state, pulse, limits)
        findings += [finding for finding in (*no_data, *detected) if finding.is_alert or finding.is_cleared]
    rows = [_describe_fault(fault, findings) for fault in planted]
    return {
        "seed": seed,
        "pulses": pulses,
        "planted": rows,
        "wrong": [
            _describe_finding(finding)
            for finding in findings
            if finding.is_alert and not any(_is_report(finding, fault) for fault in planted)
        ],
        "open": [phase.value for _, phase in state.open_findings()],
    }


def _describe_fault(fault: PlantedFault, findings: Sequence[Finding]) -> dict[str, Any]:
    alerts = [finding for finding in findings if _is_report(finding, fault)]
    named_s = [_second_of(finding) - fault.start_s for finding in alerts]
    # However late: a broker may be slow for a moment by chance while its finding is about to clear.
    cleared_s = [
        _second_of(finding) - fault.end_s
        for finding in findings
        if alerts
        and finding.is_cleared
        and finding.subject == alerts[-1].subject
        and finding.event.at > alerts[-1].event.at
    ]
    return {
        "kind": fault.kind,
        "lasts_s": fault.end_s - fault.start_s,
        "alerts": len(alerts),
        "named_after_s": named_s[0] if named_s else None,
        "resolved_after_s": cleared_s[0] if cleared_s else None,
    }


def _is_report(finding: Finding, fault: PlantedFault) -> bool:
    at_s = _second_of(finding)
    return fault.is_reported_by(finding) and fault.start_s <= at_s < fault.end_s + ENDS_WITHIN_S


def _second_of(finding: Finding) -> float:
    return (finding.event.at - START).total_seconds()


def _describe_finding(finding: Finding) -> str:
    event = finding.event
    return f"{event.at:%FT%TZ} {finding.subject.broker_id} {event.kind} {event.evidence}"


def summarize(rows: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    planted = [fault for row in rows for fault in row["planted"]]
    alerts = Counter[str]()
    for fault in planted:
        alerts[fault["kind"]] += fault["alerts"]
    wrong = [finding for row in rows for finding in row["wrong"]]
    return {
        "clusters": len(rows),
        "broker_pulses": sum(row["pulses"] for row in rows) * BROKERS,
        "planted": len(planted),
        "missed": [fault for fault in planted if fault["named_after_s"] is None],
        "pages_wrong": len(wrong),
        "examples": wrong[:10],
        "open": sum(len(row["open"]) for row in rows),
        "alerts": {
            kind: {"faults": faults, "alerts": alerts[kind]}
            for kind, faults in sorted(Counter(fault["kind"] for fault in planted).items())
        },
        "detect_s": _summarize_times(planted, "named_after_s"),
        "resolve_s": _summarize_times(planted, "resolved_after_s"),
    }


def _summarize_times(planted: Sequence[Mapping[str, Any]], name: str) -> dict[str, dict[str, float]]:
    times_s = defaultdict(list)
    for fault in planted:
        if fault[name] is not None:
            times_s[fault["kind"]].append(fault[name])
    return {kind: {"median": median(times), "max": max(times)} for kind, times in sorted(times_s.items())}


@click.command()
@click.option("--brokers", default=200, show_default=True, help=f"In clusters of {BROKERS}.")
@click.option("--days", default=28.0, show_default=True)
@click.option("--vantages", default=1, show_default=True, type=click.IntRange(1, 3))
@click.option("--planted", default=0, show_default=True, help="Number of faults planted in each cluster.")
@click.option("--seed", default=1, show_default=True)
@click.option(
    "--set", "changes", multiple=True, metavar="NAME=VALUE", help="Change a threshold of detection."
)
@click.option("--again", is_flag=True, help="Start over instead of continuing an earlier run.")
def main(
    brokers: int,
    days: float,
    vantages: int,
    planted: int,
    seed: int,
    changes: tuple[str, ...],
    again: bool,
) -> None:
    limits = change_thresholds(DEFAULT_THRESHOLDS, changes)
    name = "-".join(map(str, ("fleetgauge-quiet", brokers, f"{days:g}", vantages, planted, seed, *changes)))
    progress = Path(tempfile.gettempdir(), f"{name}.jsonl")
    if again:
        progress.unlink(missing_ok=True)
    rows = [json.loads(line) for line in progress.read_text().splitlines()] if progress.exists() else []
    done = {row["seed"] for row in rows}
    seeds = range(seed * 10_000, seed * 10_000 + brokers // BROKERS)
    left = [cluster_seed for cluster_seed in seeds if cluster_seed not in done]
    log_progress(f"{len(done)} clusters are done, {len(left)} are left")
    started = time.monotonic()
    with ProcessPoolExecutor() as pool:
        seconds = round(days * 86_400)
        for future in as_completed(
            pool.submit(fold_cluster, cluster_seed, seconds, vantages, planted, limits)
            for cluster_seed in left
        ):
            rows.append(future.result())
            with progress.open("a") as file:
                file.write(f"{json.dumps(rows[-1])}\n")
            log_progress(f"{len(rows)} of {len(done) + len(left)}: {len(rows[-1]['wrong'])} wrong")
    progress.unlink(missing_ok=True)
    report = summarize(rows) | {"seconds": round(time.monotonic() - started)}
    print(json.dumps(report, indent=2))
    sys.exit(1 if report["missed"] or report["pages_wrong"] or report["open"] else 0)


if __name__ == "__main__":
    main()
