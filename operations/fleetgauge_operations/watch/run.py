"""The watch's loop: one pulse at a time through the fold, findings to the topic and the sinks.

Of several watches the one that has the seat does all this, and the others wait for it.
"""

import logging
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Protocol, TypeVar

from fleetgauge_operations.watch.memory import Left, Memory
from fleetgauge_operations.watch.metrics import WatchMetrics
from fleetgauge_operations.watch.notifiers import Sink, host, name, sink
from fleetgauge_operations.watch.telling import Telling
from fleetgauge_operations.watch.words import Manner
from fleetgauge_pipelines.detection import Finding, FleetState, expect, judge, learnt, pass_time, remember
from fleetgauge_probes.contract import ContractError, ProbePulse
from fleetgauge_probes.fleet import Fleet, Notifier, Telemetry
from fleetgauge_probes.kafka import (
    KafkaUnavailableError,
    Seat,
    Standing,
    Term,
    TopicReader,
    ensure_topics,
    ensure_watch_state,
)
from fleetgauge_probes.stopping import Stopping
from fleetgauge_probes.vitals import Vitals

_log = logging.getLogger("fleetgauge.watch")

#: A pulse this old tells of the past; a watch that starts must not page for it.
STALE_AFTER = timedelta(seconds=30)
#: Who has fallen silent is looked for, in all clusters.
LOOK_EVERY = timedelta(seconds=1)
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
        ensure_watch_state(self.telemetry)
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
        pulses = TopicReader(self.telemetry.access, topic, "fleetgauge-watch")
        with ExitStack() as stack:
            memory = stack.enter_context(_running(Memory(self.telemetry)))
            stack.enter_context(_running(pulses))
            pulses.add(pulses.partitions())
            left = memory.recall()
            clusters = [cluster.id for cluster in self.fleet.clusters]
            state = expect(remember(left.findings, left.histories), clusters, self.clock())
            stack.enter_context(self.metrics.watching(state))
            sinks = []
            for notifier in self.fleet.notifiers:
                one = stack.enter_context(_running(self._sink(notifier, term, memory)))
                one.resume(state.open_findings(), self._owed(notifier, left, memory))
                sinks.append(one)
            self.vitals.ready()
            _log.info("at work")
            stack.callback(_log.info, "no longer at work")
            return self._listen(state, _Turn(term, pulses, memory, sinks), stopping)

    def _sink(self, notifier: Notifier, term: Term, memory: Memory) -> Sink:
        counts = self.metrics.notifier(host(notifier))

        def dealt_with(finding: Finding, taken: bool) -> None:
            counts.dealt_with(taken)
            memory.told(name(notifier), finding)

        telling = Telling(self.clock, lambda: term.confirm() is not Standing.LOST, counts.waits, dealt_with)
        return sink(notifier, Manner(self.fleet.page_url, notifier.burn_in), telling)

    def _owed(self, notifier: Notifier, left: Left, memory: Memory) -> Sequence[Finding]:
        told = left.told.get(name(notifier))
        if told is None:
            # Who is new need not hear of the past, but must of all from now on.
            memory.told(name(notifier), left.findings[-1] if left.findings else None)
            return ()
        return told.owed(left.findings)

    def _listen(self, state: FleetState, turn: "_Turn", stopping: Stopping) -> FleetState:
        look_at = self.clock()
        while not (stopping.is_set() or turn.term.is_lost):
            self.vitals.beat()
            record = turn.pulses.poll(_LISTEN_S)
            pulse = _read(record.value) if record else None
            now, before = self.clock(), state
            findings: tuple[Finding, ...] = ()
            if now >= look_at:
                state, findings = pass_time(state, now)
                look_at = now + LOOK_EVERY
            if pulse:
                self.metrics.heard(pulse)
            if pulse and now - pulse.emitted_at <= STALE_AFTER:
                state, of_pulse = judge(state, pulse)
                findings += of_pulse
                for whose, history in learnt(before, state, pulse):
                    turn.memory.learnt(whose, history)
            if findings and turn.term.confirm() is Standing.LOST:
                # Whoever has the seat now finds them as well.
                return before
            for finding in findings:
                self.metrics.found(finding)
                turn.memory.found(finding)
                self.show(finding)
                turn.tell(finding)
        return state


@dataclass(frozen=True, slots=True)
class _Turn:
    """What a watch works with while it has the seat."""

    term: Term
    pulses: TopicReader
    memory: Memory
    sinks: Sequence[Sink]

    def tell(self, finding: Finding) -> None:
        if finding.names or finding.clears:
            for sink in self.sinks:
                sink.tell(finding)


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


def _read(value: bytes) -> ProbePulse | None:
    """A pulse, or None with a line in the log: what cannot be read must not stop the watch."""
    try:
        return ProbePulse.decode(value)
    except ContractError as error:
        _log.warning("a pulse was passed over: %s", error)
        return None
