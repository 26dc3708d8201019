"""A watch's turn: one pulse at a time through the fold; what is found is kept, and told whoever must know."""

import logging
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import partial

from fleetgauge_operations.reading import pulse_in
from fleetgauge_operations.watch.background import Background
from fleetgauge_operations.watch.maintenance import Waiting
from fleetgauge_operations.watch.memory import Memory
from fleetgauge_operations.watch.metrics import WatchMetrics
from fleetgauge_operations.watch.notifiers import Sink
from fleetgauge_operations.watch.spending import Spending
from fleetgauge_pipelines.detection import Finding, FleetState, adopt, judge, learnt, pass_time
from fleetgauge_probes.contract import ProbePulse
from fleetgauge_probes.kafka import Standing, Term, TopicReader
from fleetgauge_probes.stopping import Stopping
from fleetgauge_probes.vitals import Vitals

_log = logging.getLogger("fleetgauge.watch")

#: A pulse this old tells of the past; a watch that starts must not page for it.
STALE_AFTER = timedelta(seconds=30)
#: Who has fallen silent, and whose maintenance is over, is looked for in all clusters.
LOOK_EVERY = timedelta(seconds=1)
_LISTEN_S = 0.5


@dataclass(slots=True)
class Heard:
    """When the last pulse of any cluster was made that was heard; None before the first."""

    at: datetime | None = None


@dataclass(frozen=True, slots=True)
class Turn:
    """What a watch works with while the seat is its own. ``show`` is given every change that it finds."""

    term: Term
    pulses: TopicReader
    spending: Spending
    memory: Memory
    background: Background
    waiting: Waiting
    sinks: Sequence[Sink]
    heard: Heard
    clock: Callable[[], datetime]
    show: Callable[[Finding], None]
    vitals: Vitals
    metrics: WatchMetrics

    def listen(self, state: FleetState, stopping: Stopping) -> FleetState:
        """Until ``stopping`` is set or the seat is lost; what is known then."""
        look_at = self.clock()
        while not (stopping.is_set() or self.term.is_lost):
            self.vitals.beat()
            record = self.pulses.poll(_LISTEN_S)
            state = self._caught_up(state)
            now, before = self.clock(), state
            findings: tuple[Finding, ...] = ()
            if now >= look_at:
                state, findings = pass_time(state, now)
                self._tell(self.waiting.over(partial(self.background.plan.covers, at=now)))
                look_at = now + LOOK_EVERY
            if record and (pulse := pulse_in(record.value)):
                state, of_pulse = self._hear(state, pulse, now)
                findings += of_pulse
            for finding in findings:
                self.spending.explain(finding)
            findings += self.spending.read(now)
            if findings and self.term.confirm() is Standing.LOST:
                # Whoever has the seat now finds them as well.
                return before
            for finding in findings:
                self._found(finding, now)
        return state

    def _caught_up(self, state: FleetState) -> FleetState:
        """With what the last watch told and could not leave in time: its end is ours to tell."""
        for finding in self.memory.late():
            after = adopt(state, finding)
            if after is not state:
                _log.info("an earlier watch told of %s late", finding.subject.chain)
                self.metrics.adopted(finding.subject, finding.to_phase)
                for sink in self.sinks:
                    sink.remind([(finding.subject, finding.to_phase)])
            state = after
        return state

    def _hear(
        self, state: FleetState, pulse: ProbePulse, now: datetime
    ) -> tuple[FleetState, tuple[Finding, ...]]:
        self.metrics.heard(pulse)
        self.heard.at = max(pulse.emitted_at, self.heard.at or pulse.emitted_at)
        if now - pulse.emitted_at > STALE_AFTER:
            return state, ()
        after, findings = judge(state, pulse)
        for whose, history in learnt(state, after, pulse):
            self.memory.learnt(whose, history)
        return after, findings

    def _found(self, finding: Finding, now: datetime) -> None:
        self.metrics.found(finding)
        self.memory.found(finding)
        self.show(finding)
        self._tell(self.waiting.told_of(finding, self.background.plan.covers(finding.subject, now)))

    def _tell(self, findings: Iterable[Finding]) -> None:
        for finding in findings:
            for sink in self.sinks:
                sink.tell(finding)
