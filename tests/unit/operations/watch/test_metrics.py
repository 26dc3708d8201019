"""The metrics of the watch, as a scrape returns them."""

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


class ScrapedMetrics:
    """The metrics of a watch, and the samples that a scrape returns."""

    def __init__(self) -> None:
        self._registry = CollectorRegistry()
        self.metrics = WatchMetrics(self._registry)
        self._state = FleetHealth()

    def receive(self, received: ProbePulse) -> None:
        self.metrics.record_pulse(received)
        self._state, findings = fold_pulse(self._state, received)
        for finding in findings:
            self.metrics.record_finding(finding)

    def samples(self, name: str) -> dict[tuple[str, ...], float]:
        return samples_of(self._registry, name)


@pytest.fixture
def scraped() -> ScrapedMetrics:
    return ScrapedMetrics()


def test_broker_named_is_1_while_a_broker_is_down_and_0_before_and_after(scraped: ScrapedMetrics) -> None:
    scraped.receive(pulse(0, broker(1), broker(2)))
    healthy = {("1", "orders"): 0, ("2", "orders"): 0}
    assert scraped.samples("fleetgauge_broker_named") == healthy
    scraped.receive(pulse(5, hung(5, 1), broker(2)))
    assert scraped.samples("fleetgauge_broker_named") == healthy | {("1", "orders"): 1}
    scraped.receive(pulse(10, hung(10, 1), broker(2)))
    assert scraped.samples("fleetgauge_broker_named") == healthy | {("1", "orders"): 1}
    scraped.receive(pulse(15, broker(1), broker(2)))
    assert scraped.samples("fleetgauge_broker_named") == healthy


def test_broker_named_is_0_for_a_suspect_broker(scraped: ScrapedMetrics) -> None:
    scraped.receive(pulse(0, unanswered(1)))
    assert scraped.samples("fleetgauge_broker_named") == {("1", "orders"): 0}


def test_open_findings_are_counted_by_their_present_kind(scraped: ScrapedMetrics) -> None:
    def open_by_kind() -> dict[str, float]:
        samples = scraped.samples("fleetgauge_findings_open")
        return {kind: count for (_, kind), count in samples.items()}

    scraped.receive(pulse(0, broker(1), broker(2), broker(3)))
    assert open_by_kind() == dict.fromkeys((state for state in HealthState if state.is_alert), 0)
    scraped.receive(pulse(5, hung(5, 1), hung(5, 2), broker(3)))
    assert open_by_kind()["BROKER_DOWN"] == 2
    scraped.receive(pulse(10, broker(1), hung(10, 2), broker(3)))
    assert open_by_kind()["BROKER_DOWN"] == 1
    scraped.receive(pulse(15, hung(5, 1), hung(15, 2), hung(5, 3)))
    assert (open_by_kind()["BROKER_DOWN"], open_by_kind()["CLUSTER_DOWN"]) == (1, 1)
    assert scraped.samples("fleetgauge_broker_named")["2", "orders"] == 1


def test_a_leader_exports_the_open_findings_of_earlier_watches_and_a_standby_exports_none(
    scraped: ScrapedMetrics,
) -> None:
    state, _ = fold_pulse(FleetHealth(), pulse(-5, broker(1), broker(2)))
    _, findings = fold_pulse(state, pulse(0, hung(9, 1), broker(2)))
    assert scraped.samples("fleetgauge_watch_active") == {(): 0}
    with scraped.metrics.activate(restore_fleet_health(findings).open_findings()):
        assert scraped.samples("fleetgauge_watch_active") == {(): 1}
        assert scraped.samples("fleetgauge_broker_named") == {("1", "orders"): 1}
        scraped.metrics.record_pulse(pulse(5, hung(14, 1), broker(2)))
        assert scraped.samples("fleetgauge_broker_named") == {("1", "orders"): 1, ("2", "orders"): 0}
    assert scraped.samples("fleetgauge_watch_active") == {(): 0}
    assert scraped.samples("fleetgauge_broker_named") == {}
    assert scraped.samples("fleetgauge_watch_pulse_timestamp_seconds") == {}


def test_the_latest_pulse_of_every_cluster_and_vantage_has_its_timestamp(scraped: ScrapedMetrics) -> None:
    scraped.receive(pulse(0, vantage="zone-a"))
    scraped.receive(pulse(3, vantage="zone-b"))
    scraped.receive(pulse(5.5, vantage="zone-a"))
    scraped.receive(pulse(4, vantage="zone-a", cluster="payments"))
    assert scraped.samples("fleetgauge_watch_pulse_timestamp_seconds") == {
        ("orders", "zone-a"): at(5.5).timestamp(),
        ("orders", "zone-b"): at(3).timestamp(),
        ("payments", "zone-a"): at(4).timestamp(),
    }


def test_a_notifier_without_notifications_has_counts_of_zero(scraped: ScrapedMetrics) -> None:
    scraped.metrics.create_notifier_metrics("hooks.example.com")
    name = "fleetgauge_notifications_total"
    assert scraped.samples(name) == {("hooks.example.com", "sent"): 0, ("hooks.example.com", "failed"): 0}
    assert scraped.samples("fleetgauge_notifications_waiting") == {("hooks.example.com",): 0}


def test_settlements_are_counted_by_notifier(scraped: ScrapedMetrics) -> None:
    notifier_metrics = scraped.metrics.create_notifier_metrics("hooks.example.com")
    for _ in range(3):
        notifier_metrics.add_waiting(1)
    for settlement in (Settlement.DELIVERED, Settlement.REJECTED):
        notifier_metrics.add_waiting(-1)
        notifier_metrics.record_settlement(settlement)
    name = "fleetgauge_notifications_total"
    assert scraped.samples(name) == {("hooks.example.com", "sent"): 1, ("hooks.example.com", "failed"): 1}
    assert scraped.samples("fleetgauge_notifications_waiting") == {("hooks.example.com",): 1}
