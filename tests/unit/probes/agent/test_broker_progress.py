from fleetgauge_probes.agent.broker_progress import Counters, Progress

SECOND_NS = 1_000_000_000
BUSY = Counters(waiting=0, completed=1000, copied=50_000, offline_dirs=0)


def stalled(*readings: Counters, every_s: float = 5) -> int | None:
    """In ms, after these, one after the other."""
    progress = Progress()
    for number, one in enumerate(readings):
        progress.note(2, round(number * every_s * SECOND_NS), one)
    return progress.stalled_ms(2, round(len(readings) * every_s * SECOND_NS))


def counters(waiting: int = 0, completed: int = 1000, copied: int = 50_000) -> Counters:
    return Counters(waiting, completed, copied, 0)


def test_while_anything_moves_it_does_not_stall() -> None:
    assert stalled(*(counters(waiting=9, completed=one) for one in range(5))) == 0
    assert stalled(*(counters(copied=one) for one in range(1, 6))) == 0


def test_who_does_nothing_stalls_since_it_last_did_something() -> None:
    assert stalled(counters(completed=1), *[BUSY] * 5) == 20_000
    assert stalled(*[BUSY] * 5, counters(completed=1001)) == 0


def test_who_has_nothing_to_copy_stalls_only_while_requests_wait() -> None:
    alone = counters(copied=0)
    assert stalled(*[alone] * 5) == 0
    assert stalled(*[counters(waiting=3, copied=0)] * 5) == 20_000


def test_of_who_was_silent_for_a_while_nothing_is_known() -> None:
    progress = Progress()
    assert (progress.counters(2, 0), progress.stalled_ms(2, 0)) == (None, None)
    progress.note(2, 0, BUSY)
    assert progress.counters(2, 15 * SECOND_NS - 1) == BUSY
    assert (progress.counters(2, 15 * SECOND_NS), progress.stalled_ms(2, 15 * SECOND_NS)) == (None, None)
