import pytest

from fleetgauge_core.kafka import KafkaUnavailableError
from fleetgauge_probes.agent.demotions import Demotions

SECOND_NS = 1_000_000_000
NOBODY = frozenset[int]()
TWO = frozenset({2})


class Marks:
    """As somebody keeps them; counts how often they are read."""

    def __init__(self) -> None:
        self.now = NOBODY
        self.away = False
        self.read = 0

    def __call__(self) -> frozenset[int]:
        self.read += 1
        if self.away:
            raise KafkaUnavailableError("no answer")
        return self.now


@pytest.fixture
def marks() -> Marks:
    return Marks()


@pytest.fixture
def demotions(marks: Marks) -> Demotions:
    return Demotions("orders", marks)


def test_while_everybody_has_a_home_nothing_is_read(demotions: Demotions, marks: Marks) -> None:
    for second in range(100):
        demotions.look(NOBODY, second * SECOND_NS)
    assert marks.read == 0


def test_who_loses_its_home_is_asked_for_at_once(demotions: Demotions, marks: Marks) -> None:
    marks.now = TWO
    demotions.look(TWO, SECOND_NS)
    assert demotions.marked == TWO


def test_who_has_none_and_is_not_marked_is_asked_for_again_after_a_while(
    demotions: Demotions, marks: Marks
) -> None:
    for second in range(20):
        demotions.look(TWO, second * SECOND_NS)
    assert marks.read == 2
    demotions.look(frozenset({2, 3}), 20 * SECOND_NS - 1)
    assert marks.read == 3


def test_a_mark_that_is_taken_back_is_noticed_and_then_nothing_is_read_any_more(
    demotions: Demotions, marks: Marks
) -> None:
    marks.now = TWO
    demotions.look(TWO, 0)
    marks.now = NOBODY
    for second in range(1, 100):
        demotions.look(NOBODY, second * SECOND_NS)
    assert (demotions.marked, marks.read) == (NOBODY, 2)


def test_what_cannot_be_read_is_as_it_was(
    demotions: Demotions, marks: Marks, caplog: pytest.LogCaptureFixture
) -> None:
    marks.now = TWO
    demotions.look(TWO, 0)
    marks.away = True
    for second in range(10, 40, 10):
        demotions.look(NOBODY, second * SECOND_NS)
    assert demotions.marked == TWO
    assert [one.getMessage() for one in caplog.records] == ["orders: not known who is demoted: no answer"]
