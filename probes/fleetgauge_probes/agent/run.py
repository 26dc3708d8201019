"""The agent process: every cluster of the fleet; loops of cold questions, of exporters and of reports."""

import asyncio
import itertools
import socket
import threading
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from datetime import UTC, datetime
from functools import partial
from uuid import UUID, uuid4

from fleetgauge_core import __version__
from fleetgauge_core.fleet import Cluster, Fleet, Telemetry
from fleetgauge_core.kafka import demoted_now
from fleetgauge_core.runtime.health_server import Vitals
from fleetgauge_core.runtime.shutdown import Stopping
from fleetgauge_core.runtime.uptime import uptime_ns
from fleetgauge_probes.agent.cluster_probe import ClusterProbe
from fleetgauge_probes.agent.fleet_probe import FleetProbe
from fleetgauge_probes.agent.jmx_exporters import Exporters
from fleetgauge_probes.agent.metrics import AgentMetrics
from fleetgauge_probes.agent.minute import Identity
from fleetgauge_probes.agent.process_pauses import EVERY_S, Stalls
from fleetgauge_probes.agent.report_publisher import Outlets, Pulses
from fleetgauge_probes.agent.schedule import MinuteClock
from fleetgauge_probes.agent.spool import Spool, SpoolError
from fleetgauge_probes.agent.spool_forwarder import Courier

_ASK_EVERY_S = 1.0
#: Over which the questions of a second are spread; fewer where there are fewer brokers.
_MOST_TURNS = 50
_TICK_EVERY_S = 0.25
#: A thread that sleeps for a moment may be late by some of this on any busy machine.
_LEAST_STALL_MS = 100
_MS = 1_000_000


class AgentBrokenError(Exception):
    """A part of the agent ended by itself; what is wrong is in the log."""


def run_agent(
    fleet: Fleet,
    telemetry: Telemetry,
    clusters: Callable[[], Sequence[Cluster]],
    spool: Spool,
    run_id: UUID,
    vitals: Vitals,
    stopping: Stopping,
) -> int:
    """Probe what ``clusters`` says, asked four times a second, until ``stopping`` is set.

    Returns how many records wait in the spool, which is open, at the end. Raises KafkaUnavailableError
    where the telemetry cluster's secrets cannot be read, AgentBrokenError when a part of it breaks, after
    the same hand-over.
    """
    metrics = AgentMetrics(vitals.registry, spool.max_bytes)
    who = Identity(f"{socket.gethostname()}/{fleet.vantage}", __version__, str(run_id), fleet.vantage)
    clock = MinuteClock.at(uptime_ns(), datetime.now(UTC))
    stalls = Stalls(int(max(fleet.agent_late_ms, _LEAST_STALL_MS) * _MS), uptime_ns())
    sequences = itertools.count()
    broken = threading.Event()

    def give_up() -> None:
        broken.set()
        stopping.set()

    def probe(cluster: Cluster) -> ClusterProbe:
        marked = partial(demoted_now, telemetry, cluster.id)
        return ClusterProbe(cluster, who, uuid4(), clock, stalls, sequences, give_up, marked)

    outlets = Outlets(Pulses(telemetry), Courier(telemetry, spool, metrics.records, give_up), metrics)
    outlets.start()
    ended = threading.Event()
    threading.Thread(target=lambda: _say_awake(stalls, ended), name="awake", daemon=True).start()
    measuring = FleetProbe(probe)
    asking = threading.Thread(
        target=lambda: asyncio.run(_ask_all(measuring, stopping)), name="answers", daemon=True
    )
    asking.start()
    exporters = Exporters(measuring)
    reading = threading.Thread(target=exporters.run, args=(stopping,), name="exporters", daemon=True)
    reading.start()
    while not stopping.is_set():
        vitals.beat()
        measuring.measure(clusters())
        reports = measuring.tick()
        outlets.take(reports)
        if not measuring.probes or any(report.pulse for report in reports):
            # Without clusters there is nothing to wait for.
            vitals.ready()
        for gone in {report.cluster_id for report in reports} - measuring.probes.keys():
            metrics.forget(gone)
        metrics.clock(stalls.total_ns, datetime.now(UTC) - clock.wall(uptime_ns()))
        with suppress(SpoolError):
            metrics.spool(spool.state())
        stopping.wait(_TICK_EVERY_S)
    # Probes first: an agent with more to do than it can would else answer questions for minutes.
    outlets.take(measuring.stop())
    asking.join()
    reading.join()
    ended.set()
    left = outlets.stop()
    if broken.is_set():
        raise AgentBrokenError
    return left


def _say_awake(stalls: Stalls, ended: threading.Event) -> None:
    while not ended.is_set():
        # Waiting for the event instead would be the dearest thing that an agent of few brokers does.
        time.sleep(EVERY_S)
        stalls.awake(uptime_ns())


async def _ask_all(measuring: FleetProbe, stopping: Stopping) -> None:
    """Every second one cold question to every broker, spread over it; a silent one delays nobody."""
    asked: set[asyncio.Task[None]] = set()
    clock = asyncio.get_running_loop().time
    next_s = clock()
    while not stopping.is_set():
        brokers = [(probe, one) for probe in measuring.probes.values() for one in probe.registered()]
        turns = min(max(len(brokers), 1), _MOST_TURNS)
        for turn in range(turns):
            if stopping.is_set():
                return
            asked |= {asyncio.create_task(probe.ask(one)) for probe, one in brokers[turn::turns]}
            next_s = max(next_s + _ASK_EVERY_S / turns, clock())
            await asyncio.sleep(next_s - clock())
        asked = {task for task in asked if not task.done()}
