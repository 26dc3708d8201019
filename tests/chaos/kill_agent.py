"""Stops the telemetry cluster for minutes and repeatedly kills the agent meanwhile: no minute is lost.

    python -m tests.chaos.kill_agent --minutes 10 --times 5

The agent measures two clusters of three brokers. While the telemetry cluster is down, the agent is killed at
seeded random moments and restarted at once. When the telemetry cluster is back and the agent has ended, the
pipeline ingests the topic. Prints one JSON value. Exits with 0 iff nothing is left in the spool; silver
holds every broker-minute of both legs once, from the first full minute to the last; every minute in which no
run started or was killed, and the agent was not late, has at least 95 of its 100 probes; and a kill costs no
more than a restart takes.
"""

import json
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

from fleetgauge_core.fleet import Telemetry, load_fleet
from fleetgauge_core.kafka import ensure_telemetry_topics
from fleetgauge_core.tables import BROKER_MINUTES
from fleetgauge_local.fleet import LocalFleet
from tests.chaos._agent import DEADLINE_S, MINUTE, count_attempts, read_records, wait_for_minute
from tests.chaos._streaming import Command, Row, log_progress, rows
from tests.waiting import let_pass

#: Gives every broker a full minute before the telemetry cluster stops and after it is back.
SETTLING = 2 * MINUTE
PROBES = 100
#: A probe or two of a minute may measure the agent instead of the broker and are excluded.
MIN_PROBES = 95
PROBE_EVERY_S = 0.6
#: The default of fleet.yaml.
AGENT_LATE_US = 100_000
#: Open minutes are stored every 5 s; a new process takes some seconds to start and up to 10 s to warm up.
MAX_KILL_COST_S = 20


@dataclass(frozen=True, slots=True)
class ScenarioResult:
    """Distinct records, rows of silver, the times of kills, and what was left in the spool."""

    records: Sequence[Row]
    silver: Sequence[Row]
    kills: Sequence[datetime]
    left_waiting: int
    spool_bytes: int


# --- Scenario --------------------------------------------------------------


def run_scenario(folder: Path, minutes: float, times: int, rng: Random) -> ScenarioResult:
    with LocalFleet(folder, progress=log_progress) as local, ExitStack() as stack:
        fleet = load_fleet(local.fleet_file)
        assert fleet.telemetry is not None
        ensure_telemetry_topics(fleet.telemetry)
        probe = ("probe", "--config", str(local.fleet_file), "--json")
        agent = stack.enter_context(Command(folder / "probe.log", *probe))
        wait_for_minute(fleet.telemetry, datetime.now(UTC) + SETTLING)
        local.fault("kill", "telemetry", 1)
        stopped_s = time.monotonic()
        log_progress("the telemetry cluster is stopped")
        kills = []
        for moment_s in draw_moments(rng, times, minutes * 60):
            let_pass(stopped_s + moment_s)
            assert agent.is_alive, agent.output
            kills.append(datetime.now(UTC))
            agent.kill()
            agent = stack.enter_context(Command(folder / "probe.log", *probe))
            log_progress(f"killed the agent, {len(kills)} of {times}")
        let_pass(stopped_s + minutes * 60)
        spool_bytes = sum(path.stat().st_size for path in (folder / "spool").iterdir())
        local.fault("heal", "telemetry", 1)
        local.wait_ready()
        log_progress("the telemetry cluster is back")
        wait_for_minute(fleet.telemetry, datetime.now(UTC) + SETTLING)
        assert agent.end() == 0, agent.output
        left_waiting = json.loads(agent.output.splitlines()[-1])["waiting"]
        records = read_records(fleet.telemetry)
        ingest(local.fleet_file, fleet.telemetry)
        return ScenarioResult(
            records, rows(Path(fleet.lake), BROKER_MINUTES), kills, left_waiting, spool_bytes
        )


def draw_moments(rng: Random, times: int, seconds: float) -> list[float]:
    """Return a moment in the first half of each part of the time, so that every run lasts for a while."""
    part = seconds / times
    return [(number + rng.uniform(0, 0.5)) * part for number in range(times)]


def ingest(config: Path, telemetry: Telemetry) -> None:
    arguments = ("--topic", telemetry.topics.probe_minutes.name, "--config", str(config))
    with Command(config.with_name("backfill.log"), "backfill", *arguments) as backfill:
        assert backfill.wait(DEADLINE_S) == 0, backfill.output


# --- Evaluation -------------------------------------------------------------


def list_full_minutes(attempts: dict[datetime, int]) -> list[datetime]:
    """Return the minutes without the first and the last, which are incomplete."""
    first, last = min(attempts), max(attempts)
    return [first + n * MINUTE for n in range(1, (last - first) // MINUTE)]


def list_interrupted_minutes(kills: Sequence[datetime]) -> set[datetime]:
    """Return the minutes that a kill or the following restart interrupted."""
    offsets_s = (-MAX_KILL_COST_S, 0, MAX_KILL_COST_S)
    edges = [at + timedelta(seconds=offset_s) for at in kills for offset_s in offsets_s]
    return {edge.replace(second=0, microsecond=0) for edge in edges}


def judge(result: ScenarioResult) -> dict[str, Any]:
    attempts_by_leg = count_attempts(result.records)
    interrupted = list_interrupted_minutes(result.kills)
    late = [record for record in result.records if record["schedule_lag_p95_us"] > AGENT_LATE_US]
    # Silver does not include the records of a late agent.
    pooled = count_attempts([record for record in result.records if record not in late])
    record_ids = [(record["run_id"], record["sequence"]) for record in result.records]
    in_silver = {
        (row["cluster_id"], row["broker_id"], row["leg"], row["minute"]): row["attempted"]
        for row in result.silver
    }
    expected = {
        (*key, minute): attempts[minute]
        for key, attempts in attempts_by_leg.items()
        for minute in list_full_minutes(attempts)
    }
    # Minutes in which the agent was late for a moment, so that probes were excluded.
    with_late_probes = {
        (record["cluster_id"], record["broker_id"], record["leg"], record["minute"])
        for record in result.records
        if record["schedule_lag_max_us"] > AGENT_LATE_US
    }
    in_time = {name: attempted for name, attempted in expected.items() if name not in with_late_probes}
    unmeasured_s = max(
        sum(PROBES - attempted for name, attempted in in_time.items() if name[:3] == key) * PROBE_EVERY_S
        for key in attempts_by_leg
    )
    kill_cost_s = round(unmeasured_s / len(result.kills), 1)
    report = {
        "kills": [f"{at:%H:%M:%S}" for at in result.kills],
        "runs": len({record["run_id"] for record in result.records}),
        "broker_minutes": len(expected),
        "without_a_record": sum(attempted == 0 for attempted in expected.values()),
        "late_records": len(late),
        "minutes_of_a_late_agent": len(expected) - len(in_time),
        "not_as_in_silver": sum((in_silver.get(name) or 0) != pooled[name[:3]][name[3]] for name in expected),
        "rows_twice_in_silver": len(result.silver) - len(in_silver),
        "records_of_one_name": len(record_ids) - len(set(record_ids)),
        "uncut_minutes_not_whole": sum(
            attempted < MIN_PROBES for name, attempted in in_time.items() if name[-1] not in interrupted
        ),
        "minutes_over_100": sum(attempted > PROBES for attempted in expected.values()),
        "a_kill_costs_s": kill_cost_s,
        "left_waiting": result.left_waiting,
        "spool_bytes": result.spool_bytes,
    }
    faults = (
        "without_a_record",
        "not_as_in_silver",
        "rows_twice_in_silver",
        "records_of_one_name",
        "uncut_minutes_not_whole",
        "minutes_over_100",
        "left_waiting",
    )
    passed = not any(report[name] for name in faults) and 0 < kill_cost_s <= MAX_KILL_COST_S
    return report | {"passed": passed}


@click.command()
@click.option("--minutes", default=10.0, show_default=True, help="Minutes without the telemetry cluster.")
@click.option(
    "--times", default=5, show_default=True, type=click.IntRange(min=1), help="Number of kills meanwhile."
)
@click.option("--seed", default=1, show_default=True, help="Seed of the moments of the kills.")
def main(minutes: float, times: int, seed: int) -> None:
    with tempfile.TemporaryDirectory(prefix="fleetgauge-kill-agent-") as folder:
        report = judge(run_scenario(Path(folder), minutes, times, Random(seed)))
    print(json.dumps(report, indent=2))
    sys.exit(0 if report["passed"] else 1)


if __name__ == "__main__":
    main()
