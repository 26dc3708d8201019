"""Repeatedly stops the agent's process while its brokers are healthy: no broker is blamed.

    python -m tests.chaos.stall_agent --times 12

The agent measures two clusters of three brokers, and the watch runs. The agent gets a SIGSTOP, and a SIGCONT
after 0.15 to 45 s, like a garbage collection, a throttled container or a suspended machine. Prints one JSON
value. Exits with 0 iff no probe failed, there was no finding, and every broker-minute in which the agent ran
is recorded exactly once. The slowest acknowledgements of minutes with and without pauses are reported.
"""

import json
import signal
import sys
import tempfile
import time
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from random import Random
from typing import Any

import click

from fleetgauge_core.contract import HealthEvent
from fleetgauge_core.fleet import Telemetry, load_fleet
from fleetgauge_core.kafka import ensure_telemetry_topics
from fleetgauge_local.fleet import LocalFleet
from tests.chaos._agent import MINUTE, read_records, wait_for_minute
from tests.chaos._streaming import Command, Row, log_progress
from tests.topic_values import read_values
from tests.waiting import let_pass

PAUSES_S = (0.15, 0.4, 1.2, 3.0, 8.0, 20.0, 45.0)
#: Range of the time between two pauses; pulses are emitted every 5 s.
INTERVAL_S = (7.0, 25.0)


@dataclass(frozen=True, slots=True)
class ScenarioResult:
    """Distinct records, the findings of the watch, and the start and duration of each pause."""

    records: Sequence[Row]
    findings: Sequence[HealthEvent]
    pauses: Sequence[tuple[datetime, float]]


def run_scenario(folder: Path, times: int, rng: Random) -> ScenarioResult:
    with LocalFleet(folder, progress=log_progress) as local, ExitStack() as stack:
        fleet = load_fleet(local.fleet_file)
        assert fleet.telemetry is not None
        ensure_telemetry_topics(fleet.telemetry)
        config = ("--config", str(local.fleet_file))
        stack.enter_context(Command(folder / "watch.log", "watch", *config))
        agent = stack.enter_context(Command(folder / "probe.log", "probe", *config))
        wait_for_minute(fleet.telemetry, datetime.now(UTC) + MINUTE)
        pauses = []
        for number in range(times):
            let_pass(time.monotonic() + rng.uniform(*INTERVAL_S))
            pauses.append((datetime.now(UTC), pause(agent, PAUSES_S[number % len(PAUSES_S)])))
        wait_for_minute(fleet.telemetry, datetime.now(UTC) + MINUTE)
        assert agent.end() == 0, agent.output
        return ScenarioResult(read_records(fleet.telemetry), read_findings(fleet.telemetry), pauses)


def pause(agent: Command, seconds: float) -> float:
    (process,) = agent.tree()
    log_progress(f"the agent is paused for {seconds:g} s")
    process.send_signal(signal.SIGSTOP)
    let_pass(time.monotonic() + seconds)
    process.send_signal(signal.SIGCONT)
    return seconds


def read_findings(telemetry: Telemetry) -> list[HealthEvent]:
    values = read_values(telemetry.access, telemetry.topics.health_events.name)
    return [HealthEvent.decode(value) for value in values]


def judge(result: ScenarioResult) -> dict[str, Any]:
    keys = [
        (record["cluster_id"], record["broker_id"], record["leg"], record["minute"])
        for record in result.records
    ]
    minutes = {record["minute"] for record in result.records}
    first, last = min(minutes), max(minutes)
    paused = {minute for at, seconds in result.pauses for minute in list_paused_minutes(at, seconds)}
    ran = {first + n * MINUTE for n in range(1, (last - first) // MINUTE)} - paused
    legs = {(cluster, broker, leg) for cluster, broker, leg, _ in keys}
    expected = {(*leg, minute) for leg in legs for minute in ran}
    touched = {at.replace(second=0, microsecond=0) for at, _ in result.pauses}
    slowest_us = {
        disturbed: max(
            (
                latency_us
                for record in result.records
                if (record["minute"] in touched) is disturbed
                for latency_us in record["ack_us"]
            ),
            default=0,
        )
        for disturbed in (True, False)
    }
    report = {
        "stalls": len(result.pauses),
        "stalled_s": round(sum(seconds for _, seconds in result.pauses), 1),
        "broker_minutes": len(keys),
        "failed_probes": sum(
            sum(record[kind].values())
            for record in result.records
            for kind in ("produce_failures", "consume_failures")
        ),
        "findings": [
            f"{finding.cluster_id} {finding.broker_id} {finding.to_state}" for finding in result.findings
        ],
        "minutes_missing": len(expected - set(keys)),
        "minutes_twice": len(keys) - len(set(keys)),
        "left_out": sum(
            100 - record["attempted"] for record in result.records if record["minute"] in touched & ran
        ),
        "slowest_ack_ms_in_stalled_minutes": slowest_us[True] / 1000,
        "slowest_ack_ms_in_others": slowest_us[False] / 1000,
    }
    faults = ("failed_probes", "findings", "minutes_missing", "minutes_twice")
    return report | {"passed": not any(report[name] for name in faults) and len(result.pauses) > 0}


def list_paused_minutes(at: datetime, seconds: float) -> list[datetime]:
    """Return the minutes that lie entirely within a pause."""
    begins = at.replace(second=0, microsecond=0) + MINUTE
    whole = int((at + timedelta(seconds=seconds) - begins) / MINUTE)
    return [begins + n * MINUTE for n in range(max(0, whole))]


@click.command()
@click.option("--times", default=14, show_default=True, type=click.IntRange(min=1), help="Number of pauses.")
@click.option("--seed", default=1, show_default=True, help="Seed of the times between the pauses.")
def main(times: int, seed: int) -> None:
    with tempfile.TemporaryDirectory(prefix="fleetgauge-stall-agent-") as folder:
        report = judge(run_scenario(Path(folder), times, Random(seed)))
    print(json.dumps(report, indent=2))
    sys.exit(0 if report["passed"] else 1)


if __name__ == "__main__":
    main()
