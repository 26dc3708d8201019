"""A simulated day of one broker with a sleeping machine, process pauses and steps of the wall clock."""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import NamedTuple

from fleetgauge_core.contract import Leg
from fleetgauge_probes.agent.leader_eligibility import LeaderEligibility
from fleetgauge_probes.agent.minute_tally import MinuteTally
from fleetgauge_probes.agent.probe_tracker import ProbeTracker
from fleetgauge_probes.agent.process_pauses import ProcessPauses
from fleetgauge_probes.agent.schedule import MINUTE_NS, MinuteClock, ProbeSchedule, compute_phase_ns
from fleetgauge_probes.agent.throttles import QuotaThrottles

SECOND_NS = 1_000_000_000
BROKER = 7
START = datetime(2026, 12, 31, 9, 30, 20, tzinfo=UTC)
DAY_S = 24 * 3600
#: Coarser than in the agent, to keep the test short.
STEP_NS = 50_000_000
ACKNOWLEDGED_AFTER_NS = 3_000_000
#: Duration of pauses by their start, both in seconds: suspension, garbage collection, debugger.
PAUSES_S = {7 * 3600 + 25: 8220, 12 * 3600 + 5: 2, 15 * 3600 + 610: 30}
#: Steps of the wall clock by their time, both in seconds: corrections, a leap second, summer time.
CLOCK_STEPS_S = {3600: 3600, 5 * 3600: -1800, 14 * 3600 + 1780: -1, 20 * 3600: 3600}


@dataclass
class Machine:
    """A machine whose uptime advances while it runs and while it sleeps."""

    uptime_ns: int = 5 * SECOND_NS

    def wall_time(self) -> datetime:
        since_start_s = self.uptime_ns / SECOND_NS - 5
        stepped_s = sum(step_s for at, step_s in CLOCK_STEPS_S.items() if at <= since_start_s)
        return START + timedelta(seconds=since_start_s + stepped_s)

    def run(self) -> Iterator[int]:
        """Yield the uptime of every step in which the machine runs."""
        pauses = {5 * SECOND_NS + at * SECOND_NS: span * SECOND_NS for at, span in PAUSES_S.items()}
        while self.uptime_ns < (5 + DAY_S) * SECOND_NS:
            self.uptime_ns += STEP_NS + pauses.get(self.uptime_ns, 0)
            yield self.uptime_ns


class ClosedMinute(NamedTuple):
    """A closed minute's UTC start and its tally."""

    minute: datetime
    tally: MinuteTally


def run_leg(machine: Machine) -> Iterator[ClosedMinute]:
    """Run one leg as the agent does, on a broker that acknowledges after 3 ms."""
    clock = MinuteClock.from_wall_time(machine.uptime_ns, machine.wall_time())
    pauses = ProcessPauses(SECOND_NS // 10, machine.uptime_ns)
    tracker, schedule = ProbeTracker(Leg.LEADER, BROKER, pauses, QuotaThrottles()), ProbeSchedule(clock)
    schedule.add_leg(BROKER, Leg.LEADER, compute_phase_ns(0, 1, Leg.LEADER), machine.uptime_ns)
    tracker.record_routing(machine.uptime_ns, BROKER, LeaderEligibility.LEADING)
    next_sequence = 0
    in_flight: list[int] = []
    for step, now_ns in enumerate(machine.run()):
        pauses.record_heartbeat(now_ns)
        for sequence in in_flight:
            tracker.record_delivery(sequence, now_ns - STEP_NS + ACKNOWLEDGED_AFTER_NS, None)
        in_flight = []
        while slot := schedule.pop_due_slot(now_ns):
            minute = clock.minute_index(slot.due_ns)
            tracker.open_minute(minute)
            tracker.record_send(next_sequence, slot.due_ns, now_ns, minute)
            in_flight.append(next_sequence)
            next_sequence += 1
        if step % 20 == 0:
            tracker.record_routing(now_ns, BROKER, LeaderEligibility.LEADING)
            tracker.expire_overdue(now_ns)
            for minute in tracker.closable_minutes(clock.minute_index(now_ns - 5 * SECOND_NS)):
                yield ClosedMinute(clock.minute_start(minute), tracker.close_minute(minute))


def test_every_minute_of_running_time_is_recorded_once_and_measures_the_broker_only() -> None:
    closed = list(run_leg(Machine()))
    starts = [minute.minute for minute in closed]
    assert starts == sorted(set(starts))
    # Minutes are assigned by the uptime, which is neither stepped nor stopped while the machine sleeps.
    first = START.replace(second=0)
    all_minutes = {first + timedelta(minutes=number) for number in range(24 * 60)}
    pauses = [(START + timedelta(seconds=at), timedelta(seconds=span)) for at, span in PAUSES_S.items()]
    slept_through = {
        minute
        for minute in all_minutes
        for paused_at, span in pauses
        # Slots that are up to five seconds late are still sent.
        if paused_at < minute and minute + timedelta(minutes=1) < paused_at + span - timedelta(seconds=5)
    }
    assert set(starts) == all_minutes - slept_through
    assert len(slept_through) == 136
    # The first minute, the minutes in which the long pause began and ended, and one for each shorter pause.
    assert sum(minute.tally.attempted < 100 for minute in closed) == 5
    for minute in closed:
        assert not minute.tally.produce_failures
        assert all(3_000 <= us <= 53_000 for us in minute.tally.ack_us)


def test_after_a_suspension_the_current_minute_is_right() -> None:
    clock = MinuteClock.from_wall_time(5 * SECOND_NS, START)
    eight_hours_later = 5 * SECOND_NS + 480 * MINUTE_NS
    current = clock.minute_start(clock.minute_index(eight_hours_later))
    assert current == (START + timedelta(hours=8)).replace(second=0)
