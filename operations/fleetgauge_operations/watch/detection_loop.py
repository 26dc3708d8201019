"""The detection loop: fold pulses one at a time, store the findings, and notify receivers of them."""

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
from fleetgauge_operations.watch.vantage_times import VantageTimes

_log = logging.getLogger("fleetgauge.watch")

#: Older pulses are ignored: a watch that starts must not page for the past.
STALE_AFTER = timedelta(seconds=30)
#: Pulses from further ahead are ignored, because the agent's clock or ours is wrong: such a pulse would make
#: all others look old, and the silence of its cluster short.
MAX_CLOCK_AHEAD = timedelta(seconds=10)
#: How often all clusters are checked for missing pulses and for maintenance that has ended.
_SWEEP_INTERVAL_S = 1.0
_POLL_TIMEOUT_S = 0.5


@dataclass(slots=True)
class ReceivedPulses:
    """When the latest pulse of any cluster was emitted, None before the first.

    ``vantages_ahead`` are the vantages whose latest pulse was ignored because their clock is ahead of ours.
    """

    last_emitted_at: datetime | None = None
    vantages_ahead: set[str] = field(default_factory=set)


@dataclass(frozen=True, slots=True)
class DetectionLoop:
    """Detects findings while this process is the leader; ``show`` is called with every finding.

    ``elapsed_s`` reads a monotonic clock.
    """

    clusters: Mapping[str, Cluster]
    may_list: Callable[[str], bool]
    """Returns whether the fleet file may list a cluster that is not among ``clusters``, in a bad entry."""
    has_new_fleet: Callable[[], bool]
    """Returns whether the fleet file has changed, so that the loop is to end and another to begin."""
    leadership: Leadership
    pulse_reader: TopicReader
    burn_tracker: BurnTracker
    store: StateStore
    lake_context: LakeContext
    suppressed: SuppressedFindings
    sinks: Iterable[FindingSink]
    received: ReceivedPulses
    vantages: VantageTimes
    clock: Callable[[], datetime]
    follow_step: Callable[[datetime], bool]
    """Takes when a pulse was emitted, and returns whether the clock was moved for it; see clock_step."""
    elapsed_s: Callable[[], float]
    show: Callable[[Finding], None]
    health: ProcessHealth
    metrics: WatchMetrics

    def run(self, state: FleetHealth, shutdown: ShutdownFlag) -> FleetHealth:
        """Run until ``shutdown`` is set, the leadership is lost or there is a new fleet.

        Returns: the health by then.
        """
        sweep_at_s = self.elapsed_s()
        while not (shutdown.is_set() or self.leadership.is_lost or self.has_new_fleet()):
            self.health.record_heartbeat()
            record = self.pulse_reader.poll(_POLL_TIMEOUT_S)
            state = self._adopt_late_findings(state)
            state_before, now = state, self.clock()
            findings: tuple[Finding, ...] = ()
            if self.elapsed_s() >= sweep_at_s:
                state, findings = self._sweep(state, now)
                self._notify(self.suppressed.release(partial(self.lake_context.plan.covers, at=now)))
                sweep_at_s = self.elapsed_s() + _SWEEP_INTERVAL_S
            if record and (pulse := decode_pulse(record.value)):
                if self.follow_step(pulse.emitted_at):
                    now = self.clock()
                    state = expect_pulses(rewind_clock(state, now), self._clusters_in_scope(now), now)
                state, pulse_findings = self._fold_pulse(state, pulse, now)
                findings += pulse_findings
            for finding in findings:
                self.burn_tracker.exclude_paged_errors(finding)
            findings += self.burn_tracker.read(now)
            if not self._publish(findings, now):
                return state_before
        return state

    def _publish(self, findings: Sequence[Finding], now: datetime) -> bool:
        """Store the findings and notify receivers; return False without either if the leadership is lost.

        The next leader detects the same findings.
        """
        if findings and self.leadership.confirm() is LeadershipStatus.LOST:
            return False
        for finding in findings:
            self._publish_finding(finding, now)
        return True

    def _sweep(self, state: FleetHealth, now: datetime) -> tuple[FleetHealth, tuple[Finding, ...]]:
        """Detect missing pulses in all clusters, and follow the clusters that enter or leave the scope."""
        # The findings that cleared the alerts of a removed cluster were published after the previous sweep.
        self.metrics.keep_clusters(state.clusters, now)
        self._follow_vantages(now)
        # No agent clears the alerts of a cluster that is not watched any more.
        state, cleared = self._remove_clusters(
            state, lambda cluster_id: not self._is_watched(cluster_id, now), now
        )
        state = expect_pulses(state, self._clusters_in_scope(now) - state.clusters.keys(), now)
        state, no_data_findings = detect_no_data(state, now)
        return state, (*cleared, *no_data_findings)

    def _follow_vantages(self, now: datetime) -> None:
        """Store which vantages fell silent, and drop those that count as retired."""
        fallen_silent = self.vantages.find_silent(now)
        retired = self.vantages.retire(partial(self._is_watched, now=now), now)
        for vantage in retired:
            self.metrics.remove_vantage(vantage)
        self._store_vantages(fallen_silent | {vantage.cluster_id for vantage in retired})

    def _store_vantages(self, cluster_ids: Iterable[str]) -> None:
        for cluster_id in cluster_ids:
            self.store.save_vantages(cluster_id, self.vantages.silent_since(cluster_id))

    def _remove_clusters(
        self, state: FleetHealth, is_removed: Callable[[str], bool], now: datetime
    ) -> tuple[FleetHealth, tuple[Finding, ...]]:
        state, cleared = remove_clusters(state, is_removed, now)
        return state, (*cleared, *self.burn_tracker.remove_clusters(is_removed, now))

    def _clusters_in_scope(self, now: datetime) -> set[str]:
        return {cluster_id for cluster_id, cluster in self.clusters.items() if cluster.is_in_scope_at(now)}

    def _is_watched(self, cluster_id: str, now: datetime) -> bool:
        """Return whether the fleet file has the cluster in scope now, or lists it in a bad entry."""
        cluster = self.clusters.get(cluster_id)
        return self.may_list(cluster_id) if cluster is None else cluster.is_in_scope_at(now)

    def _adopt_late_findings(self, state: FleetHealth) -> FleetHealth:
        """Return the health with alerts that an earlier leader sent, and whose events arrived late.

        From then on this watch clears them.
        """
        for finding in self.store.read_late_findings():
            adopted = adopt_finding(state, finding)
            if adopted is not state:
                _log.info("adopted a late %s finding of an earlier watch", finding.subject.condition)
                self.metrics.record_adopted_finding(finding.subject, finding.to_state)
                for sink in self.sinks:
                    sink.resume([(finding.subject, finding.to_state)])
            state = adopted
        return state

    def _fold_pulse(
        self, state: FleetHealth, pulse: ProbePulse, now: datetime
    ) -> tuple[FleetHealth, tuple[Finding, ...]]:
        is_watched = self._is_watched(pulse.cluster_id, now)
        if is_watched:
            self.metrics.record_pulse(pulse)
            # A clock that was ahead once must not hide that the vantage falls silent.
            heard_at = min(pulse.emitted_at, now)
            if self.vantages.record_pulse(pulse.cluster_id, pulse.vantage, heard_at):
                self._store_vantages([pulse.cluster_id])
        age = now - pulse.emitted_at
        if age < -MAX_CLOCK_AHEAD:
            if pulse.vantage not in self.received.vantages_ahead:
                _log.error(
                    "vantage %s: its clock is ahead of this machine's by %s; its pulses are ignored",
                    pulse.vantage,
                    -age,
                )
            self.received.vantages_ahead.add(pulse.vantage)
            self.metrics.record_ignored_pulse(pulse, now)
            return state, ()
        self.received.vantages_ahead.discard(pulse.vantage)
        self.received.last_emitted_at = max(
            pulse.emitted_at, self.received.last_emitted_at or pulse.emitted_at
        )
        if age > STALE_AFTER or not is_watched:
            self.metrics.record_ignored_pulse(pulse, now)
            return state, ()
        after, findings = fold_pulse(state, pulse)
        for key, history in find_changed_histories(state, after, pulse):
            self.store.save_latency_history(key, history)
        return after, findings

    def _publish_finding(self, finding: Finding, now: datetime) -> None:
        self.metrics.record_finding(finding)
        self.store.save_finding(finding)
        self.show(finding)
        to_notify = self.suppressed.filter_finding(
            finding, self.lake_context.plan.covers(finding.subject, now)
        )
        self._notify(to_notify)
        if not to_notify and (finding.is_alert or finding.is_cleared):
            for sink in self.sinks:
                sink.postpone(finding)

    def _notify(self, findings: Iterable[Finding]) -> None:
        for finding in findings:
            for sink in self.sinks:
                sink.notify(finding)
