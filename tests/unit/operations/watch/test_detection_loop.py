"""The detection loop on pulses in memory: what is stored, who is notified, and what ends it."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

import pytest

from fleetgauge_core.contract import ProbePulse
from fleetgauge_core.detection import Finding, FindingSubject, FleetHealth, HealthCondition, HealthState
from fleetgauge_core.fleet import Cluster
from fleetgauge_core.kafka import ConsumerRecord, LeadershipStatus
from fleetgauge_core.runtime.health_server import ProcessHealth
from fleetgauge_core.runtime.shutdown import ShutdownFlag
from fleetgauge_core.runtime.steady_clock import EARLY, SteadyClock
from fleetgauge_operations.watch.clock_step import ClockStep
from fleetgauge_operations.watch.detection_loop import DetectionLoop, ReceivedPulses
from fleetgauge_operations.watch.message_format import summarize_finding
from fleetgauge_operations.watch.metrics import WatchMetrics
from fleetgauge_operations.watch.suppression import SuppressedFindings
from fleetgauge_operations.watch.vantage_times import VantageTimes
from tests.exposition import samples_of
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
    clock: SteadyClock | None = None
    log: list[str] = field(default_factory=list)
    """What was stored, sent or postponed, in order."""
    stored: list[Finding] = field(default_factory=list)
    shutdown: ShutdownFlag = field(default_factory=ShutdownFlag)
    is_lost: bool = False
    vantages: VantageTimes = field(default_factory=lambda: VantageTimes({}, NOON))
    stored_vantages: dict[str, dict[str, datetime | None]] = field(default_factory=dict)
    has_new_fleet: bool = False
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

    def save_vantages(self, cluster_id: str, vantages: Mapping[str, datetime | None]) -> None:
        self.stored_vantages[cluster_id] = dict(vantages)

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
            has_new_fleet=lambda: self.has_new_fleet,
            leadership=memory,
            pulse_reader=memory,
            burn_tracker=memory,
            store=memory,
            lake_context=memory,
            suppressed=SuppressedFindings(),
            sinks=[memory],
            received=self.received,
            vantages=self.vantages,
            clock=self.clock.now if self.clock else lambda: self.now - self.clock_ahead,
            follow_step=ClockStep(self.clock).follow if self.clock else lambda _: False,
            elapsed_s=lambda: (self.now - at(0)).total_seconds(),
            show=lambda _: None,
            health=health,
            metrics=WatchMetrics(health.registry),
        )
        self.registry = health.registry
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


def test_a_cluster_that_left_the_fleet_file_is_forgotten_whoever_still_measures_it() -> None:
    late = [pulse(15 + 5 * n, hung(15 + 5 * n)) for n in range(9)]
    others = [pulse(15 + 5 * n, broker(), cluster="payments") for n in range(9)]
    watch = MemoryWatch([each for pair in zip(late, others, strict=True) for each in pair], idle_s=2)
    state = MemoryWatch(HEALTHY_THEN_HUNG).run()
    assert watch.run(state, clusters=["payments"]).open_findings() == ()
    (cleared,) = watch.stored
    assert cleared.is_unwatched
    assert summarize_finding(cleared).startswith("orders: no longer watched")
    for name in (
        "fleetgauge_findings_open",
        "fleetgauge_broker_named",
        "fleetgauge_watch_pulse_timestamp_seconds",
    ):
        assert not [labels for labels in samples_of(watch.registry, name) if "orders" in labels]
    ignored = "fleetgauge_watch_pulses_ignored_total"
    assert samples_of(watch.registry, ignored) == {("orders", "zone-a"): 9}
    quiet = MemoryWatch([*late, *others], idle_s=62)
    quiet.run(state, clusters=["payments"])
    assert ("orders", "zone-a") not in samples_of(quiet.registry, ignored)


def test_a_new_fleet_ends_the_loop_and_keeps_the_health() -> None:
    state = MemoryWatch(HEALTHY_THEN_HUNG).run()
    watch = MemoryWatch([], has_new_fleet=True)
    assert watch.run(state) is state
    assert not watch.shutdown.is_set()


def test_it_is_stored_when_a_vantage_falls_silent_and_is_heard_again() -> None:
    other = [pulse(5 * n, broker(), vantage="zone-b") for n in range(1, 9)]
    watch = MemoryWatch([pulse(0, broker()), *other])
    watch.run()
    assert watch.stored_vantages == {"orders": {"zone-a": at(0), "zone-b": None}}
    back = MemoryWatch([pulse(45, broker())], now=at(45), vantages=watch.vantages)
    back.run()
    assert back.stored_vantages == {"orders": {"zone-a": None, "zone-b": None}}


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


def watch_with_step(
    pulses: Sequence[ProbePulse], step: timedelta, at_s: float, wrong_since_start: timedelta = timedelta(0)
) -> MemoryWatch:
    """Return a watch on a machine whose clock is set by ``step`` after so many seconds."""
    watch = MemoryWatch(pulses)

    def passed_s() -> float:
        return (watch.now - NOON).total_seconds()

    def wall() -> datetime:
        return watch.now + wrong_since_start + (step if passed_s() >= at_s else timedelta(0))

    # The process began a while ago.
    watch.now = NOON - 2 * EARLY
    watch.clock = SteadyClock(None, wall, lambda: round(passed_s() * 1e9))
    watch.now = NOON
    return watch


@pytest.mark.parametrize("step", [timedelta(hours=1), timedelta(hours=-1)])
def test_a_clock_that_is_set_changes_no_finding_and_is_one_line(
    step: timedelta, caplog: pytest.LogCaptureFixture
) -> None:
    healthy = [pulse(5 * n, broker()) for n in range(20)]
    pulses = [*healthy, pulse(100, hung(5)), pulse(105, hung(10))]
    watch = watch_with_step(pulses, step, at_s=42)
    watch.run()
    undisturbed = MemoryWatch(pulses)
    undisturbed.run()
    assert watch.log == undisturbed.log
    assert watch.stored == undisturbed.stored
    (message,) = [record.getMessage() for record in caplog.records if "clock" in record.getMessage()]
    assert "by 1:00:00; this process goes on with the time that has passed" in message


@pytest.mark.parametrize("step", [timedelta(hours=1), timedelta(hours=-1)])
def test_a_clock_that_was_wrong_from_the_start_is_followed_when_it_is_set_right(step: timedelta) -> None:
    healthy = [pulse(5 * n, broker()) for n in range(20)]
    hanging = [pulse(100, hung(5)), pulse(105, hung(10))]
    watch = watch_with_step([*healthy, *hanging], step, at_s=30, wrong_since_start=-step)
    state = watch.run()
    assert (BROKER_DOWN, HealthState.BROKER_DOWN) in state.open_findings()
    assert watch.clock is not None
    assert watch.clock.now() == watch.now
