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
    FleetHealth,
    expect_pulses,
    restore_burn_state,
    restore_fleet_health,
)
from fleetgauge_core.fleet import Telemetry
from fleetgauge_core.kafka import (
    FollowedReader,
    KafkaUnavailableError,
    LeaderElection,
    Leadership,
    TopicChangeReporter,
    follow_topics,
    keep_telemetry_topics,
)
from fleetgauge_core.kafka.credentials_monitor import wait_for_readable_credentials
from fleetgauge_core.runtime.health_server import ProcessHealth
from fleetgauge_core.runtime.shutdown import ShutdownFlag
from fleetgauge_core.runtime.supervision import request_shutdown_on_error
from fleetgauge_operations.watch.burn_tracker import BurnTracker
from fleetgauge_operations.watch.delivery_cursor import restore_suppressed_findings
from fleetgauge_operations.watch.detection_loop import DetectionLoop, ReceivedPulses
from fleetgauge_operations.watch.finding_sinks import FindingSinks, OpenAlert
from fleetgauge_operations.watch.lake_context import LakeContext
from fleetgauge_operations.watch.metrics import WatchMetrics
from fleetgauge_operations.watch.state_copy import StateCopy
from fleetgauge_operations.watch.state_store import StateStore
from fleetgauge_operations.watch.suppression import SuppressedFindings
from fleetgauge_operations.watch.vantage_times import VantageTimes
from fleetgauge_operations.watch.watched_fleet import WatchedFleet

_log = logging.getLogger("fleetgauge.watch")

_POLL_TIMEOUT_S = 0.5
#: A leadership that the deletion of a topic ended begins again within seconds.
_MEMORY_VALID_S = 300.0


@dataclass(frozen=True, slots=True)
class WatchController:
    """Runs the detection while it leads a fleet's watches; ``show`` is called with every finding.

    ``follow_step`` takes when a pulse was emitted, and returns whether ``clock`` was moved for it.
    """

    watched: WatchedFleet
    telemetry: Telemetry
    clock: Callable[[], datetime]
    show: Callable[[Finding], None]
    health: ProcessHealth
    metrics: WatchMetrics
    follow_step: Callable[[datetime], bool] = lambda _: False

    def run(self, shutdown: ShutdownFlag) -> FleetHealth:
        """Run until ``shutdown`` is set; return the health at the end, the initial one if not the leader.

        While the telemetry cluster's secrets or certificates cannot be read, it waits for them.

        Raises: KafkaUnavailableError when the telemetry cluster cannot be reached at the start.
        """
        with _running_thread("notifier-secrets", self.watched.check_secrets):
            return self._run(shutdown)

    def _run(self, shutdown: ShutdownFlag) -> FleetHealth:
        state = FleetHealth()
        memory = _TopicMemory(self.telemetry, TopicChangeReporter(self.health.registry))
        access, remedy = self.telemetry.access, "provide it: until then nothing is watched"
        if not wait_for_readable_credentials(access, self.health, shutdown, remedy, self.watched.refresh):
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
            sinks = FindingSinks(
                store,
                dict(restored.deliveries),
                leadership,
                received,
                lake_context.describe_cluster,
                self.clock,
                self.metrics,
            )
            open_alerts = (*state.open_findings(), *burn_tracker.open_findings())
            backlogs = [
                sinks.restore_backlog(notifier, open_alerts)
                for notifier in fleet.notifiers
                if notifier.kind != "heartbeat"
            ]
            suppressed = restore_suppressed_findings(
                restored.findings,
                [subject for subject, _ in open_alerts],
                backlogs,
                partial(lake_context.plan.covers, at=now),
            )
            stack.enter_context(self.metrics.activate(open_alerts))
            vantages = VantageTimes(restored.vantages, now)
            for vantage, last_heard in vantages.last_heard():
                if self.watched.may_list(vantage.cluster_id):
                    self.metrics.restore_pulse_time(vantage, last_heard)
            stack.enter_context(_running(sinks))
            sinks.adopt_fleet(fleet, open_alerts, suppressed)
            self.health.mark_ready()
            _log.info("became the leader")
            stack.callback(_log.info, "no longer the leader")
            create_loop = partial(
                DetectionLoop,
                may_list=self.watched.may_list,
                leadership=leadership,
                pulse_reader=pulse_reader,
                burn_tracker=burn_tracker,
                store=store,
                lake_context=lake_context,
                suppressed=suppressed,
                sinks=sinks,
                received=received,
                vantages=vantages,
                clock=self.clock,
                follow_step=self.follow_step,
                elapsed_s=time.monotonic,
                show=self.show,
                health=self.health,
                metrics=self.metrics,
            )
            following = _FleetFollower(
                self.watched, lake_context, burn_tracker, sinks, suppressed, create_loop
            )
            with request_shutdown_on_error(shutdown):
                return following.run(state, leadership, shutdown)


@dataclass(frozen=True, slots=True)
class _FleetFollower:
    """Runs one detection loop after another, each for the fleet file as it is by then.

    What was folded and queued stays, so that a change of the file delays no finding.
    """

    watched: WatchedFleet
    lake_context: LakeContext
    burn_tracker: BurnTracker
    sinks: FindingSinks
    suppressed: SuppressedFindings
    create_loop: Callable[..., DetectionLoop]

    def run(self, state: FleetHealth, leadership: Leadership, shutdown: ShutdownFlag) -> FleetHealth:
        """Run until ``shutdown`` is set or the leadership is lost; return the health by then."""
        while True:
            loop = self.create_loop(
                clusters={cluster.id: cluster for cluster in self.watched.fleet.clusters},
                has_new_fleet=partial(self._has_changed_since, self.watched.generation),
            )
            state = loop.run(state, shutdown)
            if shutdown.is_set() or leadership.is_lost:
                return state
            self._adopt_fleet((*state.open_findings(), *self.burn_tracker.open_findings()))

    def _adopt_fleet(self, open_alerts: Sequence[OpenAlert]) -> None:
        fleet = self.watched.fleet
        self.lake_context.adopt_fleet(fleet)
        self.burn_tracker.adopt_fleet(fleet)
        self.sinks.adopt_fleet(fleet, open_alerts, self.suppressed)

    def _has_changed_since(self, generation: int) -> bool:
        self.watched.refresh()
        return self.watched.generation != generation


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
        snapshot = earlier.snapshot() if earlier else None
        self._readers[topic] = FollowedReader(self._access, topic, "fleetgauge-watch", report, snapshot)
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
