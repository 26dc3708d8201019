"""The agent process: every cluster of the fleet, one loop of cold questions, one of reports."""

import asyncio
import itertools
import socket
import threading
import time
from collections.abc import Sequence
from datetime import UTC, datetime
from uuid import UUID

from fleetgauge_probes import __version__
from fleetgauge_probes.agent.cluster_probe import ClusterProbe
from fleetgauge_probes.agent.metrics import AgentMetrics
from fleetgauge_probes.agent.minute import Identity
from fleetgauge_probes.agent.schedule import MinuteClock
from fleetgauge_probes.contract import ProbeMinute, ProbePulse
from fleetgauge_probes.fleet import Fleet, Telemetry
from fleetgauge_probes.kafka import RecordProducer, ensure_topics
from fleetgauge_probes.stopping import Stopping
from fleetgauge_probes.vitals import Vitals

_ASK_EVERY_S = 1.0
_TICK_EVERY_S = 0.25


class AgentBrokenError(Exception):
    """A part of the agent ended by itself; what is wrong is in the log."""


def run_agent(fleet: Fleet, telemetry: Telemetry, run_id: UUID, vitals: Vitals, stopping: Stopping) -> None:
    """Probe until ``stopping`` is set, then hand over what is decided.

    Raises AgentBrokenError when a part of it breaks, after the same hand-over.

    Raises KafkaUnavailableError when the telemetry cluster cannot be reached at the start.
    """
    ensure_topics(telemetry)
    records = RecordProducer(telemetry.bootstrap, "fleetgauge-agent")
    records.start()
    topics = telemetry.topics
    metrics = AgentMetrics(vitals.registry)

    def emit(record: ProbeMinute) -> None:
        metrics.minute(record)
        records.send(topics.probe_minutes.name, record.cluster_id, record.encode())

    def beat(pulse: ProbePulse) -> None:
        metrics.pulse(pulse)
        records.send(topics.probe_pulse.name, pulse.cluster_id, pulse.encode())
        vitals.ready()

    who = Identity(f"{socket.gethostname()}/{fleet.vantage}", __version__, str(run_id), fleet.vantage)
    clock = MinuteClock.at(time.monotonic_ns(), datetime.now(UTC))
    sequences = itertools.count()
    broken = threading.Event()

    def give_up() -> None:
        broken.set()
        stopping.set()

    probes = [
        ClusterProbe(cluster, who, run_id, clock, sequences, emit, beat, give_up)
        for cluster in fleet.clusters
    ]
    for probe in probes:
        probe.start()
    asking = threading.Thread(
        target=lambda: asyncio.run(_ask_all(probes, stopping)), name="answers", daemon=True
    )
    asking.start()
    while not stopping.wait(_TICK_EVERY_S):
        vitals.beat()
        for probe in probes:
            probe.tick()
    asking.join()
    for probe in probes:
        probe.stop()
    records.stop()
    if broken.is_set():
        raise AgentBrokenError


async def _ask_all(probes: Sequence[ClusterProbe], stopping: Stopping) -> None:
    """Every second one cold question to every broker; a silent one delays nobody."""
    asked: set[asyncio.Task[None]] = set()
    while not stopping.is_set():
        for probe in probes:
            asked |= {asyncio.create_task(probe.ask(broker_id)) for broker_id in probe.registered()}
        await asyncio.sleep(_ASK_EVERY_S)
        asked = {task for task in asked if not task.done()}
