"""The agent process: every cluster of the fleet, one loop of cold questions, one of reports."""

import asyncio
import itertools
import socket
import threading
import time
from collections.abc import Sequence
from contextlib import suppress
from datetime import UTC, datetime
from uuid import UUID

from fleetgauge_probes import __version__
from fleetgauge_probes.agent.cluster_probe import ClusterProbe, Report
from fleetgauge_probes.agent.courier import Courier
from fleetgauge_probes.agent.metrics import AgentMetrics
from fleetgauge_probes.agent.minute import Identity
from fleetgauge_probes.agent.schedule import MinuteClock
from fleetgauge_probes.agent.spool import Spool, SpoolError
from fleetgauge_probes.fleet import Fleet, Telemetry
from fleetgauge_probes.kafka import RecordProducer
from fleetgauge_probes.stopping import Stopping
from fleetgauge_probes.vitals import Vitals

_ASK_EVERY_S = 1.0
_TICK_EVERY_S = 0.25
#: A later pulse says nothing any more: three more have been made by then.
_PULSE_IS_NEWS_S = 15
_PULSES_LEAVE_S = 1
_RECORDS_LEAVE_S = 10


class AgentBrokenError(Exception):
    """A part of the agent ended by itself; what is wrong is in the log."""


def run_agent(
    fleet: Fleet, telemetry: Telemetry, spool: Spool, run_id: UUID, vitals: Vitals, stopping: Stopping
) -> int:
    """Probe until ``stopping`` is set; returns how many records wait in the spool, which is open, at the end.

    Raises AgentBrokenError when a part of it breaks, after the same hand-over.
    """
    metrics = AgentMetrics(vitals.registry, spool.max_bytes)
    pulses = RecordProducer(telemetry.bootstrap, "fleetgauge-pulses", give_up_after_s=_PULSE_IS_NEWS_S)
    pulses.start()
    who = Identity(f"{socket.gethostname()}/{fleet.vantage}", __version__, str(run_id), fleet.vantage)
    clock = MinuteClock.at(time.monotonic_ns(), datetime.now(UTC))
    sequences = itertools.count()
    broken = threading.Event()

    def give_up() -> None:
        broken.set()
        stopping.set()

    courier = Courier(telemetry, spool, metrics.records, give_up)
    courier.start()

    def hand_over(reports: Sequence[Report]) -> None:
        closed = [record for report in reports for record in report.closed]
        courier.hand(closed, [record for report in reports for record in report.still_open])
        for record in closed:
            metrics.minute(record)
        for pulse in (report.pulse for report in reports if report.pulse):
            pulses.send(telemetry.topics.probe_pulse.name, pulse.cluster_id, pulse.encode())
            metrics.pulse(pulse)
            vitals.ready()
        with suppress(SpoolError):
            metrics.spool(spool.state())

    probes = [ClusterProbe(cluster, who, run_id, clock, sequences, give_up) for cluster in fleet.clusters]
    for probe in probes:
        probe.start()
    asking = threading.Thread(
        target=lambda: asyncio.run(_ask_all(probes, stopping)), name="answers", daemon=True
    )
    asking.start()
    while not stopping.wait(_TICK_EVERY_S):
        vitals.beat()
        hand_over([probe.tick() for probe in probes])
    asking.join()
    hand_over([probe.stop() for probe in probes])
    pulses.stop(_PULSES_LEAVE_S)
    left = courier.stop(_RECORDS_LEAVE_S)
    if broken.is_set():
        raise AgentBrokenError
    return left


async def _ask_all(probes: Sequence[ClusterProbe], stopping: Stopping) -> None:
    """Every second one cold question to every broker; a silent one delays nobody."""
    asked: set[asyncio.Task[None]] = set()
    while not stopping.is_set():
        for probe in probes:
            asked |= {asyncio.create_task(probe.ask(broker_id)) for broker_id in probe.registered()}
        await asyncio.sleep(_ASK_EVERY_S)
        asked = {task for task in asked if not task.done()}
