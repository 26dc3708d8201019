"""Hangs and slows down the brokers of a cluster in turn: the leader leg identifies the faulty broker.

    python -m tests.chaos.blame_brokers --hangs 10 --slowings 6

The cluster has three brokers. A hang stops a broker's process for 30 s; a slow broker is stopped for 70 of
every 85 ms. The results come from pulses, as the watch receives them. Prints one JSON value with each leg's
results of each broker for every fault. Exits with 0 iff during every hang leader-leg probes failed on that
broker only, and during every slowdown that broker's leader-leg median was at least three times any other's.
"""

import json
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from datetime import UTC, datetime
from pathlib import Path
from statistics import median
from typing import Any

import click
import psutil

from fleetgauge_core.contract import Leg, LegPulse, ProbePulse
from fleetgauge_core.fleet import Telemetry, load_fleet
from fleetgauge_core.kafka import TopicReader, ensure_telemetry_topics
from fleetgauge_local.fleet import LocalFleet
from fleetgauge_local.layout import TELEMETRY, ClusterSpec
from tests.chaos._faults import slow_down
from tests.chaos._streaming import Command, log_progress
from tests.waiting import let_pass

CLUSTER = "orders"
BROKERS = (1, 2, 3)
HANG_S = 30.0
SLOWDOWN_S = 45.0
#: The period that a pulse covers.
WINDOW_S = 15
DEADLINE_S = 180
MIN_SLOWDOWN_FACTOR = 3


class PulseReader:
    """Reads the pulses of the cluster."""

    def __init__(self, telemetry: Telemetry) -> None:
        self._reader = TopicReader(telemetry.access, telemetry.topics.probe_pulse.name, "fleetgauge-chaos")
        self._reader.start()
        self._reader.assign(self._reader.wait_for_partitions(), from_beginning=True)

    def read_since(self, at: datetime) -> Iterator[ProbePulse]:
        """Yield pulses emitted from ``at`` on. Raises: TimeoutError when the deadline passes."""
        deadline = time.monotonic() + DEADLINE_S
        while time.monotonic() < deadline:
            record = self._reader.poll(0.5)
            pulse = record and ProbePulse.decode(record.value)
            if pulse and pulse.emitted_at >= at:
                yield pulse
        raise TimeoutError(f"the cluster is not healthy {DEADLINE_S} s after {at:%H:%M:%S}")

    def read_until_healthy(self, at: datetime, min_duration_s: float) -> list[ProbePulse]:
        """Return the pulses from ``at`` on, until all brokers lead and no probe fails."""
        pulses = []
        for pulse in self.read_since(at):
            pulses.append(pulse)
            if (pulse.emitted_at - at).total_seconds() > min_duration_s + WINDOW_S and is_healthy(pulse):
                break
        return pulses


def is_healthy(pulse: ProbePulse) -> bool:
    legs = [leg for broker in pulse.brokers for leg in broker.legs]
    return (
        tuple(broker.broker_id for broker in pulse.brokers if broker.leads) == BROKERS
        and len(legs) == len(BROKERS) * len(Leg)
        and all(leg.succeeded and not leg.failed for leg in legs)
    )


def select_leg(pulses: Sequence[ProbePulse], broker_id: int, leg: Leg) -> list[LegPulse]:
    leg_pulses = (
        broker.leg_pulse(leg) for pulse in pulses for broker in pulse.brokers if broker.broker_id == broker_id
    )
    return [leg_pulse for leg_pulse in leg_pulses if leg_pulse is not None]


def hang(local: LocalFleet, pulses: PulseReader, broker: int) -> dict[str, Any]:
    at = datetime.now(UTC)
    local.fault("hang", CLUSTER, broker, for_s=HANG_S)
    observed = pulses.read_until_healthy(at, HANG_S)
    failed = {
        leg: {
            broker_id: max(pulse.failed for pulse in select_leg(observed, broker_id, leg))
            for broker_id in BROKERS
        }
        for leg in Leg
    }
    blamed = [broker_id for broker_id, failures in failed[Leg.LEADER].items() if failures]
    log_progress(f"broker {broker} hung, blamed {blamed}")
    return {"hung": broker, "blamed": blamed, "most_failures_in_15_s": failed}


def slow(local: LocalFleet, pulses: PulseReader, broker: int) -> dict[str, Any]:
    status = next(cluster for cluster in local.status().clusters if cluster.cluster == CLUSTER)
    (pid,) = (process.pid for process in status.brokers if process.broker == broker)
    at = datetime.now(UTC)
    with slow_down(psutil.Process(pid)):
        let_pass(time.monotonic() + SLOWDOWN_S)
    until = datetime.now(UTC)
    observed = pulses.read_until_healthy(at, SLOWDOWN_S)
    during_slowdown = [
        pulse
        for pulse in observed
        if (pulse.emitted_at - at).total_seconds() > WINDOW_S and pulse.emitted_at < until
    ]
    p50_ms = {
        leg: {
            broker_id: round(
                median(pulse.p50_us or 0 for pulse in select_leg(during_slowdown, broker_id, leg)) / 1000, 1
            )
            for broker_id in BROKERS
        }
        for leg in Leg
    }
    leader_ms = p50_ms[Leg.LEADER]
    slowest_other_ms = max(ms for broker_id, ms in leader_ms.items() if broker_id != broker)
    blamed = [
        broker_id for broker_id, ms in leader_ms.items() if ms >= MIN_SLOWDOWN_FACTOR * slowest_other_ms
    ]
    log_progress(f"broker {broker} slowed down, blamed {blamed}")
    return {"slowed": broker, "blamed": blamed, "p50_ms": p50_ms}


@click.command()
@click.option("--hangs", default=10, show_default=True)
@click.option("--slowings", default=6, show_default=True)
def main(hangs: int, slowings: int) -> None:
    clusters = (ClusterSpec(CLUSTER), ClusterSpec(TELEMETRY, brokers=1))
    with (
        tempfile.TemporaryDirectory(prefix="fleetgauge-blame-") as folder,
        LocalFleet(Path(folder), clusters, progress=log_progress) as local,
        ExitStack() as stack,
    ):
        fleet = load_fleet(local.fleet_file)
        assert fleet.telemetry is not None
        ensure_telemetry_topics(fleet.telemetry)
        arguments = ("probe", "--config", str(local.fleet_file))
        stack.enter_context(Command(Path(folder) / "probe.log", *arguments))
        pulses = PulseReader(fleet.telemetry)
        pulses.read_until_healthy(datetime.now(UTC), 0)
        faults = [hang(local, pulses, BROKERS[turn % 3]) for turn in range(hangs)]
        faults += [slow(local, pulses, BROKERS[turn % 3]) for turn in range(slowings)]
    passed = all(fault["blamed"] == [fault.get("hung", fault.get("slowed"))] for fault in faults)
    print(json.dumps({"faults": faults, "passed": passed}, indent=2))
    sys.exit(0 if passed else 1)


if __name__ == "__main__":
    main()
