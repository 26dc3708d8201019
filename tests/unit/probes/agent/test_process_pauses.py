from hypothesis import given
from hypothesis import strategies as st

from fleetgauge_probes.agent.process_pauses import Stalls

LEAST = 100


@given(
    st.lists(st.integers(0, 300), max_size=40),
    st.integers(0, 6_000),
    st.integers(0, 6_000),
    st.integers(0, 400),
)
def test_it_is_stalled_between_two_words_that_lie_too_far_apart(
    pauses: list[int], one: int, other: int, since_last: int
) -> None:
    stalls, now, stalled = Stalls(LEAST, 0), 0, set()
    for pause in pauses:
        if pause >= LEAST:
            stalled |= set(range(now, now + pause))
        now += pause
        stalls.awake(now)
    assert stalls.total_ns == len(stalled)
    if since_last >= LEAST:
        stalled |= set(range(now, now + since_last))
    start, end = sorted((min(one, now + since_last), min(other, now + since_last)))
    asked_late = end - now >= LEAST
    expected = {at for at in stalled if start <= at < end and (at < now or asked_late)}
    assert stalls.within_ns(start, end) == len(expected)


def test_a_stall_that_nobody_has_noticed_yet_is_one_already() -> None:
    stalls = Stalls(LEAST, 0)
    stalls.awake(20)
    assert stalls.within_ns(0, 119) == 0
    assert stalls.within_ns(0, 120) == 100


def test_a_stall_is_forgotten_once_nothing_can_have_lain_in_it() -> None:
    minute = 60_000_000_000
    stalls = Stalls(minute, 0)
    for at in (minute, 2 * minute - 1, 3 * minute - 2, 4 * minute - 3, 5 * minute - 4):
        stalls.awake(at)
    assert stalls.within_ns(0, 2 * minute) == minute
    stalls.awake(6 * minute)
    assert stalls.within_ns(0, 2 * minute) == 0
    assert stalls.within_ns(0, 6 * minute) == minute + 4
    assert stalls.total_ns == 2 * minute + 4
