"""Durations are those that have passed, whatever the machine's clock does."""

import logging
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fleetgauge_core.runtime.steady_clock import EARLY, LASTING_STEP, MIN_STEP, SteadyClock

NOON = datetime(2026, 4, 1, 12, tzinfo=UTC)
HOUR = timedelta(hours=1)
LATER = NOON + EARLY
STEPS = (HOUR, -HOUR)


@dataclass
class Machine:
    """A machine's two clocks."""

    wall: datetime = NOON
    uptime_ns: int = 7_000_000_000

    def create_clock(self, adopts_after: timedelta | None = LASTING_STEP) -> SteadyClock:
        """Return a clock of a process that began longer ago than EARLY."""
        clock = SteadyClock(adopts_after, lambda: self.wall, lambda: self.uptime_ns)
        self.wall += EARLY
        self.uptime_ns += round(EARLY.total_seconds() * 1e9)
        return clock

    def let_pass(self, duration: timedelta) -> None:
        self.wall += duration
        self.uptime_ns += round(duration.total_seconds() * 1e9)


def list_messages(caplog: pytest.LogCaptureFixture) -> list[str]:
    return [record.getMessage() for record in caplog.records]


@pytest.mark.parametrize("step", STEPS)
def test_a_step_moves_nothing_and_is_one_line(step: timedelta, caplog: pytest.LogCaptureFixture) -> None:
    machine = Machine()
    clock = machine.create_clock()
    machine.let_pass(timedelta(seconds=30))
    machine.wall += step
    for second in range(31, 60):
        machine.let_pass(timedelta(seconds=1))
        assert clock.now() == LATER + timedelta(seconds=second)
    assert clock.step == step
    (message,) = list_messages(caplog)
    direction = "forward" if step > timedelta(0) else "back"
    assert message.startswith(f"the clock of this machine went {direction} by 1:00:00; ")


@pytest.mark.parametrize("step", STEPS)
def test_a_step_that_is_undone_is_forgotten(step: timedelta, caplog: pytest.LogCaptureFixture) -> None:
    machine = Machine()
    clock = machine.create_clock()
    machine.wall += step
    clock.now()
    machine.wall -= step
    machine.let_pass(2 * LASTING_STEP)
    assert clock.now() == LATER + 2 * LASTING_STEP
    assert clock.step == timedelta(0)
    assert len(list_messages(caplog)) == 2
    assert caplog.records[-1].levelno == logging.WARNING


@pytest.mark.parametrize("step", STEPS)
def test_a_step_that_has_lasted_is_adopted(step: timedelta, caplog: pytest.LogCaptureFixture) -> None:
    """The clock was wrong when the process began, and was set right."""
    machine = Machine()
    clock = machine.create_clock()
    machine.wall += step
    clock.now()
    machine.let_pass(LASTING_STEP - timedelta(seconds=1))
    assert clock.now() == machine.wall - step
    machine.let_pass(timedelta(seconds=1))
    assert clock.now() == machine.wall
    assert clock.step == timedelta(0)
    assert "is adopted" in list_messages(caplog)[-1]


def test_a_step_is_adopted_when_others_confirm_it() -> None:
    machine = Machine()
    clock = machine.create_clock(adopts_after=None)
    machine.wall += HOUR
    machine.let_pass(24 * HOUR)
    assert clock.now() == machine.wall - HOUR
    assert clock.adopt_step() == HOUR
    assert clock.now() == machine.wall
    assert clock.adopt_step() == timedelta(0)


seconds = st.integers(0, 3000).map(lambda number: timedelta(seconds=number))
wall_steps = st.integers(-90_000, 90_000).map(lambda number: timedelta(seconds=number))


@given(st.lists(st.tuples(seconds, wall_steps)))
def test_without_adoption_it_shows_the_time_that_has_passed(moves: list[tuple[timedelta, timedelta]]) -> None:
    machine, passed = Machine(), timedelta(0)
    clock = machine.create_clock(adopts_after=None)
    for duration, step in moves:
        machine.wall += step
        machine.let_pass(duration)
        passed += duration
        assert clock.now() == LATER + passed
        assert abs(clock.step - (machine.wall - clock.now())) < MIN_STEP


@given(st.lists(st.tuples(seconds, wall_steps)))
def test_it_is_never_moved_but_by_a_step_that_has_lasted(moves: list[tuple[timedelta, timedelta]]) -> None:
    machine = Machine()
    clock = machine.create_clock()
    for duration, step in moves:
        before = clock.now()
        machine.wall += step
        stood = clock.step
        machine.let_pass(duration)
        moved = clock.now() - before - duration
        assert moved in (timedelta(0), stood)


def test_slewing_is_no_step(caplog: pytest.LogCaptureFixture) -> None:
    machine = Machine()
    clock = machine.create_clock()
    for _ in range(100):
        machine.let_pass(timedelta(minutes=10))
        machine.wall += timedelta(milliseconds=10)
        clock.now()
    assert clock.step == timedelta(0)
    assert list_messages(caplog) == []


@pytest.mark.parametrize("step", STEPS)
def test_a_step_right_after_the_start_is_adopted_at_once(step: timedelta) -> None:
    """The machine has just started, and sets its clock by the network."""
    machine = Machine()
    clock = SteadyClock(None, lambda: machine.wall, lambda: machine.uptime_ns)
    machine.let_pass(timedelta(seconds=20))
    machine.wall += step
    assert clock.now() == machine.wall
    assert clock.step == timedelta(0)


def test_a_process_that_is_suspended_between_its_looks_sees_no_step(caplog: pytest.LogCaptureFixture) -> None:
    machine = Machine()
    clock = machine.create_clock()
    is_suspended = True

    def wall() -> datetime:
        nonlocal is_suspended
        wall_time = machine.wall
        if is_suspended:
            is_suspended = False
            machine.let_pass(timedelta(seconds=30))
        return wall_time

    suspended = SteadyClock(wall=wall, clock_ns=lambda: machine.uptime_ns)
    assert suspended.now() == clock.now() == machine.wall
    assert list_messages(caplog) == []
