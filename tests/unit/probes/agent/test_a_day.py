"""A day of one broker on a simulated clock: the machine sleeps, the process stalls, the wall clock jumps."""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from fleetgauge_core.contract import Leg
from fleetgauge_probes.agent.leader_eligibility import Standing
from fleetgauge_probes.agent.probe_tracker import LegLedger, MinuteTally
from fleetgauge_probes.agent.process_pauses import Stalls
from fleetgauge_probes.agent.schedule import MINUTE_NS, MinuteClock, Timetable, phase_ns

SECOND_NS = 1_000_000_000
BROKER = 7
START = datetime(2026, 12, 31, 9, 30, 20, tzinfo=UTC)
DAY_S = 24 * 3600
#: Coarser than the agent's own, for the test's sake.
TURN_NS = 50_000_000
ACKED_AFTER_NS = 3_000_000
#: Seconds after the start, and for how long nothing runs: a laptop's lid, a garbage collection, a debugger.
ASLEEP_S = {7 * 3600 + 25: 8220, 12 * 3600 + 5: 2, 15 * 3600 + 610: 30}
#: What is done to the wall clock, in seconds: set right by an hour, set back, a leap second, a summer time.
STEPS_S = {3600: 3600, 5 * 3600: -1800, 14 * 3600 + 1780: -1, 20 * 3600: 3600}


@dataclass
class Machine:
    """Its uptime advances with it, asleep or awake."""

    uptime_ns: int = 5 * SECOND_NS

    def wall(self) -> datetime:
        since_start_s = self.uptime_ns / SECOND_NS - 5
        stepped_s = sum(by for at, by in STEPS_S.items() if at <= since_start_s)
        return START + timedelta(seconds=since_start_s + stepped_s)

    def awake(self) -> Iterator[int]:
        """Every turn that it runs."""
        asleep = {5 * SECOND_NS + at * SECOND_NS: span * SECOND_NS for at, span in ASLEEP_S.items()}
        while self.uptime_ns < (5 + DAY_S) * SECOND_NS:
            self.uptime_ns += TURN_NS + asleep.get(self.uptime_ns, 0)
            yield self.uptime_ns


@dataclass
class Told:
    minute: datetime
    tally: MinuteTally


def live(machine: Machine) -> Iterator[Told]:
    """One leg, as the agent drives it, on a broker that acknowledges after 3 ms."""
    clock = MinuteClock.at(machine.uptime_ns, machine.wall())
    stalls = Stalls(SECOND_NS // 10, machine.uptime_ns)
    ledger, timetable = LegLedger(Leg.LEADER, BROKER, stalls), Timetable(clock)
    timetable.add(BROKER, Leg.LEADER, phase_ns(0, 1, Leg.LEADER), machine.uptime_ns)
    ledger.routed(machine.uptime_ns, BROKER, Standing.LEADS)
    sequence, on_the_way = 0, []
    for turn, now_ns in enumerate(machine.awake()):
        stalls.awake(now_ns)
        for sent in on_the_way:
            ledger.delivered(sent, now_ns - TURN_NS + ACKED_AFTER_NS, None)
        on_the_way = []
        while slot := timetable.take(now_ns):
            minute = clock.index(slot.due_ns)
            ledger.open_minute(minute)
            ledger.sent(sequence, slot.due_ns, now_ns, minute)
            on_the_way.append(sequence)
            sequence += 1
        if turn % 20 == 0:
            ledger.routed(now_ns, BROKER, Standing.LEADS)
            ledger.tick(now_ns)
            for minute in ledger.closable(clock.index(now_ns - 5 * SECOND_NS)):
                yield Told(clock.minute(minute), ledger.take(minute))


def test_every_minute_that_it_ran_is_named_once_and_rightly_and_tells_of_the_broker_alone() -> None:
    told = list(live(Machine()))
    names = [one.minute for one in told]
    assert names == sorted(set(names))
    # What was measured is known by the uptime, which neither steps nor sleeps.
    first = START.replace(second=0)
    ran = {first + timedelta(minutes=number) for number in range(24 * 60)}
    asleep = [(START + timedelta(seconds=at), timedelta(seconds=span)) for at, span in ASLEEP_S.items()]
    slept_over = {
        minute
        for minute in ran
        for fell_asleep, span in asleep
        # Up to five seconds of slots are made up for.
        if fell_asleep < minute and minute + timedelta(minutes=1) < fell_asleep + span - timedelta(seconds=5)
    }
    assert set(names) == ran - slept_over
    assert len(slept_over) == 136
    # The first, one that a sleep began in and one that it ended in, one for each of the shorter ones.
    assert sum(one.tally.attempted < 100 for one in told) == 5
    for one in told:
        assert not one.tally.produce_failures
        assert all(3_000 <= us <= 53_000 for us in one.tally.ack_us)


def test_a_suspended_machine_wakes_up_in_the_minute_that_it_is() -> None:
    clock = MinuteClock.at(5 * SECOND_NS, START)
    eight_hours_on = 5 * SECOND_NS + 480 * MINUTE_NS
    assert clock.minute(clock.index(eight_hours_on)) == (START + timedelta(hours=8)).replace(second=0)
