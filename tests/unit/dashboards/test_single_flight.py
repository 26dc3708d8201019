"""What takes its time is made once, on its own, and given to whoever asks next."""

import threading
from collections.abc import Callable, Iterator

import pytest

from fleetgauge_dashboards.single_flight import FRESH_S, Patience, SlowError
from tests.waiting import wait_until


class Disk:
    """Answers when it is let."""

    def __init__(self) -> None:
        self.let = threading.Event()
        self.asked = 0

    def read(self) -> int:
        self.asked += 1
        if not self.let.wait(30):
            raise TimeoutError
        return self.asked


@pytest.fixture
def disk() -> Iterator[Disk]:
    made = Disk()
    yield made
    made.let.set()


def test_an_answer_in_time_is_an_answer() -> None:
    patience = Patience()
    assert patience.ask("a", lambda: 1) == 1
    assert patience.ask("a", lambda: 2) == 2


def test_what_is_raised_is_raised() -> None:
    patience = Patience()
    for error in (ValueError, TimeoutError):
        with pytest.raises(error):
            patience.ask("a", _raises(error))
    assert patience.ask("a", lambda: 1) == 1


def _raises(error: type[Exception]) -> Callable[[], int]:
    def make() -> int:
        raise error

    return make


def test_a_slow_answer_is_said_to_be_and_comes_with_a_later_question(disk: Disk) -> None:
    patience = Patience(patience_s=0.01)
    for _ in range(3):
        with pytest.raises(SlowError):
            patience.ask("a", disk.read)
    assert patience.ask("b", lambda: "another question") == "another question"
    disk.let.set()
    wait_until(lambda: not isinstance(_asked(patience, disk), SlowError), 10, "the disk", 0.01)
    assert disk.asked <= 2


def _asked(patience: Patience, disk: Disk) -> object:
    try:
        return patience.ask("a", disk.read)
    except SlowError as error:
        return error


def test_what_nobody_fetched_in_time_is_made_anew(disk: Disk) -> None:
    now_s = 0.0
    patience = Patience(0.01, lambda: now_s)
    with pytest.raises(SlowError):
        patience.ask("a", disk.read)
    disk.let.set()
    wait_until(lambda: all(one.done_s is not None for one in patience._asked.values()), 10, "the disk", 0.01)
    now_s = FRESH_S + 1
    assert patience.ask("a", lambda: "new") == "new"


def test_an_answer_that_nobody_fetches_is_forgotten(disk: Disk) -> None:
    now_s = [0.0]
    patience = Patience(patience_s=0.01, monotonic=lambda: now_s[0])
    with pytest.raises(SlowError):
        patience.ask("a", disk.read)
    disk.let.set()

    def is_forgotten() -> bool:
        now_s[0] += 2 * FRESH_S
        assert patience.ask("b", lambda: 1) == 1
        return patience.waiting == 0

    wait_until(is_forgotten, 10, "the answer to be forgotten")
