"""Probes one cluster: runs the threads that observe, send, receive and measure, and collects their results.

The registration loop reads the registered brokers; the topic observer reads the probe topic and reconciles
it; the sender sends what is due; delivery reports, consumed messages and routing reports reach the trackers;
``collect_report`` takes closed minutes and pulses out of them.
"""

import logging
import threading
from collections.abc import Callable, Iterator, Mapping
from datetime import UTC, datetime
from functools import partial
from uuid import UUID

from fleetgauge_core.contract import ProbeMinute, ProbePulse
from fleetgauge_core.fleet import Cluster
from fleetgauge_core.kafka import (
    ClusterAdmin,
    FollowedReader,
    NameResolver,
    ProbeTimeouts,
    ReportChange,
    create_tls_context,
    ensure_credentials_readable,
    probe_endpoint,
)
from fleetgauge_core.metadata import TopicChange, TopicChangeKind
from fleetgauge_core.runtime.uptime import uptime_ns
from fleetgauge_probes.agent.agent_faults import AgentFaultLog
from fleetgauge_probes.agent.broker_progress import BrokerCounters
from fleetgauge_probes.agent.cluster_report import ClusterReport
from fleetgauge_probes.agent.cluster_state import ClusterState
from fleetgauge_probes.agent.cold_bootstraps import ColdBootstrapLoop
from fleetgauge_probes.agent.cold_connections import AttemptTime
from fleetgauge_probes.agent.demotions import DemotionCache
from fleetgauge_probes.agent.minute import AgentIdentity
from fleetgauge_probes.agent.minute_reporter import MinuteReporter
from fleetgauge_probes.agent.probe_receiver import ProbeReceiver
from fleetgauge_probes.agent.probe_sender import ProbeSender
from fleetgauge_probes.agent.process_pauses import ProcessPauses
from fleetgauge_probes.agent.pulse_builder import PulseBuilder
from fleetgauge_probes.agent.registration import RegistrationLoop
from fleetgauge_probes.agent.schedule import MinuteClock
from fleetgauge_probes.agent.topic_observer import TopicObserver
from fleetgauge_probes.agent.topic_plan import TOPIC

_log = logging.getLogger("fleetgauge.probe")

_CONNECTION_TIMEOUTS = ProbeTimeouts(total_s=1.0, step_s=1.0)
_ADMIN_TIMEOUT_S = 1.5


class ClusterProbe:
    """Probes one cluster from ``start`` to ``stop``; ``probe_id`` identifies its own messages."""

    def __init__(
        self,
        cluster: Cluster,
        agent: AgentIdentity,
        probe_id: UUID,
        clock: MinuteClock,
        pauses: ProcessPauses,
        record_sequences: Iterator[int],
        read_demotions: Callable[[], Mapping[int, bool]],
        report_topic_change: ReportChange,
        read_uptime_ns: Callable[[], int] = uptime_ns,
    ) -> None:
        """Prepare a probe without connecting.

        ``record_sequences`` numbers the records of the agent's run; ``read_demotions`` returns whether each
        broker with a demotion mark is demoted; ``report_topic_change`` is called with every change of the
        probe topic.
        """
        self.access = cluster.access
        """How this probe connects to its cluster, for as long as it lives."""
        self._uptime_ns = read_uptime_ns
        self._stopping = threading.Event()
        self._threads: list[threading.Thread] = []
        self._is_open = False
        self._state = ClusterState(cluster, clock, pauses)
        self._clock = clock
        self._faults = AgentFaultLog(cluster.id)
        self._reader = FollowedReader(
            self.access,
            TOPIC,
            "fleetgauge-probe-consumer",
            partial(self._follow_topic_change, report_topic_change),
            on_error=lambda partition, code: self._receiver.record_error(partition, code),
            on_throttled=lambda broker, seconds: self._sender.record_throttling(None, broker, seconds),
        )
        self._admin = ClusterAdmin(self.access, timeout_s=_ADMIN_TIMEOUT_S)
        self._sender = ProbeSender(
            self.access, probe_id, self._state, clock, record_sequences, read_uptime_ns
        )
        self._receiver = ProbeReceiver(probe_id, self._state, self._reader, read_uptime_ns)
        self._registration = RegistrationLoop(self.access, self._state, self._open_clients)
        demotions = DemotionCache(cluster.id, read_demotions)
        self._observer = TopicObserver(
            self._state, self._admin, demotions, self._sender, self._receiver, read_uptime_ns
        )
        self._bootstraps = ColdBootstrapLoop(cluster.id, self.access, pauses)
        self._minutes = MinuteReporter(agent, self._state, clock)
        self._pulses = PulseBuilder(agent, self._state, clock, pauses)

    def has_outdated_credentials(self) -> bool:
        """Return whether a secret or certificate file was replaced since the start.

        A file that is missing at the moment does not count as replaced.
        """
        file_versions = self.access.file_versions()
        return file_versions != self._file_versions and None not in file_versions

    def configure(self, cluster: Cluster) -> None:
        """Use a changed description of the same cluster, with the same access."""
        self._state.cluster = cluster

    # Start and stop -----------------------------------------------------------

    def start(self) -> None:
        """Start probing. Raises: KafkaUnavailableError when secrets or certificates cannot be read."""
        self._file_versions = self.access.file_versions()
        self._tls = create_tls_context(self.access)
        ensure_credentials_readable(self.access)
        self._start_thread("register", self._registration.run)

    def stop(self) -> ClusterReport:
        """Stop probing, close every open minute with its decided probes and return the final report."""
        self._stopping.set()
        # The first thread, which registers, starts the others; the list may grow until it has ended.
        for thread in self._threads:
            thread.join()
        with self._state.lock:
            now_ns = self._uptime_ns()
            closed_minutes = self._minutes.close_all_minutes(now_ns)
        report = self._build_report(now_ns, closed_minutes)
        if self._is_open:
            self._sender.stop()
            self._reader.stop()
        return report

    def _open_clients(self) -> None:
        """Start the Kafka clients and their threads. Raises: KafkaUnavailableError."""
        self._sender.start()
        self._reader.start()
        self._admin.start()
        self._is_open = True
        self._start_thread("observe", self._observer.run)
        self._start_thread("schedule", self._sender.run)
        self._start_thread("consume", self._receiver.run)
        self._start_thread("bootstrap", partial(self._bootstraps.run, topic_exists=self._has_topic))

    def _follow_topic_change(self, report: ReportChange, change: TopicChange) -> None:
        if change.kind is TopicChangeKind.RECREATED:
            self._sender.renew()
        report(change)

    def _has_topic(self) -> bool:
        return bool(self._state.partitions)

    def _start_thread(self, name: str, loop: Callable[[threading.Event], None]) -> None:
        thread_name = f"{self._state.cluster.id}-{name}"
        thread = threading.Thread(target=loop, args=(self._stopping,), name=thread_name)
        self._threads.append(thread)
        thread.start()

    # Measurements from other threads of the agent -----------------------------

    def broker_ids(self) -> tuple[int, ...]:
        """Return the ids of the registered brokers, fenced ones included, in ascending order."""
        with self._state.lock:
            return tuple(sorted(self._state.registered))

    async def measure_connection(self, broker_id: int, resolver: NameResolver) -> None:
        """Open one cold connection to a broker, up to an ApiVersions response, and record the result."""
        with self._state.lock:
            broker = self._state.registered.get(broker_id)
        if broker is None:
            return
        result = await probe_endpoint(broker.host, broker.port, self._tls, _CONNECTION_TIMEOUTS, resolver)
        now_ns = self._uptime_ns()
        at = AttemptTime(now_ns, self._clock.wall_time(now_ns), datetime.now(UTC))
        with self._state.lock:
            self._state.record_connection(broker, result, at)

    def exporter_urls(self) -> dict[int, str]:
        """Return the metrics URL of each registered broker for which fleet.yaml gives one."""
        cluster = self._state.cluster
        with self._state.lock:
            urls = {
                broker_id: cluster.metrics_url(broker_id, broker.host)
                for broker_id, broker in self._state.registered.items()
            }
        return {broker_id: url for broker_id, url in urls.items() if url}

    def record_counters(self, broker_id: int, counters: BrokerCounters) -> None:
        """Record the counters that a broker's exporter returned just now."""
        with self._state.lock:
            self._state.progress.record(broker_id, self._uptime_ns(), counters)

    # Reports ------------------------------------------------------------------

    def collect_report(self) -> ClusterReport:
        """Return the results since the last report; called four times a second."""
        now_ns = self._uptime_ns()
        with self._state.lock:
            legs = tuple(self._state.trackers)
        closed_minutes = self._minutes.close_finished_minutes(legs, now_ns)
        open_minutes = self._minutes.report_open_minutes(legs, now_ns)
        pulse = self._pulses.build(now_ns, self._bootstraps.latest) if self._pulses.is_due(now_ns) else None
        return self._build_report(now_ns, closed_minutes, open_minutes, pulse)

    def _build_report(
        self,
        now_ns: int,
        closed_minutes: tuple[ProbeMinute, ...],
        open_minutes: tuple[ProbeMinute, ...] = (),
        pulse: ProbePulse | None = None,
    ) -> ClusterReport:
        """Return a report with the counts since the last one."""
        state = self._state
        # This logs, which may take as long as the reader of the log does, so the lock is not held.
        agent_faults = self._faults.update(state.list_agent_faults(), now_ns)
        with state.lock:
            return ClusterReport(
                cluster_id=state.cluster.id,
                closed_minutes=closed_minutes,
                open_minutes=open_minutes,
                pulse=pulse,
                excluded_probes=self._minutes.drain_excluded_probes(),
                pending_topic_actions=self._observer.pending_actions,
                connection_outcomes=state.connections.drain_outcomes(),
                certificate_expiries=state.connections.certificate_expiries(state.registered),
                unreachable_reason=state.unreachable_reason,
                throttled_s=state.throttles.drain_seconds(),
                agent_faults=agent_faults,
            )
