import logging
from datetime import UTC, datetime

import pytest

from fleetgauge_core.kafka import Answer, Registration, Silence
from fleetgauge_probes.agent.cold_connections import Answers
from fleetgauge_probes.agent.process_pauses import Stalls

S = 1_000_000_000
END = datetime(2026, 6, 1, tzinfo=UTC)
BROKER = Registration(2, "kafka-2", 9093, "z1", fenced=False)


def answer(at_s: float, ends: datetime | None = None) -> Answer:
    return Answer(int(at_s * S), None, 100, None, 900, ends)


@pytest.fixture
def stalls() -> Stalls:
    return Stalls(S // 10, 0)


@pytest.fixture
def answers(stalls: Stalls) -> Answers:
    return Answers("orders", stalls)


def test_a_broker_answers_for_three_seconds(answers: Answers, stalls: Stalls) -> None:
    assert not answers.is_answering(2, 0)
    for at_ns in range(0, 14 * S, S // 20):
        stalls.awake(at_ns)
    answers.note(BROKER, answer(10))
    assert answers.is_answering(2, 10 * S)
    assert answers.is_answering(2, 13 * S - 1)
    assert not answers.is_answering(2, 13 * S)


def test_while_the_process_does_not_run_no_answer_grows_old(answers: Answers, stalls: Stalls) -> None:
    stalls.awake(10 * S)
    answers.note(BROKER, answer(10))
    stalls.awake(20 * S)
    assert answers.is_answering(2, 20 * S)


def test_every_question_is_counted_by_what_it_met_and_told_once(answers: Answers) -> None:
    for met in (answer(1), Silence.MUTE, Silence.MUTE, Silence.CERTIFICATE_EXPIRED, answer(5)):
        answers.note(BROKER, met)
    assert answers.take_outcomes() == {(2, "answered"): 2, (2, "mute"): 2, (2, "certificate_expired"): 1}
    assert answers.take_outcomes() == {}


def test_a_silence_is_known_until_the_next_answer(answers: Answers) -> None:
    assert answers.silence(2) is None
    answers.note(BROKER, Silence.REFUSED)
    assert answers.silence(2) is Silence.REFUSED
    answers.note(BROKER, answer(1))
    assert answers.silence(2) is None


def test_a_change_is_logged_and_nothing_else(answers: Answers, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    for met in (answer(1), Silence.MUTE, Silence.MUTE, Silence.REFUSED, answer(5), answer(6)):
        answers.note(BROKER, met)
    assert [record.getMessage() for record in caplog.records] == [
        "orders: broker 2 at kafka-2:9093: takes connections, but does not answer",
        "orders: broker 2 at kafka-2:9093: connection refused",
        "orders: broker 2 answers again",
    ]


def test_only_of_brokers_that_are_there_and_show_one_a_certificate_is_known(answers: Answers) -> None:
    answers.note(BROKER, answer(1, END))
    answers.note(Registration(3, "kafka-3", 9092, None, fenced=False), answer(1))
    assert answers.certificate_ends({2, 3}) == {2: END}
    assert answers.certificate_ends({3}) == {}
