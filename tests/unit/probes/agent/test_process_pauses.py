from hypothesis import given
from hypothesis import strategies as st

from fleetgauge_probes.agent.process_pauses import ProcessPauses

MIN_PAUSE = 100


@given(
    st.lists(st.integers(0, 300), max_size=40),
    st.integers(0, 6_000),
    st.integers(0, 6_000),
    st.integers(0, 400),
)
def test_a_pause_is_a_gap_between_heartbeats_of_at_least_the_minimum(
    gaps: list[int], bound: int, other_bound: int, since_last: int
) -> None:
    pauses, now, paused = ProcessPauses(MIN_PAUSE, 0), 0, set()
    for gap in gaps:
        if gap >= MIN_PAUSE:
            paused |= set(range(now, now + gap))
        now += gap
        pauses.record_heartbeat(now)
    assert pauses.total_paused_ns == len(paused)
    if since_last >= MIN_PAUSE:
        paused |= set(range(now, now + since_last))
    start, end = sorted((min(bound, now + since_last), min(other_bound, now + since_last)))
    covers_open_pause = end - now >= MIN_PAUSE
    expected = {at for at in paused if start <= at < end and (at < now or covers_open_pause)}
    assert pauses.measure_paused_ns(start, end) == len(expected)


def test_a_pause_counts_before_the_heartbeat_that_ends_it() -> None:
    pauses = ProcessPauses(MIN_PAUSE, 0)
    pauses.record_heartbeat(20)
    assert pauses.measure_paused_ns(0, 119) == 0
    assert pauses.measure_paused_ns(0, 120) == 100


def test_pauses_are_forgotten_after_five_minutes() -> None:
    minute = 60_000_000_000
    pauses = ProcessPauses(minute, 0)
    for at in (minute, 2 * minute - 1, 3 * minute - 2, 4 * minute - 3, 5 * minute - 4):
        pauses.record_heartbeat(at)
    assert pauses.measure_paused_ns(0, 2 * minute) == minute
    pauses.record_heartbeat(6 * minute)
    assert pauses.measure_paused_ns(0, 2 * minute) == 0
    assert pauses.measure_paused_ns(0, 6 * minute) == minute + 4
    assert pauses.total_paused_ns == 2 * minute + 4
