"""Hangs and slows the brokers of a cluster in turn: the leader leg blames the one it is, and no other.

    python -m tests.chaos.blame_brokers --hangs 10 --slowings 6

One cluster of three. A hang stops a broker's process for 30 s; a slowed one is stopped 70 of every 85 ms.
Pulses tell, as the watch hears them. Prints one JSON value: per fault what each leg saw of each broker.
Exit 0 iff in every hang leader-leg probes failed on that broker alone, and in every slowing the leader leg's
median of that broker was three times that of any other or more.
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
from fleetgauge_core.fleet import Telemetry, load
from fleetgauge_core.kafka import TopicReader, ensure_topics
from fleetgauge_local.fleet import LocalFleet
from fleetgauge_local.layout import TELEMETRY, ClusterSpec
from tests.chaos._faults import slowed
from tests.chaos._streaming import Command, say
from tests.waiting import let_pass

CLUSTER = "orders"
BROKERS = (1, 2, 3)
HANG_S = 30.0
SLOWED_S = 45.0
#: A pulse looks back on 15 s.
WINDOW_S = 15
PATIENCE_S = 180
SLOWER = 3


class Pulses:
    """What the agent says of the cluster."""

    def __init__(self, telemetry: Telemetry) -> None:
        self._reader = TopicReader(telemetry.access, telemetry.topics.probe_pulse.name, "fleetgauge-chaos")
        self._reader.start()
        self._reader.add(self._reader.partitions(), from_beginning=True)

    def since(self, at: datetime) -> Iterator[ProbePulse]:
        """Those made from then on, as they come. Raises TimeoutError when none comes for long."""
        deadline = time.monotonic() + PATIENCE_S
        while time.monotonic() < deadline:
            record = self._reader.poll(0.5)
            pulse = record and ProbePulse.decode(record.value)
            if pulse and pulse.emitted_at >= at:
                yield pulse
        raise TimeoutError(f"the cluster is not well {PATIENCE_S} s after {at:%H:%M:%S}")

    def until_well(self, at: datetime, least_s: float) -> list[ProbePulse]:
        """Those from then on, for that time at least, until all brokers lead and nothing fails."""
        seen = []
        for pulse in self.since(at):
            seen.append(pulse)
            if (pulse.emitted_at - at).total_seconds() > least_s + WINDOW_S and is_well(pulse):
                break
        return seen


def is_well(pulse: ProbePulse) -> bool:
    legs = [leg for broker in pulse.brokers for leg in broker.legs]
    return (
        tuple(broker.broker_id for broker in pulse.brokers if broker.leads) == BROKERS
        and len(legs) == len(BROKERS) * len(Leg)
        and all(leg.succeeded and not leg.failed for leg in legs)
    )


def legs_of(pulses: Sequence[ProbePulse], broker_id: int, leg: Leg) -> list[LegPulse]:
    found = (broker.leg(leg) for pulse in pulses for broker in pulse.brokers if broker.broker_id == broker_id)
    return [one for one in found if one is not None]


def hang(local: LocalFleet, pulses: Pulses, broker: int) -> dict[str, Any]:
    at = datetime.now(UTC)
    local.fault("hang", CLUSTER, broker, for_s=HANG_S)
    seen = pulses.until_well(at, HANG_S)
    failed = {
        leg: {one: max(pulse.failed for pulse in legs_of(seen, one, leg)) for one in BROKERS} for leg in Leg
    }
    blamed = [one for one, most in failed[Leg.LEADER].items() if most]
    say(f"hung {broker}, blamed {blamed}")
    return {"hung": broker, "blamed": blamed, "most_failures_in_15_s": failed}


def slow(local: LocalFleet, pulses: Pulses, broker: int) -> dict[str, Any]:
    status = next(one for one in local.status().clusters if one.cluster == CLUSTER)
    (pid,) = (one.pid for one in status.brokers if one.broker == broker)
    at = datetime.now(UTC)
    with slowed(psutil.Process(pid)):
        let_pass(time.monotonic() + SLOWED_S)
    until = datetime.now(UTC)
    seen = pulses.until_well(at, SLOWED_S)
    slowly = [
        one for one in seen if (one.emitted_at - at).total_seconds() > WINDOW_S and one.emitted_at < until
    ]
    p50_ms = {
        leg: {
            one: round(median(pulse.p50_us or 0 for pulse in legs_of(slowly, one, leg)) / 1000, 1)
            for one in BROKERS
        }
        for leg in Leg
    }
    of = p50_ms[Leg.LEADER]
    others = max(ms for one, ms in of.items() if one != broker)
    blamed = [one for one, ms in of.items() if ms >= SLOWER * others]
    say(f"slowed {broker}, blamed {blamed}")
    return {"slowed": broker, "blamed": blamed, "p50_ms": p50_ms}


@click.command()
@click.option("--hangs", default=10, show_default=True)
@click.option("--slowings", default=6, show_default=True)
def main(hangs: int, slowings: int) -> None:
    clusters = (ClusterSpec(CLUSTER), ClusterSpec(TELEMETRY, brokers=1))
    with (
        tempfile.TemporaryDirectory(prefix="fleetgauge-blame-") as folder,
        LocalFleet(Path(folder), clusters, progress=say) as local,
        ExitStack() as stack,
    ):
        fleet = load(local.fleet_file)
        assert fleet.telemetry is not None
        ensure_topics(fleet.telemetry)
        arguments = ("probe", "--config", str(local.fleet_file))
        stack.enter_context(Command(Path(folder) / "probe.log", *arguments))
        pulses = Pulses(fleet.telemetry)
        pulses.until_well(datetime.now(UTC), 0)
        faults = [hang(local, pulses, BROKERS[turn % 3]) for turn in range(hangs)]
        faults += [slow(local, pulses, BROKERS[turn % 3]) for turn in range(slowings)]
    passed = all(one["blamed"] == [one.get("hung", one.get("slowed"))] for one in faults)
    print(json.dumps({"faults": faults, "passed": passed}, indent=2))
    sys.exit(0 if passed else 1)


if __name__ == "__main__":
    main()
