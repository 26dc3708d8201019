"""Stops the telemetry cluster for minutes and kills the agent again and again meanwhile: no minute is lost.

    python -m tests.chaos.kill_agent --minutes 10 --times 5

The agent measures two clusters of three brokers. While telemetry is gone it gets a SIGKILL at seeded
random moments and is begun again at once. When telemetry is back and the agent has ended, the pipeline
takes the topic. Prints one JSON value; exit 0 iff nothing is left in the spool; silver holds every
broker-minute of both legs once, from the first full minute to the last; every minute in which no run began
or was killed, and the agent was in time, has 95 of its 100 probes or more; and a kill costs what it takes to
begin again, not more.
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

from fleetgauge_core.fleet import Telemetry, load
from fleetgauge_core.kafka import ensure_topics
from fleetgauge_core.tables import BROKER_MINUTES
from fleetgauge_local.fleet import LocalFleet
from tests.chaos._agent import MINUTE, PATIENCE_S, attempts, on_the_topic, wait_for_minute
from tests.chaos._streaming import Command, Row, rows, say
from tests.waiting import let_pass

#: Before telemetry goes and after it is back every broker has a full minute.
QUIET = 2 * MINUTE
PROBES = 100
#: A probe or two of a minute may tell of the agent instead of the broker, and are left out.
WHOLE = 95
PROBE_EVERY_S = 0.6
#: The default of fleet.yaml.
AGENT_LATE_US = 100_000
#: Open minutes are kept every 5 s; a new process takes some seconds to start and 10 s at most to warm up.
A_KILL_COSTS_S = 20


@dataclass(frozen=True, slots=True)
class Lived:
    """All that came of it: every record once, silver's rows, when the agent was killed, what was left."""

    records: Sequence[Row]
    silver: Sequence[Row]
    kills: Sequence[datetime]
    left_waiting: int
    spool_bytes: int


# --- What happens ------------------------------------------------------------


def live(folder: Path, minutes: float, times: int, rng: Random) -> Lived:
    with LocalFleet(folder, progress=say) as local, ExitStack() as stack:
        fleet = load(local.fleet_file)
        assert fleet.telemetry is not None
        ensure_topics(fleet.telemetry)
        probe = ("probe", "--config", str(local.fleet_file), "--json")
        agent = stack.enter_context(Command(folder / "probe.log", *probe))
        wait_for_minute(fleet.telemetry, datetime.now(UTC) + QUIET)
        local.fault("kill", "telemetry", 1)
        away_s = time.monotonic()
        say("telemetry is gone")
        kills = []
        for moment_s in moments(rng, times, minutes * 60):
            let_pass(away_s + moment_s)
            assert agent.alive, agent.words
            kills.append(datetime.now(UTC))
            agent.kill()
            agent = stack.enter_context(Command(folder / "probe.log", *probe))
            say(f"killed the agent, {len(kills)} of {times}")
        let_pass(away_s + minutes * 60)
        spool_bytes = sum(one.stat().st_size for one in (folder / "spool").iterdir())
        local.fault("heal", "telemetry", 1)
        local.wait_ready()
        say("telemetry is back")
        wait_for_minute(fleet.telemetry, datetime.now(UTC) + QUIET)
        assert agent.end() == 0, agent.words
        left_waiting = json.loads(agent.words.splitlines()[-1])["waiting"]
        records = on_the_topic(fleet.telemetry)
        take(local.fleet_file, fleet.telemetry)
        return Lived(records, rows(Path(fleet.lake), BROKER_MINUTES), kills, left_waiting, spool_bytes)


def moments(rng: Random, times: int, seconds: float) -> list[float]:
    """One in each part of the time, in its first half so that a run lives for a while."""
    part = seconds / times
    return [(number + rng.uniform(0, 0.5)) * part for number in range(times)]


def take(config: Path, telemetry: Telemetry) -> None:
    arguments = ("--topic", telemetry.topics.probe_minutes.name, "--config", str(config))
    with Command(config.with_name("backfill.log"), "backfill", *arguments) as taking:
        assert taking.wait(PATIENCE_S) == 0, taking.words


# --- What must have come of it -----------------------------------------------


def full_minutes(of: dict[datetime, int]) -> list[datetime]:
    """Neither the first, before which its probes began, nor the last, which the end cut short."""
    first, last = min(of), max(of)
    return [first + n * MINUTE for n in range(1, (last - first) // MINUTE)]


def touched(kills: Sequence[datetime]) -> set[datetime]:
    """The minutes that a kill or the run after it cut short."""
    edges = [at + timedelta(seconds=s) for at in kills for s in (-A_KILL_COSTS_S, 0, A_KILL_COSTS_S)]
    return {edge.replace(second=0, microsecond=0) for edge in edges}


def judge(lived: Lived) -> dict[str, Any]:
    found, cut = attempts(lived.records), touched(lived.kills)
    late = [one for one in lived.records if one["schedule_lag_p95_us"] > AGENT_LATE_US]
    # They leave pooling: silver does without them.
    pooled = attempts([one for one in lived.records if one not in late])
    names = [(one["run_id"], one["sequence"]) for one in lived.records]
    in_silver = {
        (one["cluster_id"], one["broker_id"], one["leg"], one["minute"]): one["attempted"]
        for one in lived.silver
    }
    wanted = {(*key, minute): of[minute] for key, of in found.items() for minute in full_minutes(of)}
    # Where the agent itself was late for a moment, probes were left out for that.
    of_a_late_agent = {
        (one["cluster_id"], one["broker_id"], one["leg"], one["minute"])
        for one in lived.records
        if one["schedule_lag_max_us"] > AGENT_LATE_US
    }
    in_time = {name: attempted for name, attempted in wanted.items() if name not in of_a_late_agent}
    unmeasured_s = max(
        sum(PROBES - attempted for name, attempted in in_time.items() if name[:3] == key) * PROBE_EVERY_S
        for key in found
    )
    a_kill_costs_s = round(unmeasured_s / len(lived.kills), 1)
    report = {
        "kills": [f"{at:%H:%M:%S}" for at in lived.kills],
        "runs": len({one["run_id"] for one in lived.records}),
        "broker_minutes": len(wanted),
        "without_a_record": sum(attempted == 0 for attempted in wanted.values()),
        "late_records": len(late),
        "minutes_of_a_late_agent": len(wanted) - len(in_time),
        "not_as_in_silver": sum((in_silver.get(name) or 0) != pooled[name[:3]][name[3]] for name in wanted),
        "rows_twice_in_silver": len(lived.silver) - len(in_silver),
        "records_of_one_name": len(names) - len(set(names)),
        "uncut_minutes_not_whole": sum(
            attempted < WHOLE for name, attempted in in_time.items() if name[-1] not in cut
        ),
        "minutes_over_100": sum(attempted > PROBES for attempted in wanted.values()),
        "a_kill_costs_s": a_kill_costs_s,
        "left_waiting": lived.left_waiting,
        "spool_bytes": lived.spool_bytes,
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
    passed = not any(report[name] for name in faults) and 0 < a_kill_costs_s <= A_KILL_COSTS_S
    return report | {"passed": passed}


@click.command()
@click.option("--minutes", default=10.0, show_default=True, help="How long telemetry is gone.")
@click.option("--times", default=5, show_default=True, type=click.IntRange(min=1), help="Kills meanwhile.")
@click.option("--seed", default=1, show_default=True, help="Of the kills' moments.")
def main(minutes: float, times: int, seed: int) -> None:
    with tempfile.TemporaryDirectory(prefix="fleetgauge-kill-agent-") as folder:
        report = judge(live(Path(folder), minutes, times, Random(seed)))
    print(json.dumps(report, indent=2))
    sys.exit(0 if report["passed"] else 1)


if __name__ == "__main__":
    main()
