"""A broker whose own counters say that its disk takes nothing."""

import json
from dataclasses import replace

from fleetgauge_core.contract import BrokerPulse, ProbePulse
from tests.unit.core.detection.pulses import (
    at,
    broker,
    changes,
    fold,
    hung,
    pulse,
)

EVERY_S = 5


def history(*sick: BrokerPulse, start_s: float = 0) -> list[ProbePulse]:
    """A pulse after the other, with a neighbour that is well."""
    return [pulse(start_s + EVERY_S * number, one, broker(2)) for number, one in enumerate(sick)]


def silent(seconds: float) -> BrokerPulse:
    """It hangs for so long, and its cluster goes on hearing it."""
    return replace(hung(seconds), in_sync=True)


def stands(one: BrokerPulse, seconds: float, waiting: int = 0, dirs: int = 0) -> BrokerPulse:
    """By its counters it has done nothing for so long."""
    return replace(one, requests_waiting=waiting, stalled_ms=round(seconds * 1000), offline_dirs=dirs)


def frozen(start_s: int, end_s: int) -> list[BrokerPulse]:
    """Of which the disk froze at second 0."""
    return [stands(silent(at_s), at_s) for at_s in range(start_s, end_s, EVERY_S)]


def test_a_disk_that_hangs_is_named_as_what_it_is_and_not_as_cut_off() -> None:
    _, findings = fold(history(broker(), *frozen(5, 90)))
    assert changes(findings) == [(1, "BROKER_DOWN"), (1, "STORAGE_STALLED")]
    assert findings[-1].event.at == at(20)
    assert json.loads(findings[-1].event.evidence)["vantages"]["zone-a"]["stalled_ms"] == 20_000


def test_without_counters_it_looks_cut_off() -> None:
    _, findings = fold(history(broker(), *map(silent, range(5, 90, EVERY_S))))
    assert changes(findings) == [(1, "BROKER_DOWN"), (1, "NETWORK_UNAVAILABLE")]


def test_counters_that_stand_still_say_nothing_of_who_has_no_work() -> None:
    _, findings = fold(history(*(stands(broker(), 60) for _ in range(9))))
    assert findings == []


def test_requests_that_wait_for_nothing_name_who_still_answers() -> None:
    _, findings = fold(history(*(stands(broker(), at_s, waiting=40) for at_s in range(0, 40, EVERY_S))))
    assert changes(findings) == [(1, "STORAGE_STALLED")]


def test_a_directory_that_is_given_up_is_named_until_it_is_back() -> None:
    lost = stands(broker(), 0, dirs=1)
    _, findings = fold(history(broker(), broker(), *[lost] * 4, *[broker()] * 9))
    assert changes(findings) == [(1, "STORAGE_STALLED"), (1, "HEALTHY")]
    assert [one.event.at for one in findings] == [at(10), at(30)]


def test_while_its_exporter_is_silent_it_stays_what_it_was_named_as() -> None:
    state, _ = fold(history(broker(), *frozen(5, 40)))
    state, findings = fold(history(*map(silent, range(40, 90, EVERY_S)), start_s=40), state)
    assert findings == []
    _, findings = fold(history(broker(), start_s=90), state)
    assert changes(findings) == [(1, "HEALTHY")]
