"""Stops the agent's process again and again while its brokers are well: no broker is blamed for it.

    python -m tests.chaos.stall_agent --times 12

The agent measures two clusters of three brokers and the watch listens. The agent gets a SIGSTOP, and a
SIGCONT after 0.15 to 45 s: a garbage collection, a throttled container, a suspended machine. Prints one JSON
value; exit 0 iff no probe of any record failed, no finding was made, and every broker-minute in which it ran
is there, none twice. The slowest acknowledgements of stalled minutes stand beside those of the others.
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
from fleetgauge_core.fleet import Telemetry, load
from fleetgauge_core.kafka import ensure_topics
from fleetgauge_local.fleet import LocalFleet
from tests.chaos._agent import MINUTE, on_the_topic, wait_for_minute
from tests.chaos._streaming import Command, Row, say
from tests.waiting import let_pass
from tests.whole_topic import values_on

STALLS_S = (0.15, 0.4, 1.2, 3.0, 8.0, 20.0, 45.0)
#: Between two stalls; pulses come every 5 s.
APART_S = (7.0, 25.0)


@dataclass(frozen=True, slots=True)
class Lived:
    """Every record once, the watch's findings, when the process stood still and for how long."""

    records: Sequence[Row]
    findings: Sequence[HealthEvent]
    stalls: Sequence[tuple[datetime, float]]


def live(folder: Path, times: int, rng: Random) -> Lived:
    with LocalFleet(folder, progress=say) as local, ExitStack() as stack:
        fleet = load(local.fleet_file)
        assert fleet.telemetry is not None
        ensure_topics(fleet.telemetry)
        config = ("--config", str(local.fleet_file))
        stack.enter_context(Command(folder / "watch.log", "watch", *config))
        agent = stack.enter_context(Command(folder / "probe.log", "probe", *config))
        wait_for_minute(fleet.telemetry, datetime.now(UTC) + MINUTE)
        stalls = []
        for number in range(times):
            let_pass(time.monotonic() + rng.uniform(*APART_S))
            stalls.append((datetime.now(UTC), stall(agent, STALLS_S[number % len(STALLS_S)])))
        wait_for_minute(fleet.telemetry, datetime.now(UTC) + MINUTE)
        assert agent.end() == 0, agent.words
        return Lived(on_the_topic(fleet.telemetry), findings(fleet.telemetry), stalls)


def stall(agent: Command, seconds: float) -> float:
    (process,) = agent.tree()
    say(f"the agent stands still for {seconds:g} s")
    process.send_signal(signal.SIGSTOP)
    let_pass(time.monotonic() + seconds)
    process.send_signal(signal.SIGCONT)
    return seconds


def findings(telemetry: Telemetry) -> list[HealthEvent]:
    values = values_on(telemetry.access, telemetry.topics.health_events.name)
    return [HealthEvent.decode(value) for value in values]


def judge(lived: Lived) -> dict[str, Any]:
    names = [(one["cluster_id"], one["broker_id"], one["leg"], one["minute"]) for one in lived.records]
    first, last = min(names, key=lambda name: name[3])[3], max(names, key=lambda name: name[3])[3]
    still = {minute for at, seconds in lived.stalls for minute in slept_over(at, seconds)}
    ran = {first + n * MINUTE for n in range(1, (last - first) // MINUTE)} - still
    wanted = {(*key, minute) for key in {name[:3] for name in names} for minute in ran}
    touched = {at.replace(second=0, microsecond=0) for at, _ in lived.stalls}
    slowest_us = {
        disturbed: max(
            (us for one in lived.records if (one["minute"] in touched) is disturbed for us in one["ack_us"]),
            default=0,
        )
        for disturbed in (True, False)
    }
    report = {
        "stalls": len(lived.stalls),
        "stalled_s": round(sum(seconds for _, seconds in lived.stalls), 1),
        "broker_minutes": len(names),
        "failed_probes": sum(
            sum(one[kind].values())
            for one in lived.records
            for kind in ("produce_failures", "consume_failures")
        ),
        "findings": [f"{one.cluster_id} {one.broker_id} {one.to_state}" for one in lived.findings],
        "minutes_missing": len(wanted - set(names)),
        "minutes_twice": len(names) - len(set(names)),
        "left_out": sum(100 - one["attempted"] for one in lived.records if one["minute"] in touched & ran),
        "slowest_ack_ms_in_stalled_minutes": slowest_us[True] / 1000,
        "slowest_ack_ms_in_others": slowest_us[False] / 1000,
    }
    faults = ("failed_probes", "findings", "minutes_missing", "minutes_twice")
    return report | {"passed": not any(report[name] for name in faults) and len(lived.stalls) > 0}


def slept_over(at: datetime, seconds: float) -> list[datetime]:
    """Minutes that lie wholly within."""
    begins = at.replace(second=0, microsecond=0) + MINUTE
    whole = int((at + timedelta(seconds=seconds) - begins) / MINUTE)
    return [begins + n * MINUTE for n in range(max(0, whole))]


@click.command()
@click.option("--times", default=14, show_default=True, type=click.IntRange(min=1), help="How many stalls.")
@click.option("--seed", default=1, show_default=True, help="Of the times between them.")
def main(times: int, seed: int) -> None:
    with tempfile.TemporaryDirectory(prefix="fleetgauge-stall-agent-") as folder:
        report = judge(live(Path(folder), times, Random(seed)))
    print(json.dumps(report, indent=2))
    sys.exit(0 if report["passed"] else 1)


if __name__ == "__main__":
    main()
