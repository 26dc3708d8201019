"""`fleetgauge watch` as one of several: who has the seat works, and the others wait for it."""

import logging
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from datetime import datetime
from functools import partial
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
from fleetgauge_core.fleet import Fleet, Notifier, Telemetry
from fleetgauge_core.kafka import (
    KafkaUnavailableError,
    LeaderElection,
    Leadership,
    LeadershipStatus,
    TopicReader,
    ensure_state_topic,
    ensure_telemetry_topics,
)
from fleetgauge_core.runtime.health_server import ProcessHealth
from fleetgauge_core.runtime.shutdown import ShutdownFlag
from fleetgauge_operations.notify.outbox import RetryPolicy, Settlement
from fleetgauge_operations.notify.receivers import Receiver, receiver_key
from fleetgauge_operations.watch.burn_tracker import BurnTracker
from fleetgauge_operations.watch.delivery_cursor import (
    DeliveryCursor,
    restore_suppressed_findings,
    start_delivery,
)
from fleetgauge_operations.watch.detection_loop import DetectionLoop, ReceivedPulses
from fleetgauge_operations.watch.lake_context import LakeContext
from fleetgauge_operations.watch.message_format import FindingFormat
from fleetgauge_operations.watch.metrics import WatchMetrics
from fleetgauge_operations.watch.notifier_context import LeadershipGate, NotifierContext
from fleetgauge_operations.watch.notifiers import FindingSink, open_sink
from fleetgauge_operations.watch.state_store import RestoredState, StateStore

_log = logging.getLogger("fleetgauge.watch")

_LISTEN_S = 0.5

Open = tuple[FindingSubject, HealthState]


@dataclass(frozen=True, slots=True)
class WatchController:
    """One of the watches of a fleet. ``show`` is given every change that it finds."""

    fleet: Fleet
    telemetry: Telemetry
    clock: Callable[[], datetime]
    show: Callable[[Finding], None]
    health: ProcessHealth
    metrics: WatchMetrics

    def run(self, shutdown: ShutdownFlag) -> FleetHealth:
        """Until ``shutdown`` is set; returns what was known at the end, nothing if this one was waiting.

        Raises KafkaUnavailableError when the telemetry cluster cannot be reached at the start, and
        SecretError where a notifier's address cannot be read.
        """
        ensure_telemetry_topics(self.telemetry)
        ensure_state_topic(self.telemetry, self.telemetry.topics.watch_state)
        state = FleetHealth()
        with _running(LeaderElection(self.telemetry.access, self.telemetry.topics.watch_state.name)) as seat:
            while not shutdown.is_set():
                self.health.record_heartbeat()
                term = seat.wait_for_leadership(_LISTEN_S)
                state = self._served(term, shutdown) if term else FleetHealth()
                # Who only waits is ready as well: nothing more is needed to take over.
                self.health.mark_ready()
        return state

    def _served(self, term: Leadership, shutdown: ShutdownFlag) -> FleetHealth:
        try:
            return self._serve(term, shutdown)
        except KafkaUnavailableError as error:
            # Nobody else may take over while the seat is ours, so it is tried again.
            _log.error("what earlier watches left cannot be read: %s", error)
            shutdown.wait(_LISTEN_S)
            return FleetHealth()

    def _serve(self, term: Leadership, shutdown: ShutdownFlag) -> FleetHealth:
        """WatchController for as long as the seat is ours."""
        topic = self.telemetry.topics.probe_pulse.name
        with ExitStack() as stack:
            memory = stack.enter_context(_running(StateStore(self.telemetry)))
            pulses = stack.enter_context(
                _running(TopicReader(self.telemetry.access, topic, "fleetgauge-watch"))
            )
            pulses.assign(pulses.wait_for_partitions())
            background = stack.enter_context(_running(LakeContext(self.fleet, self.clock)))
            left, now, heard = memory.recall(), self.clock(), ReceivedPulses()
            clusters = [one.id for one in self.fleet.clusters if one.is_in_scope_at(now)]
            state = expect_pulses(restore_fleet_health(left.findings, left.histories), clusters, now)
            budgets = restore_burn_state(left.findings, left.minutes)
            spending = BurnTracker(
                self.fleet, self.telemetry, memory, budgets, lambda *minute: background.plan.out(*minute)
            )
            spending.start(now)
            stack.callback(spending.stop)
            opened = (*state.open_findings(), *budgets.open_findings())
            accounts = [self._account(one, left, opened, memory) for one in self.fleet.notifiers]
            people = [
                of_one
                for of_one, one in zip(accounts, self.fleet.notifiers, strict=True)
                if one.kind != "heartbeat"
            ]
            planned = partial(background.plan.covers, at=now)
            waiting = restore_suppressed_findings(left.findings, [one for one, _ in opened], people, planned)
            stack.enter_context(self.metrics.watching(opened))
            sinks = []
            for notifier, (kept, owed) in zip(self.fleet.notifiers, accounts, strict=True):
                one = stack.enter_context(_running(self._sink(notifier, term, kept, heard, background)))
                for finding in owed:
                    # An end that is owed is of what was told before.
                    (one.postpone if finding.is_alert and finding.subject in waiting else one.notify)(finding)
                one.resume(pair for pair in opened if pair[0] not in waiting)
                sinks.append(one)
            self.health.mark_ready()
            _log.info("at work")
            stack.callback(_log.info, "no longer at work")
            turn = DetectionLoop(
                clusters={one.id: one for one in self.fleet.clusters},
                term=term,
                pulses=pulses,
                spending=spending,
                memory=memory,
                background=background,
                waiting=waiting,
                sinks=sinks,
                heard=heard,
                clock=self.clock,
                elapsed_s=time.monotonic,
                show=self.show,
                health=self.health,
                metrics=self.metrics,
            )
            return turn.listen(state, shutdown)

    def _sink(
        self,
        notifier: Notifier,
        term: Leadership,
        kept: DeliveryCursor,
        heard: ReceivedPulses,
        background: LakeContext,
    ) -> FindingSink:
        counts = self.metrics.notifier(Receiver(notifier).host)
        counts.rejected.set(len(kept.rejected))
        leave = LeadershipGate(lambda: term.confirm() is not LeadershipStatus.LOST)

        def settled(finding: Finding, settlement: Settlement) -> None:
            counts.settled(settlement)
            if leave.to_note():
                kept.settle(finding, settlement)
                counts.rejected.set(len(kept.rejected))

        def put_off(finding: Finding) -> None:
            if leave.to_note():
                kept.put_off(finding)

        telling = NotifierContext(
            clock=self.clock,
            may_tell=leave.to_tell,
            waits=counts.waits,
            heard=lambda: heard.at,
            settled=settled,
            put_off=put_off,
        )
        finding_format = FindingFormat(self.fleet.page_url, background.of)
        return open_sink(notifier, finding_format, telling, RetryPolicy())

    def _account(
        self, notifier: Notifier, left: RestoredState, opened: Sequence[Open], memory: StateStore
    ) -> tuple[DeliveryCursor, Sequence[Finding]]:
        """And what it is owed."""
        note = left.told.get(receiver_key(notifier))
        if note is None:
            note = start_delivery(receiver_key(notifier), left.findings, {subject for subject, _ in opened})
            memory.told(note)
        owed = note.owed(left.findings)
        return DeliveryCursor(note, owed, memory.told), owed


class _Runs(Protocol):
    def start(self) -> None: ...

    def stop(self) -> object: ...


R = TypeVar("R", bound=_Runs)


@contextmanager
def _running(one: R) -> Iterator[R]:
    one.start()
    try:
        yield one
    finally:
        one.stop()
