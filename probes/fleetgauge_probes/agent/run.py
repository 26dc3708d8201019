"""The agent process: probes every cluster of the fleet and publishes the results."""

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
from fleetgauge_core.kafka import (
    NameResolver,
    TopicChangeReporter,
    keep_telemetry_topics,
    read_demotion_marks,
)
from fleetgauge_core.runtime.health_server import ProcessHealth
from fleetgauge_core.runtime.part_status import PartFault
from fleetgauge_core.runtime.shutdown import ShutdownFlag
from fleetgauge_core.runtime.supervision import request_shutdown_on_error
from fleetgauge_core.runtime.uptime import uptime_ns
from fleetgauge_probes.agent.cluster_probe import ClusterProbe
from fleetgauge_probes.agent.fleet_probe import FleetProbe
from fleetgauge_probes.agent.jmx_exporters import JmxScraper
from fleetgauge_probes.agent.metrics import AgentMetrics
from fleetgauge_probes.agent.minute import AgentIdentity
from fleetgauge_probes.agent.process_pauses import HEARTBEAT_S, ProcessPauses
from fleetgauge_probes.agent.report_publisher import PulseProducer, ReportPublisher
from fleetgauge_probes.agent.schedule import MinuteClock
from fleetgauge_probes.agent.spool import Spool, SpoolError
from fleetgauge_probes.agent.spool_forwarder import SpoolForwarder
from fleetgauge_probes.agent.topic_plan import TOPIC

_CONNECTION_INTERVAL_S = 1.0
#: The cold connections of a second are spread over at most this many steps, fewer with fewer brokers.
_MAX_CONNECTION_STEPS = 50
_REPORT_INTERVAL_S = 0.25
#: On a busy machine, a thread that sleeps briefly may wake up late by somewhat less than this.
_MIN_PAUSE_MS = 100
_MS = 1_000_000


def run_agent(
    fleet: Fleet,
    telemetry: Telemetry,
    clusters: Callable[[], Sequence[Cluster]],
    spool: Spool,
    run_id: UUID,
    health: ProcessHealth,
    shutdown: ShutdownFlag,
) -> int:
    """Probe the clusters until ``shutdown`` is set; return how many records are left in the spool.

    ``clusters`` is called four times a second and returns the clusters to probe; ``spool`` must be open.
    """
    metrics = AgentMetrics(health.registry, spool.max_bytes)
    agent = AgentIdentity(f"{socket.gethostname()}/{fleet.vantage}", __version__, str(run_id), fleet.vantage)
    clock = MinuteClock.from_wall_time(uptime_ns(), datetime.now(UTC))
    pauses = ProcessPauses(int(max(fleet.agent_late_ms, _MIN_PAUSE_MS) * _MS), uptime_ns())
    record_sequences = itertools.count()
    topic_changes = TopicChangeReporter(health.registry)

    def create_probe(cluster: Cluster) -> ClusterProbe:
        read_demotions = partial(read_demotion_marks, telemetry, cluster.id)
        report_change = partial(topic_changes.report, cluster.id, TOPIC)
        return ClusterProbe(
            cluster, agent, uuid4(), clock, pauses, record_sequences, read_demotions, report_change
        )

    topics = keep_telemetry_topics(telemetry)
    forwarder = SpoolForwarder(telemetry, spool, metrics.count_records, topics)
    publisher = ReportPublisher(PulseProducer(telemetry, topics), forwarder, metrics)
    publisher.start()
    stop_heartbeat, stop_keeping = threading.Event(), threading.Event()
    _start_daemon("heartbeat", lambda: _record_heartbeats(pauses, stop_heartbeat))
    # A telemetry topic that is deleted is created again; until then the spool keeps the records.
    _start_daemon("telemetry-topics", lambda: topics.run(stop_keeping))
    fleet_probe = FleetProbe(create_probe)
    connections = _start_daemon(
        "connections", lambda: asyncio.run(_measure_connections(fleet_probe, shutdown))
    )
    scraper = _start_daemon("exporters", lambda: JmxScraper(fleet_probe).run(shutdown))
    try:
        with request_shutdown_on_error(shutdown):
            while not shutdown.is_set():
                health.record_heartbeat()
                fleet_probe.update_clusters(clusters())
                reports = fleet_probe.collect_reports()
                publisher.publish(reports)
                health.parts.update("cluster", PartFault.CREDENTIALS, fleet_probe.start_errors)
                health.parts.update("telemetry", PartFault.CREDENTIALS, publisher.telemetry_faults)
                if not fleet_probe.probes or any(report.pulse for report in reports):
                    # Without clusters there is no pulse to wait for.
                    health.mark_ready()
                for cluster_id in {report.cluster_id for report in reports} - fleet_probe.probes.keys():
                    metrics.remove_cluster(cluster_id)
                    topic_changes.remove_cluster(cluster_id)
                _record_process_state(metrics, pauses, clock, spool)
                shutdown.wait(_REPORT_INTERVAL_S)
    finally:
        # Cluster probes stop first: on an overloaded agent, the other loops may take minutes to end.
        try:
            publisher.publish(fleet_probe.stop())
        finally:
            connections.join()
            scraper.join()
            stop_heartbeat.set()
            stop_keeping.set()
            left = publisher.stop()
    return left


def _record_process_state(
    metrics: AgentMetrics, pauses: ProcessPauses, clock: MinuteClock, spool: Spool
) -> None:
    clock_ahead = datetime.now(UTC) - clock.wall_time(uptime_ns())
    metrics.record_process_clock(pauses.total_paused_ns, clock_ahead)
    with suppress(SpoolError):
        metrics.record_spool_state(spool.read_state())


def _start_daemon(name: str, target: Callable[[], object]) -> threading.Thread:
    thread = threading.Thread(target=target, name=name, daemon=True)
    thread.start()
    return thread


def _record_heartbeats(pauses: ProcessPauses, stopping: threading.Event) -> None:
    while not stopping.is_set():
        # Waiting for the event instead would use more CPU than all else in an agent of few brokers.
        time.sleep(HEARTBEAT_S)
        pauses.record_heartbeat(uptime_ns())


async def _measure_connections(fleet_probe: FleetProbe, shutdown: ShutdownFlag) -> None:
    """Open one cold connection to every broker each second, spread over it.

    Attempts run concurrently, so a broker that does not respond delays no other.
    """
    resolver = NameResolver()
    tasks: set[asyncio.Task[None]] = set()
    read_time_s = asyncio.get_running_loop().time
    next_s = read_time_s()
    while not shutdown.is_set():
        brokers = [
            (probe, broker_id) for probe in fleet_probe.probes.values() for broker_id in probe.broker_ids()
        ]
        steps = min(max(len(brokers), 1), _MAX_CONNECTION_STEPS)
        for step in range(steps):
            if shutdown.is_set():
                return
            tasks |= {
                asyncio.create_task(probe.measure_connection(broker_id, resolver))
                for probe, broker_id in brokers[step::steps]
            }
            next_s = max(next_s + _CONNECTION_INTERVAL_S / steps, read_time_s())
            await asyncio.sleep(next_s - read_time_s())
        tasks = {task for task in tasks if not task.done()}
