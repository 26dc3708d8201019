from fleetgauge_operations.watch.notifier_context import LeadershipGate

SECOND_NS = 1_000_000_000


class Seat:
    """``asked``: how often."""

    def __init__(self) -> None:
        self.ours, self.asked, self.now_ns = True, 0, 0

    def ask(self) -> bool:
        self.asked += 1
        return self.ours

    def leave(self) -> LeadershipGate:
        return LeadershipGate(self.ask, lambda: self.now_ns)


def test_who_was_asked_a_moment_ago_is_not_asked_again_to_note_it() -> None:
    """Where nobody answers that takes seconds, and of many findings minutes."""
    seat = Seat()
    leave = seat.leave()
    assert leave.to_tell()
    seat.now_ns = 4 * SECOND_NS
    assert all(leave.to_note() for _ in range(200))
    assert seat.asked == 1


def test_who_stood_still_since_asks_again_and_notes_nothing_that_another_may_have_told() -> None:
    seat = Seat()
    leave = seat.leave()
    assert leave.to_tell()
    seat.now_ns, seat.ours = 60 * SECOND_NS, False
    assert not leave.to_note()
    assert not leave.to_note()
    assert not leave.to_tell()


def test_what_is_told_is_asked_for_each_time() -> None:
    seat = Seat()
    leave = seat.leave()
    assert leave.to_note()
    assert leave.to_tell()
    assert leave.to_tell()
    assert seat.asked == 3
