"""A watch's turn: one pulse at a time through the fold; what is found is kept, and told whoever must know."""

import logging
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from functools import partial

from fleetgauge_core.contract import ProbePulse
from fleetgauge_core.detection import (
    Finding,
    FleetHealth,
    adopt_finding,
    detect_no_data,
    expect_pulses,
    find_changed_histories,
    fold_pulse,
    remove_clusters,
    rewind_clock,
)
from fleetgauge_core.detection.record_reader import decode_pulse
from fleetgauge_core.fleet import Cluster
from fleetgauge_core.kafka import Leadership, LeadershipStatus, TopicReader
from fleetgauge_core.runtime.health_server import ProcessHealth
from fleetgauge_core.runtime.shutdown import ShutdownFlag
from fleetgauge_operations.watch.burn_tracker import BurnTracker
from fleetgauge_operations.watch.lake_context import LakeContext
from fleetgauge_operations.watch.metrics import WatchMetrics
from fleetgauge_operations.watch.notifiers import FindingSink
from fleetgauge_operations.watch.state_store import StateStore
from fleetgauge_operations.watch.suppression import SuppressedFindings

_log = logging.getLogger("fleetgauge.watch")

#: A pulse this old tells of the past; a watch that starts must not page for it.
STALE_AFTER = timedelta(seconds=30)
#: One that is further ahead of our clock than this is of an agent whose clock is wrong, or ours is: it would
#: make all others look old, and its silence young.
AHEAD = timedelta(seconds=10)
#: Who has fallen silent, and whose maintenance is over, is looked for in all clusters.
_LOOK_EVERY_S = 1.0
_LISTEN_S = 0.5


@dataclass(slots=True)
class ReceivedPulses:
    """When the last pulse of any cluster was made that was heard; None before the first.

    ``ahead``: vantages whose clocks are, or ours is behind.
    """

    at: datetime | None = None
    ahead: set[str] = field(default_factory=set)


@dataclass(frozen=True, slots=True)
class DetectionLoop:
    """What a watch works with while the seat is its own. ``show`` is given every change that it finds.

    ``elapsed_s``: of a clock that nobody sets.
    """

    clusters: Mapping[str, Cluster]
    term: Leadership
    pulses: TopicReader
    spending: BurnTracker
    memory: StateStore
    background: LakeContext
    waiting: SuppressedFindings
    sinks: Sequence[FindingSink]
    heard: ReceivedPulses
    clock: Callable[[], datetime]
    elapsed_s: Callable[[], float]
    show: Callable[[Finding], None]
    health: ProcessHealth
    metrics: WatchMetrics

    def listen(self, state: FleetHealth, shutdown: ShutdownFlag) -> FleetHealth:
        """Until ``shutdown`` is set or the seat is lost; what is known then."""
        look_at_s, now = self.elapsed_s(), self.clock()
        # Of a cluster that has left the fleet file nobody would ever say that it is well.
        state, findings = self._retire(state, lambda one: one not in self.clusters, now)
        if not self._tell_of(findings, now):
            return state
        while not (shutdown.is_set() or self.term.is_lost):
            self.health.record_heartbeat()
            record = self.pulses.poll(_LISTEN_S)
            state = self._caught_up(state)
            before, before_now, now = state, now, self.clock()
            findings = ()
            if before_now - now > AHEAD:
                _log.error("this clock went back by %s", before_now - now)
                state = expect_pulses(rewind_clock(state, now), self._expected(now), now)
            if self.elapsed_s() >= look_at_s:
                state, findings = self._look(state, now)
                self._tell(self.waiting.over(partial(self.background.plan.covers, at=now)))
                look_at_s = self.elapsed_s() + _LOOK_EVERY_S
            if record and (pulse := decode_pulse(record.value)):
                state, of_pulse = self._hear(state, pulse, now)
                findings += of_pulse
            for finding in findings:
                self.spending.explain(finding)
            findings += self.spending.read(now)
            if not self._tell_of(findings, now):
                return before
        return state

    def _tell_of(self, findings: Sequence[Finding], now: datetime) -> bool:
        """False, nothing done, where the seat is lost: whoever has it now finds them as well."""
        if findings and self.term.confirm() is LeadershipStatus.LOST:
            return False
        for finding in findings:
            self._found(finding, now)
        return True

    def _look(self, state: FleetHealth, now: datetime) -> tuple[FleetHealth, tuple[Finding, ...]]:
        """At all clusters: who has fallen silent, who is watched no more, and who from now on."""
        strangers = {one for one in state.clusters.keys() - self.clusters.keys() if state.is_silent(one, now)}
        gone = partial(self._is_out, now=now)
        state, over = self._retire(state, lambda one: one in strangers or gone(one), now)
        state = expect_pulses(state, self._expected(now) - state.clusters.keys(), now)
        state, silent = detect_no_data(state, now)
        return state, (*over, *silent)

    def _retire(
        self, state: FleetHealth, gone: Callable[[str], bool], now: datetime
    ) -> tuple[FleetHealth, tuple[Finding, ...]]:
        state, over = remove_clusters(state, gone, now)
        return state, (*over, *self.spending.retire(gone, now))

    def _expected(self, now: datetime) -> set[str]:
        return {name for name, one in self.clusters.items() if one.is_in_scope_at(now)}

    def _is_out(self, cluster_id: str, now: datetime) -> bool:
        """Not yet, or no more; one that is not in our file may be in a newer one."""
        known = self.clusters.get(cluster_id)
        return known is not None and not known.is_in_scope_at(now)

    def _caught_up(self, state: FleetHealth) -> FleetHealth:
        """With what the last watch told and could not leave in time: its end is ours to tell."""
        for finding in self.memory.late():
            after = adopt_finding(state, finding)
            if after is not state:
                _log.info("an earlier watch told of %s late", finding.subject.condition)
                self.metrics.adopted(finding.subject, finding.to_state)
                for sink in self.sinks:
                    sink.resume([(finding.subject, finding.to_state)])
            state = after
        return state

    def _hear(
        self, state: FleetHealth, pulse: ProbePulse, now: datetime
    ) -> tuple[FleetHealth, tuple[Finding, ...]]:
        self.metrics.heard(pulse)
        age = now - pulse.emitted_at
        if age < -AHEAD:
            if pulse.vantage not in self.heard.ahead:
                _log.error("the clock of vantage %s is %s ahead of ours: one is wrong", pulse.vantage, -age)
            self.heard.ahead.add(pulse.vantage)
            self.metrics.ignored(pulse)
            return state, ()
        self.heard.ahead.discard(pulse.vantage)
        self.heard.at = max(pulse.emitted_at, self.heard.at or pulse.emitted_at)
        if age > STALE_AFTER or self._is_out(pulse.cluster_id, now):
            self.metrics.ignored(pulse)
            return state, ()
        after, findings = fold_pulse(state, pulse)
        for whose, history in find_changed_histories(state, after, pulse):
            self.memory.learnt(whose, history)
        return after, findings

    def _found(self, finding: Finding, now: datetime) -> None:
        self.metrics.found(finding)
        self.memory.found(finding)
        self.show(finding)
        told = self.waiting.told_of(finding, self.background.plan.covers(finding.subject, now))
        self._tell(told)
        if not told and (finding.is_alert or finding.is_cleared):
            for sink in self.sinks:
                sink.postpone(finding)

    def _tell(self, findings: Iterable[Finding]) -> None:
        for finding in findings:
            for sink in self.sinks:
                sink.notify(finding)
