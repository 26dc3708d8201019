from threading import Thread

import pytest

from fleetgauge_core.kafka import Standing, Term, leader_election
from fleetgauge_core.runtime.uptime import uptime_ns

S = 1_000_000_000


@pytest.fixture
def now_ns(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The uptime, as the only entry."""
    now = [100 * S]
    monkeypatch.setattr(leader_election, "uptime_ns", lambda: now[0])
    return now


def test_a_proof_is_good_for_less_than_a_session_from_when_it_was_asked_for(now_ns: list[int]) -> None:
    term = Term()
    term.asked(99 * S, proved=True)
    assert term.confirm(timeout_s=0) is Standing.HELD
    now_ns[0] = 104 * S
    assert term.confirm(timeout_s=0) is Standing.UNKNOWN


def test_what_is_lost_stays_lost() -> None:
    term = Term()
    term.lose()
    term.asked(uptime_ns(), proved=True)
    assert term.is_lost
    assert term.confirm() is Standing.LOST


def test_nobody_who_answers_is_no_loss(now_ns: list[int]) -> None:
    term = Term()
    term.asked(now_ns[0], proved=False)
    assert term.confirm() is Standing.UNKNOWN
    assert not term.is_lost


def test_an_attempt_from_before_says_nothing_and_the_next_is_waited_for(now_ns: list[int]) -> None:
    term = Term()
    term.asked(90 * S, proved=False)
    found: list[Standing] = []
    thread = Thread(target=lambda: found.append(term.confirm()))
    thread.start()
    term.asked(now_ns[0], proved=True)
    thread.join()
    assert found == [Standing.HELD]
