"""Brokers whose own counters show that their storage is stalled."""

import json
from dataclasses import replace

from fleetgauge_core.contract import BrokerPulse, ProbePulse
from tests.unit.core.detection.pulses import (
    at,
    broker,
    fold_pulses,
    hung,
    list_transitions,
    pulse,
)

EVERY_S = 5


def history(*brokers: BrokerPulse, start_s: float = 0) -> list[ProbePulse]:
    """Consecutive pulses that also list a healthy broker 2."""
    return [pulse(start_s + EVERY_S * number, broker_1, broker(2)) for number, broker_1 in enumerate(brokers)]


def unreachable(seconds: float) -> BrokerPulse:
    """A broker that no vantage has reached for so long, while it is still in sync."""
    return replace(hung(seconds), in_sync=True)


def without_progress(
    broker_pulse: BrokerPulse, seconds: float, waiting: int = 0, dirs: int = 0
) -> BrokerPulse:
    """A broker whose counters have not changed for so long."""
    return replace(
        broker_pulse, requests_waiting=waiting, stalled_ms=round(seconds * 1000), offline_dirs=dirs
    )


def with_frozen_disk(start_s: int, end_s: int) -> list[BrokerPulse]:
    """A broker whose disk froze at second 0."""
    return [without_progress(unreachable(at_s), at_s) for at_s in range(start_s, end_s, EVERY_S)]


def test_a_frozen_disk_is_storage_stalled_and_not_network_unavailable() -> None:
    _, findings = fold_pulses(history(broker(), *with_frozen_disk(5, 90)))
    assert list_transitions(findings) == [(1, "BROKER_DOWN"), (1, "STORAGE_STALLED")]
    assert findings[-1].event.at == at(20)
    assert json.loads(findings[-1].event.evidence)["vantages"]["zone-a"]["stalled_ms"] == 20_000


def test_a_frozen_disk_without_counters_looks_like_network_unavailable() -> None:
    _, findings = fold_pulses(history(broker(), *map(unreachable, range(5, 90, EVERY_S))))
    assert list_transitions(findings) == [(1, "BROKER_DOWN"), (1, "NETWORK_UNAVAILABLE")]


def test_counters_without_progress_mean_nothing_on_an_idle_broker() -> None:
    _, findings = fold_pulses(history(*(without_progress(broker(), 60) for _ in range(9))))
    assert findings == []


def test_waiting_requests_without_progress_are_storage_stalled_although_the_broker_answers() -> None:
    _, findings = fold_pulses(
        history(*(without_progress(broker(), at_s, waiting=40) for at_s in range(0, 40, EVERY_S)))
    )
    assert list_transitions(findings) == [(1, "STORAGE_STALLED")]


def test_an_offline_log_directory_is_storage_stalled_until_it_is_online() -> None:
    offline = without_progress(broker(), 0, dirs=1)
    _, findings = fold_pulses(history(broker(), broker(), *[offline] * 4, *[broker()] * 9))
    assert list_transitions(findings) == [(1, "STORAGE_STALLED"), (1, "HEALTHY")]
    assert [finding.event.at for finding in findings] == [at(10), at(30)]


def test_storage_stalled_remains_while_the_metrics_exporter_does_not_answer() -> None:
    state, _ = fold_pulses(history(broker(), *with_frozen_disk(5, 40)))
    state, findings = fold_pulses(history(*map(unreachable, range(40, 90, EVERY_S)), start_s=40), state)
    assert findings == []
    _, findings = fold_pulses(history(broker(), start_s=90), state)
    assert list_transitions(findings) == [(1, "HEALTHY")]
