import pytest
from prometheus_client import CollectorRegistry

from fleetgauge_core.contract import ProbePulse
from fleetgauge_core.detection import (
    FleetHealth,
    HealthState,
    fold_pulse,
    restore_fleet_health,
)
from fleetgauge_operations.notify.outbox import Settlement
from fleetgauge_operations.watch.metrics import WatchMetrics
from tests.exposition import samples_of
from tests.unit.core.detection.pulses import (
    at,
    broker,
    hung,
    pulse,
    unanswered,
)


class Told:
    """A watch's metrics and what a scraper reads of them."""

    def __init__(self) -> None:
        self._registry = CollectorRegistry()
        self.metrics = WatchMetrics(self._registry)
        self._state = FleetHealth()

    def hear(self, heard: ProbePulse) -> None:
        self.metrics.heard(heard)
        self._state, findings = fold_pulse(self._state, heard)
        for finding in findings:
            self.metrics.found(finding)

    def of(self, name: str) -> dict[tuple[str, ...], float]:
        return samples_of(self._registry, name)


@pytest.fixture
def told() -> Told:
    return Told()


def test_a_broker_is_named_while_it_is_down_and_zero_before_and_after(told: Told) -> None:
    told.hear(pulse(0, broker(1), broker(2)))
    well = {("1", "orders"): 0, ("2", "orders"): 0}
    assert told.of("fleetgauge_broker_named") == well
    told.hear(pulse(5, hung(5, 1), broker(2)))
    assert told.of("fleetgauge_broker_named") == well | {("1", "orders"): 1}
    told.hear(pulse(10, hung(10, 1), broker(2)))
    assert told.of("fleetgauge_broker_named") == well | {("1", "orders"): 1}
    told.hear(pulse(15, broker(1), broker(2)))
    assert told.of("fleetgauge_broker_named") == well


def test_a_doubted_broker_is_not_named(told: Told) -> None:
    told.hear(pulse(0, unanswered(1)))
    assert told.of("fleetgauge_broker_named") == {("1", "orders"): 0}


def test_what_is_open_is_counted_by_what_it_is_called(told: Told) -> None:
    def is_open() -> dict[str, float]:
        return {kind: count for (cluster, kind), count in told.of("fleetgauge_findings_open").items()}

    told.hear(pulse(0, broker(1), broker(2), broker(3)))
    assert is_open() == dict.fromkeys((one for one in HealthState if one.is_alert), 0)
    told.hear(pulse(5, hung(5, 1), hung(5, 2), broker(3)))
    assert is_open()["BROKER_DOWN"] == 2
    told.hear(pulse(10, broker(1), hung(10, 2), broker(3)))
    assert is_open()["BROKER_DOWN"] == 1
    told.hear(pulse(15, hung(5, 1), hung(15, 2), hung(5, 3)))
    assert (is_open()["BROKER_DOWN"], is_open()["CLUSTER_DOWN"]) == (1, 1)
    assert told.of("fleetgauge_broker_named")["2", "orders"] == 1


def test_what_an_earlier_watch_named_is_named_from_the_start_and_nobody_by_one_that_only_waits(
    told: Told,
) -> None:
    state, _ = fold_pulse(FleetHealth(), pulse(-5, broker(1), broker(2)))
    _, findings = fold_pulse(state, pulse(0, hung(9, 1), broker(2)))
    assert told.of("fleetgauge_watch_active") == {(): 0}
    with told.metrics.watching(restore_fleet_health(findings).open_findings()):
        assert told.of("fleetgauge_watch_active") == {(): 1}
        assert told.of("fleetgauge_broker_named") == {("1", "orders"): 1}
        told.metrics.heard(pulse(5, hung(14, 1), broker(2)))
        assert told.of("fleetgauge_broker_named") == {("1", "orders"): 1, ("2", "orders"): 0}
    assert told.of("fleetgauge_watch_active") == {(): 0}
    assert told.of("fleetgauge_broker_named") == {}
    assert told.of("fleetgauge_watch_pulse_timestamp_seconds") == {}


def test_the_last_pulse_of_every_cluster_and_vantage_has_its_time(told: Told) -> None:
    told.hear(pulse(0, vantage="zone-a"))
    told.hear(pulse(3, vantage="zone-b"))
    told.hear(pulse(5.5, vantage="zone-a"))
    told.hear(pulse(4, vantage="zone-a", cluster="payments"))
    assert told.of("fleetgauge_watch_pulse_timestamp_seconds") == {
        ("orders", "zone-a"): at(5.5).timestamp(),
        ("orders", "zone-b"): at(3).timestamp(),
        ("payments", "zone-a"): at(4).timestamp(),
    }


def test_a_notifier_that_was_told_nothing_yet_has_counts_of_zero(told: Told) -> None:
    told.metrics.notifier("hooks.example.com")
    name = "fleetgauge_notifications_total"
    assert told.of(name) == {("hooks.example.com", "sent"): 0, ("hooks.example.com", "failed"): 0}
    assert told.of("fleetgauge_notifications_waiting") == {("hooks.example.com",): 0}


def test_what_becomes_of_findings_is_counted_by_notifier(told: Told) -> None:
    counts = told.metrics.notifier("hooks.example.com")
    for _ in range(3):
        counts.waits(1)
    for settlement in (Settlement.DELIVERED, Settlement.REJECTED):
        counts.waits(-1)
        counts.settled(settlement)
    name = "fleetgauge_notifications_total"
    assert told.of(name) == {("hooks.example.com", "sent"): 1, ("hooks.example.com", "failed"): 1}
    assert told.of("fleetgauge_notifications_waiting") == {("hooks.example.com",): 1}
