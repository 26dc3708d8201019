from threading import Thread

import pytest

from fleetgauge_core.kafka import Leadership, LeadershipStatus, leader_election
from fleetgauge_core.runtime.uptime import uptime_ns

SECOND_NS = 1_000_000_000


@pytest.fixture
def clock_ns(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The uptime in ns, as the only element, for the test to set."""
    clock = [100 * SECOND_NS]
    monkeypatch.setattr(leader_election, "uptime_ns", lambda: clock[0])
    return clock


def test_a_proof_is_valid_for_less_than_a_session_from_the_start_of_its_attempt(clock_ns: list[int]) -> None:
    leadership = Leadership()
    leadership.record_attempt(99 * SECOND_NS, proved=True)
    assert leadership.confirm(timeout_s=0) is LeadershipStatus.HELD
    clock_ns[0] = 104 * SECOND_NS
    assert leadership.confirm(timeout_s=0) is LeadershipStatus.UNKNOWN


def test_a_lost_leadership_stays_lost() -> None:
    leadership = Leadership()
    leadership.mark_lost()
    leadership.record_attempt(uptime_ns(), proved=True)
    assert leadership.is_lost
    assert leadership.confirm() is LeadershipStatus.LOST


def test_a_coordinator_that_does_not_answer_does_not_end_the_leadership(clock_ns: list[int]) -> None:
    leadership = Leadership()
    leadership.record_attempt(clock_ns[0], proved=False)
    assert leadership.confirm() is LeadershipStatus.UNKNOWN
    assert not leadership.is_lost


def test_confirm_ignores_an_earlier_attempt_and_waits_for_the_next(clock_ns: list[int]) -> None:
    leadership = Leadership()
    leadership.record_attempt(90 * SECOND_NS, proved=False)
    statuses: list[LeadershipStatus] = []
    thread = Thread(target=lambda: statuses.append(leadership.confirm()))
    thread.start()
    leadership.record_attempt(clock_ns[0], proved=True)
    thread.join()
    assert statuses == [LeadershipStatus.HELD]
