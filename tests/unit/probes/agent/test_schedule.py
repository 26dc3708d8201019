from collections import Counter
from datetime import UTC, datetime, timedelta, timezone
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fleetgauge_core.contract import Leg
from fleetgauge_probes.agent.schedule import (
    INTERVAL_NS,
    MINUTE_NS,
    TOO_LATE_NS,
    MinuteClock,
    ProbeSchedule,
    ProbeSlot,
    compute_phase_ns,
    find_next_slot_ns,
)

NOON = datetime(2026, 3, 2, 12, 0, tzinfo=UTC)
INSTANTS = st.integers(0, 10**18)
PHASES = st.integers(0, INTERVAL_NS - 1)
CLOCKS = st.builds(MinuteClock, INSTANTS, st.just(NOON))


def compute_start_ns(clock: MinuteClock, minute: int) -> int:
    """Return the uptime at which a minute starts."""
    return clock.origin_ns + minute * MINUTE_NS


def list_slots(clock: MinuteClock, phase: int, minute: int) -> list[int]:
    slots = [find_next_slot_ns(clock, phase, compute_start_ns(clock, minute) - 1)]
    while slots[-1] < compute_start_ns(clock, minute + 1):
        slots.append(find_next_slot_ns(clock, phase, slots[-1]))
    return slots[:-1]


@given(CLOCKS, PHASES, st.integers(0, 100_000))
def test_every_minute_has_exactly_a_hundred_slots_of_a_phase(
    clock: MinuteClock, phase: int, minute: int
) -> None:
    slots = list_slots(clock, phase, minute)
    assert len(slots) == 100
    assert {b - a for a, b in pairwise(slots)} == {INTERVAL_NS}
    assert {clock.minute_index(slot) for slot in slots} == {minute}


@given(CLOCKS, PHASES, st.integers(-(10**12), 10**18))
def test_the_next_slot_is_the_first_strictly_after_an_instant(
    clock: MinuteClock, phase: int, offset: int
) -> None:
    after = clock.origin_ns + offset
    due = find_next_slot_ns(clock, phase, after)
    assert after < due <= after + INTERVAL_NS
    assert (due - clock.origin_ns - phase) % INTERVAL_NS == 0


@given(CLOCKS, PHASES, st.integers(0, 10**9))
def test_the_next_slot_after_a_slot_is_one_interval_later(clock: MinuteClock, phase: int, slot: int) -> None:
    at = clock.origin_ns + phase + slot * INTERVAL_NS
    assert find_next_slot_ns(clock, phase, at) == at + INTERVAL_NS
    assert find_next_slot_ns(clock, phase, at - 1) == at


@given(st.integers(1, 60), st.sampled_from(Leg))
def test_the_brokers_of_a_leg_are_spread_evenly_over_the_interval(brokers: int, leg: Leg) -> None:
    phases = sorted(compute_phase_ns(position, brokers, leg) for position in range(brokers))
    assert all(0 <= phase < INTERVAL_NS for phase in phases)
    gaps = [b - a for a, b in zip(phases, [*phases[1:], phases[0] + INTERVAL_NS], strict=True)]
    assert max(gaps) - min(gaps) <= 1


@given(st.integers(1, 100))
def test_every_broker_and_leg_has_a_slot_of_its_own(brokers: int) -> None:
    phases = {compute_phase_ns(position, brokers, leg) for position in range(brokers) for leg in Leg}
    assert len(phases) == 2 * brokers


@given(st.integers(0, 59), st.integers(60, 100))
def test_the_two_legs_of_a_broker_are_about_half_an_interval_apart(position: int, brokers: int) -> None:
    client, leader = (compute_phase_ns(position, brokers, leg) for leg in (Leg.CLIENT, Leg.LEADER))
    assert abs((leader - client) % INTERVAL_NS - INTERVAL_NS // 2) <= INTERVAL_NS // (2 * brokers) + 1


def test_a_cluster_without_brokers_has_a_valid_phase() -> None:
    assert 0 <= compute_phase_ns(0, 0, Leg.CLIENT) < INTERVAL_NS


def test_a_minute_is_identified_by_its_utc_start() -> None:
    clock = MinuteClock.from_wall_time(5_000_000_000_000, NOON.replace(second=17, microsecond=250_000))
    assert clock.origin_ns == 5_000_000_000_000 - 17_250_000_000
    assert clock.minute_start(0) == NOON
    assert clock.minute_start(61) == NOON + timedelta(minutes=61)
    assert clock.minute_start(0).utcoffset() == timedelta()


@pytest.mark.parametrize("hours", [-9.5, 0, 5.75, 14])
def test_the_time_zone_of_the_wall_clock_does_not_matter(hours: float) -> None:
    wall_time = NOON.astimezone(timezone(timedelta(hours=hours))).replace(second=30)
    assert MinuteClock.from_wall_time(10**12, wall_time) == MinuteClock.from_wall_time(
        10**12, wall_time.astimezone(UTC)
    )


@given(CLOCKS, st.integers(0, 100 * MINUTE_NS))
def test_an_uptime_lies_in_the_minute_of_its_index(clock: MinuteClock, offset: int) -> None:
    at = clock.origin_ns + offset
    index = clock.minute_index(at)
    assert compute_start_ns(clock, index) <= at < compute_start_ns(clock, index + 1)
    assert clock.minute_start(index) <= clock.wall_time(at) < clock.minute_start(index + 1)


@given(INSTANTS, st.datetimes(datetime(2000, 1, 1), datetime(2100, 1, 1), timezones=st.just(UTC)))  # noqa: DTZ001
def test_the_clock_returns_the_wall_time_that_it_was_made_from(
    monotonic_ns: int, wall_time: datetime
) -> None:
    assert MinuteClock.from_wall_time(monotonic_ns, wall_time).wall_time(monotonic_ns) == wall_time


def test_no_two_slots_coincide_in_a_cluster_of_three() -> None:
    phases = Counter(compute_phase_ns(position, 3, leg) for position in range(3) for leg in Leg)
    assert max(phases.values()) == 1


@given(
    CLOCKS,
    st.lists(
        st.tuples(st.integers(0, 5), st.sampled_from(Leg), PHASES),
        unique_by=lambda broker_leg: broker_leg[:2],
        min_size=1,
    ),
    st.lists(st.sampled_from([0, 1_000_000, INTERVAL_NS, 4 * TOO_LATE_NS, 50 * MINUTE_NS]), max_size=12),
)
def test_every_slot_is_popped_once_in_order_and_late_slots_are_skipped(
    clock: MinuteClock, legs: list[tuple[int, Leg, int]], pauses: list[int]
) -> None:
    now = clock.origin_ns
    schedule = ProbeSchedule(clock)
    for broker_id, leg, phase in legs:
        schedule.add_leg(broker_id, leg, phase, now)
    for pause in pauses:
        before, now = now, now + pause
        popped = []
        while (slot := schedule.pop_due_slot(now)) is not None:
            popped.append(slot)
        since = max(before + 1, now - TOO_LATE_NS)
        due = [
            ProbeSlot(at, broker_id, leg)
            for broker_id, leg, phase in legs
            for at in list_slots_between(clock, phase, since - 1, now)
        ]
        assert popped == sorted(due)
        assert schedule.next_due_ns is not None
        assert schedule.next_due_ns > now


def list_slots_between(clock: MinuteClock, phase: int, after: int, until: int) -> list[int]:
    slots = []
    while (due := find_next_slot_ns(clock, phase, after)) <= until:
        slots.append(due)
        after = due
    return slots


def test_without_brokers_no_slot_is_due() -> None:
    schedule = ProbeSchedule(MinuteClock(0, NOON))
    assert schedule.next_due_ns is None
    assert schedule.pop_due_slot(10**18) is None
