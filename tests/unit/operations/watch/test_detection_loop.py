"""The detection loop on pulses in memory: what is stored, who is notified, and what ends it."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

from fleetgauge_core.contract import ProbePulse
from fleetgauge_core.detection import Finding, FindingSubject, FleetHealth, HealthCondition, HealthState
from fleetgauge_core.fleet import Cluster
from fleetgauge_core.kafka import ConsumerRecord, LeadershipStatus
from fleetgauge_core.runtime.health_server import ProcessHealth
from fleetgauge_core.runtime.shutdown import ShutdownFlag
from fleetgauge_operations.watch.detection_loop import DetectionLoop, ReceivedPulses
from fleetgauge_operations.watch.metrics import WatchMetrics
from fleetgauge_operations.watch.suppression import SuppressedFindings
from tests.unit.core.detection.pulses import NOON, at, broker, hung, pulse

BROKER_DOWN = FindingSubject("orders", HealthCondition.BROKER_DOWN, 1)
NO_DATA = FindingSubject("orders", HealthCondition.NO_DATA)
HEALTHY_THEN_HUNG = (pulse(0, broker()), pulse(5, hung(5)), pulse(10, hung(10)))


@dataclass
class MemoryWatch:
    """Everything that a detection loop reads and writes, in memory.

    Each pulse is read at its own time, then ``idle_s`` seconds pass without a pulse.
    """

    pulses: Sequence[ProbePulse]
    idle_s: int = 0
    leadership: LeadershipStatus = LeadershipStatus.HELD
    maintenance: tuple[datetime, datetime] | None = None
    late_findings: list[Finding] = field(default_factory=list)
    now: datetime = NOON
    clock_ahead: timedelta = timedelta(0)
    log: list[str] = field(default_factory=list)
    """What was stored, sent or postponed, in order."""
    stored: list[Finding] = field(default_factory=list)
    shutdown: ShutdownFlag = field(default_factory=ShutdownFlag)
    is_lost: bool = False
    bad_entries: Sequence[str] = ()
    """Clusters whose entry in the fleet file cannot be used."""
    received: ReceivedPulses = field(default_factory=ReceivedPulses)

    def __post_init__(self) -> None:
        self._unread = list(self.pulses)

    # The leadership.

    def confirm(self) -> LeadershipStatus:
        return self.leadership

    # The reader of pulses.

    def poll(self, _: float) -> ConsumerRecord | None:
        if self._unread:
            next_pulse = self._unread.pop(0)
            self.now = max(self.now, next_pulse.emitted_at)
            return ConsumerRecord(0, 0, next_pulse.encode())
        if self.idle_s:
            self.idle_s -= 1
            self.now += timedelta(seconds=1)
        else:
            self.shutdown.set()
        return None

    # The burn tracker.

    def read(self, _: datetime) -> tuple[Finding, ...]:
        return ()

    def exclude_paged_errors(self, finding: Finding) -> None:
        if finding.is_alert:
            self.log.append(f"exclude errors of {finding.to_state}")

    def remove_clusters(self, *_: object) -> tuple[Finding, ...]:
        return ()

    # The store.

    def save_finding(self, finding: Finding) -> None:
        self.log.append(f"store {finding.to_state}")
        self.stored.append(finding)

    def save_latency_history(self, *_: object) -> None:
        pass

    def read_late_findings(self) -> Iterable[Finding]:
        late, self.late_findings = self.late_findings, []
        return late

    # The lake's context.

    @property
    def plan(self) -> "MemoryWatch":
        return self

    def covers(self, _: FindingSubject, at: datetime) -> bool:
        return self.maintenance is not None and self.maintenance[0] <= at < self.maintenance[1]

    # A notifier.

    def notify(self, finding: Finding) -> None:
        self.log.append(f"notify {finding.to_state}")

    def postpone(self, finding: Finding) -> None:
        self.log.append(f"postpone {finding.to_state}")

    def resume(self, findings: Iterable[tuple[FindingSubject, HealthState]]) -> None:
        self.log += [f"resume {state}" for _, state in findings]

    def run(self, state: FleetHealth | None = None, clusters: Sequence[str] = ("orders",)) -> FleetHealth:
        memory: Any = self
        health = ProcessHealth("watch", 60)
        loop = DetectionLoop(
            clusters={
                name: Cluster.model_validate({"id": name, "bootstrap": "nobody:1"}) for name in clusters
            },
            may_list=lambda cluster_id: cluster_id in self.bad_entries,
            leadership=memory,
            pulse_reader=memory,
            burn_tracker=memory,
            store=memory,
            lake_context=memory,
            suppressed=SuppressedFindings(),
            sinks=[memory],
            received=self.received,
            clock=lambda: self.now - self.clock_ahead,
            elapsed_s=lambda: (self.now - at(0)).total_seconds(),
            show=lambda _: None,
            health=health,
            metrics=WatchMetrics(health.registry),
        )
        return loop.run(state or FleetHealth(), self.shutdown)


def test_a_finding_is_stored_before_its_receivers_are_notified() -> None:
    watch = MemoryWatch(HEALTHY_THEN_HUNG)
    state = watch.run()
    assert state.open_findings() == ((BROKER_DOWN, HealthState.BROKER_DOWN),)
    assert watch.log[-3:] == ["exclude errors of BROKER_DOWN", "store BROKER_DOWN", "notify BROKER_DOWN"]


def test_a_watch_that_has_lost_the_leadership_stores_and_sends_nothing_and_stops() -> None:
    watch = MemoryWatch((*HEALTHY_THEN_HUNG, pulse(15, broker())), leadership=LeadershipStatus.LOST)
    state = watch.run()
    assert [line for line in watch.log if not line.startswith("exclude")] == []
    assert state.open_findings() == ()
    assert not watch.shutdown.is_set()


def test_an_unanswered_proof_of_leadership_delays_no_page() -> None:
    watch = MemoryWatch(HEALTHY_THEN_HUNG, leadership=LeadershipStatus.UNKNOWN)
    watch.run()
    assert "notify BROKER_DOWN" in watch.log


def test_an_alert_during_maintenance_is_stored_and_sent_when_the_maintenance_ends() -> None:
    watch = MemoryWatch(HEALTHY_THEN_HUNG, idle_s=20, maintenance=(at(0), at(20)))
    watch.run()
    delivered = [line for line in watch.log if "BROKER_DOWN" in line]
    assert delivered == [
        "exclude errors of BROKER_DOWN",
        "store BROKER_DOWN",
        "postpone BROKER_DOWN",
        "notify BROKER_DOWN",
    ]


def test_a_cluster_without_pulses_has_no_data() -> None:
    watch = MemoryWatch([pulse(0, broker())], idle_s=40)
    state = watch.run()
    assert (NO_DATA, HealthState.NO_DATA) in state.open_findings()
    assert watch.log[-1] == "notify NO_DATA"


def test_pulses_that_are_too_old_or_too_far_ahead_open_no_alert() -> None:
    late = MemoryWatch(HEALTHY_THEN_HUNG, clock_ahead=timedelta(seconds=-31))
    assert late.run().open_findings() == ()
    early = MemoryWatch(HEALTHY_THEN_HUNG, clock_ahead=timedelta(seconds=11))
    assert early.run().open_findings() == ()
    assert early.received.vantages_ahead == {HEALTHY_THEN_HUNG[0].vantage}


def test_the_alerts_of_a_cluster_that_left_the_fleet_file_are_cleared_first() -> None:
    state = MemoryWatch(HEALTHY_THEN_HUNG).run()
    watch = MemoryWatch([], now=at(11))
    assert watch.run(state, clusters=["payments"]).open_findings() == ()
    assert watch.log[:2] == ["store HEALTHY", "notify HEALTHY"]


def test_the_alerts_of_a_cluster_with_a_bad_entry_stay_open() -> None:
    state = MemoryWatch(HEALTHY_THEN_HUNG).run()
    watch = MemoryWatch([], now=at(11), bad_entries=("orders",))
    assert watch.run(state, clusters=["payments"]).open_findings() == state.open_findings()


def test_a_late_alert_of_an_earlier_watch_is_resumed_and_cleared_by_this_one() -> None:
    earlier = MemoryWatch(HEALTHY_THEN_HUNG)
    earlier.run()
    pulses = [pulse(15 + 5 * n, broker()) for n in range(12)]
    watch = MemoryWatch(pulses, now=at(15), late_findings=earlier.stored[-1:])
    state = watch.run()
    assert watch.log[0] == "resume BROKER_DOWN"
    assert "notify HEALTHY" in watch.log
    assert state.open_findings() == ()
