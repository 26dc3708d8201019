"""The process of `fleetgauge watch`: one of several watches is the leader; the others are on standby."""

import logging
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from threading import Event, Thread
from typing import Protocol, TypeVar

from fleetgauge_core.detection import (
    Finding,
    FindingSubject,
    FleetHealth,
    HealthState,
    expect_pulses,
    restore_burn_state,
    restore_fleet_health,
)
from fleetgauge_core.fleet import Notifier, Telemetry
from fleetgauge_core.kafka import (
    CredentialsUnreadableError,
    FollowedReader,
    KafkaUnavailableError,
    LeaderElection,
    Leadership,
    LeadershipStatus,
    TopicChangeReporter,
    ensure_credentials_readable,
    follow_topics,
    keep_telemetry_topics,
)
from fleetgauge_core.runtime.health_server import ProcessHealth
from fleetgauge_core.runtime.part_status import PartFault
from fleetgauge_core.runtime.shutdown import ShutdownFlag
from fleetgauge_core.runtime.supervision import request_shutdown_on_error
from fleetgauge_operations.notify.fleet_faults import name_notifier
from fleetgauge_operations.notify.outbox import RetryPolicy, Settlement
from fleetgauge_operations.notify.receivers import receiver_key
from fleetgauge_operations.watch.burn_tracker import BurnTracker
from fleetgauge_operations.watch.delivery_cursor import (
    DeliveryCursor,
    NotifierBacklog,
    restore_suppressed_findings,
    start_delivery,
)
from fleetgauge_operations.watch.detection_loop import DetectionLoop, ReceivedPulses
from fleetgauge_operations.watch.lake_context import LakeContext
from fleetgauge_operations.watch.message_format import FindingFormat
from fleetgauge_operations.watch.metrics import WatchMetrics
from fleetgauge_operations.watch.notifier_context import LeadershipGate, NotifierContext
from fleetgauge_operations.watch.notifiers import FindingSink, open_sink
from fleetgauge_operations.watch.state_copy import StateCopy
from fleetgauge_operations.watch.state_store import RestoredState, StateStore
from fleetgauge_operations.watch.watched_fleet import WatchedFleet

_log = logging.getLogger("fleetgauge.watch")

_POLL_TIMEOUT_S = 0.5
#: A leadership that the deletion of a topic ended begins again within seconds.
_MEMORY_VALID_S = 300.0

OpenAlert = tuple[FindingSubject, HealthState]


@dataclass(frozen=True, slots=True)
class WatchController:
    """Runs the detection while it leads a fleet's watches; ``show`` is called with every finding."""

    watched: WatchedFleet
    telemetry: Telemetry
    clock: Callable[[], datetime]
    show: Callable[[Finding], None]
    health: ProcessHealth
    metrics: WatchMetrics

    def run(self, shutdown: ShutdownFlag) -> FleetHealth:
        """Run until ``shutdown`` is set; return the health at the end, the initial one if not the leader.

        While the telemetry cluster's secrets or certificates cannot be read, it waits for them.

        Raises: KafkaUnavailableError when the telemetry cluster cannot be reached at the start.
        """
        state = FleetHealth()
        memory = _TopicMemory(self.telemetry, TopicChangeReporter(self.health.registry))
        if not self._wait_for_credentials(shutdown):
            return state
        keeper = keep_telemetry_topics(self.telemetry, self.telemetry.topics.watch_state)
        keeper.ensure()
        election = LeaderElection(self.telemetry.access, self.telemetry.topics.watch_state.name)
        with _running_thread("telemetry-topics", keeper.run), _running(election):
            while not shutdown.is_set():
                self.health.record_heartbeat()
                self.watched.refresh()
                leadership = election.wait_for_leadership(_POLL_TIMEOUT_S)
                state = self._lead_or_retry(leadership, memory, shutdown) if leadership else FleetHealth()
                # A watch on standby is ready as well: it can take over at once.
                self.health.mark_ready()
        return state

    def _wait_for_credentials(self, shutdown: ShutdownFlag) -> bool:
        """Wait until the telemetry cluster's credentials can be read; return False if told to end before."""
        while not shutdown.is_set():
            self.health.record_heartbeat()
            self.watched.refresh()
            try:
                ensure_credentials_readable(self.telemetry.access)
            except CredentialsUnreadableError as error:
                message = f"{error}; provide it: until then nothing is watched"
                self.health.parts.update("telemetry", PartFault.CREDENTIALS, {"telemetry": message})
                shutdown.wait(_POLL_TIMEOUT_S)
            else:
                self.health.parts.update("telemetry", PartFault.CREDENTIALS, {})
                return True
        return False

    def _lead_or_retry(
        self, leadership: Leadership, memory: "_TopicMemory", shutdown: ShutdownFlag
    ) -> FleetHealth:
        try:
            return self._lead(leadership, memory, shutdown)
        except KafkaUnavailableError as error:
            # No other watch can take over while this one holds the leadership, so it retries.
            _log.error("cannot read the state of earlier watches: %s", error)
            shutdown.wait(_POLL_TIMEOUT_S)
            return FleetHealth()

    def _lead(self, leadership: Leadership, memory: "_TopicMemory", shutdown: ShutdownFlag) -> FleetHealth:
        """Restore the state of earlier watches, and detect until the leadership or the process ends."""
        topics, fleet = self.telemetry.topics, self.watched.fleet
        with ExitStack() as stack:
            stack.callback(memory.mark_end_of_leadership)
            memory.begin_leadership()
            event_reader, pulse_reader, minute_reader = (
                memory.create_reader(topic.name)
                for topic in (topics.health_events, topics.probe_pulse, topics.probe_minutes)
            )
            store = stack.enter_context(_running(StateStore(self.telemetry, memory.state_copy, event_reader)))
            stack.enter_context(_running(pulse_reader))
            pulse_reader.assign(pulse_reader.wait_for_partitions())
            lake_context = stack.enter_context(_running(LakeContext(fleet, self.clock)))
            restored, now, received = store.restore(), self.clock(), ReceivedPulses()
            in_scope = [cluster.id for cluster in fleet.clusters if cluster.is_in_scope_at(now)]
            state = expect_pulses(restore_fleet_health(restored.findings, restored.histories), in_scope, now)
            burn_state = restore_burn_state(restored.findings, restored.burn_minutes)
            burn_tracker = BurnTracker(
                fleet,
                store,
                burn_state,
                lambda cluster_id, minute: lake_context.plan.find_planned_brokers(cluster_id, minute),
                minute_reader,
            )
            burn_tracker.start(now)
            stack.callback(burn_tracker.stop)
            followers = (pulse_reader, minute_reader, *store.followers)
            stack.enter_context(
                _running_thread("topics", partial(follow_topics, self.telemetry.access, followers))
            )
            open_alerts = (*state.open_findings(), *burn_state.open_findings())
            backlogs = [
                self._restore_backlog(notifier, restored, open_alerts, store) for notifier in fleet.notifiers
            ]
            suppressed = restore_suppressed_findings(
                restored.findings,
                [subject for subject, _ in open_alerts],
                [
                    backlog
                    for backlog, notifier in zip(backlogs, fleet.notifiers, strict=True)
                    if notifier.kind != "heartbeat"
                ],
                partial(lake_context.plan.covers, at=now),
            )
            stack.enter_context(self.metrics.activate(open_alerts))
            sinks = []
            for notifier, (cursor, undelivered) in zip(fleet.notifiers, backlogs, strict=True):
                sink = self._open_sink(notifier, leadership, cursor, received, lake_context)
                stack.enter_context(_running(sink))
                for finding in undelivered:
                    # A finding that clears an alert is sent: its alert was sent before, or precedes it here.
                    is_suppressed = finding.is_alert and finding.subject in suppressed
                    (sink.postpone if is_suppressed else sink.notify)(finding)
                sink.resume(alert for alert in open_alerts if alert[0] not in suppressed)
                sinks.append(sink)
            self.health.mark_ready()
            _log.info("became the leader")
            stack.callback(_log.info, "no longer the leader")
            loop = DetectionLoop(
                clusters={cluster.id: cluster for cluster in fleet.clusters},
                may_list=self.watched.may_list,
                leadership=leadership,
                pulse_reader=pulse_reader,
                burn_tracker=burn_tracker,
                store=store,
                lake_context=lake_context,
                suppressed=suppressed,
                sinks=sinks,
                received=received,
                clock=self.clock,
                elapsed_s=time.monotonic,
                show=self.show,
                health=self.health,
                metrics=self.metrics,
            )
            with request_shutdown_on_error(shutdown):
                return loop.run(state, shutdown)

    def _open_sink(
        self,
        notifier: Notifier,
        leadership: Leadership,
        cursor: DeliveryCursor,
        received: ReceivedPulses,
        lake_context: LakeContext,
    ) -> FindingSink:
        metrics = self.metrics.create_notifier_metrics(name_notifier(notifier))
        metrics.rejected.set(len(cursor.rejected))
        gate = LeadershipGate(lambda: leadership.confirm() is not LeadershipStatus.LOST)

        def settle(finding: Finding, settlement: Settlement) -> None:
            metrics.record_settlement(settlement)
            if gate.confirm_unless_recent():
                cursor.settle(finding, settlement)
                metrics.rejected.set(len(cursor.rejected))

        def postpone(finding: Finding) -> None:
            if gate.confirm_unless_recent():
                cursor.postpone(finding)

        context = NotifierContext(
            clock=self.clock,
            confirm_leadership=gate.confirm,
            add_waiting=metrics.add_waiting,
            last_pulse_at=lambda: received.last_emitted_at,
            settle=settle,
            postpone=postpone,
        )
        finding_format = FindingFormat(self.watched.fleet.page_url, lake_context.describe_cluster)
        return open_sink(notifier, finding_format, context, RetryPolicy())

    def _restore_backlog(
        self,
        notifier: Notifier,
        restored: RestoredState,
        open_alerts: Sequence[OpenAlert],
        store: StateStore,
    ) -> NotifierBacklog:
        """Return a notifier's cursor and undelivered findings; store the first record of a new notifier."""
        key = receiver_key(notifier)
        record = restored.deliveries.get(key)
        if record is None:
            record = start_delivery(key, restored.findings, {subject for subject, _ in open_alerts})
            store.save_delivery(record)
        undelivered = record.select_undelivered(restored.findings)
        return NotifierBacklog(DeliveryCursor(record, undelivered, store.save_delivery), undelivered)


class _TopicMemory:
    """What a watch keeps between two leaderships, which the deletion of a topic may separate."""

    def __init__(self, telemetry: Telemetry, reporter: TopicChangeReporter) -> None:
        self.state_copy = StateCopy()
        """What this process stored."""
        self._access = telemetry.access
        self._reporter = reporter
        self._readers: dict[str, FollowedReader] = {}
        self._left_s: float | None = None

    def begin_leadership(self) -> None:
        """Forget what is too old: another leader may have stored newer state, and read on."""
        if self._left_s is not None and time.monotonic() - self._left_s > _MEMORY_VALID_S:
            self.state_copy.clear()
            self._readers.clear()

    def create_reader(self, topic: str) -> FollowedReader:
        """Return a reader that takes the place of the earlier leadership's reader of the same topic."""
        earlier = self._readers.get(topic)
        report = partial(self._reporter.report, "telemetry", topic)
        known = earlier.known() if earlier else None
        self._readers[topic] = FollowedReader(self._access, topic, "fleetgauge-watch", report, known)
        return self._readers[topic]

    def mark_end_of_leadership(self) -> None:
        """Record that another watch may store newer state from now on."""
        self._left_s = time.monotonic()


@contextmanager
def _running_thread(name: str, run: Callable[[Event], None]) -> Iterator[None]:
    """Run a loop in the background until the block is left; it ends after its present request."""
    stopping = Event()
    Thread(target=run, args=(stopping,), name=name, daemon=True).start()
    try:
        yield
    finally:
        stopping.set()


class _Startable(Protocol):
    def start(self) -> None: ...

    def stop(self) -> object: ...


_StartableT = TypeVar("_StartableT", bound=_Startable)


@contextmanager
def _running(startable: _StartableT) -> Iterator[_StartableT]:
    startable.start()
    try:
        yield startable
    finally:
        startable.stop()
