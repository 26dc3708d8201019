"""`fleetgauge watch` as one of several: who has the seat works, and the others wait for it."""

import logging
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from datetime import datetime
from typing import Protocol, TypeVar

from fleetgauge_operations.receivers import host
from fleetgauge_operations.watch.background import Background
from fleetgauge_operations.watch.maintenance import Waiting
from fleetgauge_operations.watch.memory import Left, Memory
from fleetgauge_operations.watch.metrics import WatchMetrics
from fleetgauge_operations.watch.notifiers import Sink, name, sink
from fleetgauge_operations.watch.spending import Spending
from fleetgauge_operations.watch.telling import Telling
from fleetgauge_operations.watch.turn import Heard, Turn
from fleetgauge_operations.watch.words import Manner
from fleetgauge_pipelines.detection import Finding, FleetState, expect, remember, remember_budgets
from fleetgauge_probes.fleet import Fleet, Notifier, Telemetry
from fleetgauge_probes.kafka import (
    KafkaUnavailableError,
    Seat,
    Standing,
    Term,
    TopicReader,
    ensure_state_topic,
    ensure_topics,
)
from fleetgauge_probes.stopping import Stopping
from fleetgauge_probes.vitals import Vitals

_log = logging.getLogger("fleetgauge.watch")

_LISTEN_S = 0.5


@dataclass(frozen=True, slots=True)
class Watch:
    """One of the watches of a fleet. ``show`` is given every change that it finds."""

    fleet: Fleet
    telemetry: Telemetry
    clock: Callable[[], datetime]
    show: Callable[[Finding], None]
    vitals: Vitals
    metrics: WatchMetrics

    def run(self, stopping: Stopping) -> FleetState:
        """Until ``stopping`` is set; returns what was known at the end, nothing if this one was waiting.

        Raises KafkaUnavailableError when the telemetry cluster cannot be reached at the start, and
        SecretError where a notifier's address cannot be read.
        """
        ensure_topics(self.telemetry)
        ensure_state_topic(self.telemetry, self.telemetry.topics.watch_state)
        state = FleetState()
        with _running(Seat(self.telemetry.access, self.telemetry.topics.watch_state.name)) as seat:
            while not stopping.is_set():
                self.vitals.beat()
                term = seat.wait(_LISTEN_S)
                state = self._served(term, stopping) if term else FleetState()
                # Who only waits is ready as well: nothing more is needed to take over.
                self.vitals.ready()
        return state

    def _served(self, term: Term, stopping: Stopping) -> FleetState:
        try:
            return self._serve(term, stopping)
        except KafkaUnavailableError as error:
            # Nobody else may take over while the seat is ours, so it is tried again.
            _log.error("what earlier watches left cannot be read: %s", error)
            stopping.wait(_LISTEN_S)
            return FleetState()

    def _serve(self, term: Term, stopping: Stopping) -> FleetState:
        """Watch for as long as the seat is ours."""
        topic = self.telemetry.topics.probe_pulse.name
        with ExitStack() as stack:
            memory = stack.enter_context(_running(Memory(self.telemetry)))
            pulses = stack.enter_context(
                _running(TopicReader(self.telemetry.access, topic, "fleetgauge-watch"))
            )
            pulses.add(pulses.partitions())
            background = stack.enter_context(_running(Background(self.fleet, self.clock)))
            left, now, heard = memory.recall(), self.clock(), Heard()
            clusters = [cluster.id for cluster in self.fleet.clusters]
            state = expect(remember(left.findings, left.histories), clusters, now)
            budgets = remember_budgets(left.findings, left.minutes)
            spending = Spending(self.fleet, self.telemetry, memory, budgets)
            spending.start(now)
            stack.callback(spending.stop)
            opened = (*state.open_findings(), *budgets.open_findings())
            planned = {one for one, _ in opened if background.plan.covers(one, now)}
            waiting = Waiting(one for one in left.findings if one.names and one.subject in planned)
            stack.enter_context(self.metrics.watching(opened))
            sinks = []
            for notifier in self.fleet.notifiers:
                one = stack.enter_context(_running(self._sink(notifier, term, memory, heard, background)))
                for finding in self._owed(notifier, left, memory):
                    if finding.subject not in planned:
                        one.tell(finding)
                one.remind(pair for pair in opened if pair[0] not in planned)
                sinks.append(one)
            self.vitals.ready()
            _log.info("at work")
            stack.callback(_log.info, "no longer at work")
            turn = Turn(
                term=term,
                pulses=pulses,
                spending=spending,
                memory=memory,
                background=background,
                waiting=waiting,
                sinks=sinks,
                heard=heard,
                clock=self.clock,
                show=self.show,
                vitals=self.vitals,
                metrics=self.metrics,
            )
            return turn.listen(state, stopping)

    def _sink(
        self, notifier: Notifier, term: Term, memory: Memory, heard: Heard, background: Background
    ) -> Sink:
        counts = self.metrics.notifier(host(notifier))

        def dealt_with(finding: Finding, taken: bool) -> None:
            counts.dealt_with(taken)
            memory.told(name(notifier), finding)

        telling = Telling(
            clock=self.clock,
            may_tell=lambda: term.confirm() is not Standing.LOST,
            waits=counts.waits,
            heard=lambda: heard.at,
            dealt_with=dealt_with,
        )
        manner = Manner(self.fleet.page_url, notifier.burn_in, background.of)
        return sink(notifier, manner, telling)

    def _owed(self, notifier: Notifier, left: Left, memory: Memory) -> Sequence[Finding]:
        told = left.told.get(name(notifier))
        if told is None:
            # Who is new need not hear of the past, but must of all from now on.
            memory.told(name(notifier), left.findings[-1] if left.findings else None)
            return ()
        return told.owed(left.findings)


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
