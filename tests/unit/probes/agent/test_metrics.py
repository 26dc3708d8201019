from dataclasses import replace
from datetime import datetime, timedelta
from math import isnan

import pytest
from prometheus_client import CollectorRegistry

from fleetgauge_core.contract import BrokerPulse, Leg, ProbePulse
from fleetgauge_probes.agent.metrics import AgentMetrics
from fleetgauge_probes.agent.spool import SpoolState
from tests.exposition import samples_of
from tests.probe_minutes import CLIENT, MINUTE, NOON

LEADER = replace(CLIENT, leg=Leg.LEADER, received=0, e2e_us=(), produce_failures={"ACK_LATE": 1})
#: A minute without a success.
OUTAGE = replace(CLIENT, minute=NOON + MINUTE, acknowledged=0, received=0, ack_us=(), e2e_us=())


def build_pulse(*broker_ids: int, cluster: str = "orders", emitted_at: datetime = NOON) -> ProbePulse:
    brokers = tuple(BrokerPulse(broker_id, True, True, False, 100, 900, ()) for broker_id in broker_ids)
    return ProbePulse("host/zone-a", "run", "zone-a", cluster, 1, emitted_at, 15_000, brokers)


class ScrapedMetrics:
    """Agent metrics, and the samples that a scraper reads."""

    def __init__(self) -> None:
        self._registry = CollectorRegistry()
        self.metrics = AgentMetrics(self._registry, 1_000)

    def read(self, name: str) -> dict[tuple[str, ...], float]:
        return samples_of(self._registry, name)


@pytest.fixture
def scraped() -> ScrapedMetrics:
    return ScrapedMetrics()


def test_excluded_probes_and_process_pauses_are_counted(scraped: ScrapedMetrics) -> None:
    scraped.metrics.record_cluster_state("orders", 3, 0, None)
    scraped.metrics.record_cluster_state("orders", 2, 1, None)
    scraped.metrics.record_process_clock(500_000_000, timedelta(0))
    scraped.metrics.record_process_clock(2_000_000_000, timedelta(hours=-1))
    assert scraped.read("fleetgauge_agent_probes_left_out_total") == {("orders",): 5}
    assert scraped.read("fleetgauge_agent_topic_changes_pending") == {("orders",): 1}
    assert scraped.read("fleetgauge_agent_stalled_seconds_total") == {(): 2}
    assert scraped.read("fleetgauge_agent_clock_ahead_seconds") == {(): -3600}


def test_only_the_current_reason_of_an_unreachable_cluster_is_exposed(scraped: ScrapedMetrics) -> None:
    for reason in ("authentication", "certificate_expired", None, "refused"):
        scraped.metrics.record_cluster_state("orders", 0, 0, reason)
        expected = {("orders", reason): 1.0} if reason else {}
        assert scraped.read("fleetgauge_agent_cluster_unreachable") == expected


def test_cold_connections_are_counted_until_the_broker_is_unregistered(
    scraped: ScrapedMetrics,
) -> None:
    scraped.metrics.record_connections("orders", {(1, "answered"): 4, (2, "mute"): 3}, {1: NOON})
    scraped.metrics.record_connections("orders", {(2, "mute"): 1, (2, "certificate_expired"): 1}, {})
    assert scraped.read("fleetgauge_agent_answers_total") == {
        ("1", "orders", "answered"): 4,
        ("2", "orders", "mute"): 4,
        ("2", "orders", "certificate_expired"): 1,
    }
    expiry = "fleetgauge_agent_certificate_expiry_timestamp_seconds"
    assert scraped.read(expiry) == {("1", "orders"): NOON.timestamp()}
    scraped.metrics.record_pulse(build_pulse(2))
    assert scraped.read(expiry) == {}
    assert {broker for broker, *_ in scraped.read("fleetgauge_agent_answers_total")} == {"2"}


def test_a_removed_cluster_has_no_series(scraped: ScrapedMetrics) -> None:
    names = (
        "fleetgauge_probes_total",
        "fleetgauge_probe_latency_seconds",
        "fleetgauge_agent_schedule_lag_seconds",
        "fleetgauge_agent_pulse_timestamp_seconds",
        "fleetgauge_brokers_expected",
        "fleetgauge_agent_probes_left_out_total",
        "fleetgauge_agent_topic_changes_pending",
        "fleetgauge_agent_cluster_unreachable",
        "fleetgauge_agent_answers_total",
        "fleetgauge_agent_certificate_expiry_timestamp_seconds",
    )
    for cluster in ("orders", "payments"):
        scraped.metrics.record_minute(replace(CLIENT, cluster_id=cluster))
        scraped.metrics.record_pulse(build_pulse(2, cluster=cluster))
        scraped.metrics.record_cluster_state(cluster, 1, 1, "authentication")
        scraped.metrics.record_connections(cluster, {(2, "answered"): 1}, {2: NOON})
    scraped.metrics.remove_cluster("orders")
    for name in names:
        assert {labels for labels in scraped.read(name) if "orders" in labels} == set()
        assert scraped.read(name)


def test_a_client_success_ends_at_the_consumer_and_a_leader_success_at_the_acknowledgement(
    scraped: ScrapedMetrics,
) -> None:
    scraped.metrics.record_minute(CLIENT)
    scraped.metrics.record_minute(LEADER)
    assert scraped.read("fleetgauge_probes_total") == {
        ("2", "orders", "client", "succeeded"): 98,
        ("2", "orders", "client", "failed"): 2,
        ("2", "orders", "leader", "succeeded"): 99,
        ("2", "orders", "leader", "failed"): 1,
    }
    assert scraped.read("fleetgauge_probe_latency_seconds") == {
        ("2", "orders", "client", "0.5"): 0.098,
        ("2", "orders", "client", "0.99"): 0.196,
        ("2", "orders", "leader", "0.5"): 0.05,
        ("2", "orders", "leader", "0.99"): 0.099,
    }


def test_durations_of_a_cluster_add_up_over_its_brokers(scraped: ScrapedMetrics) -> None:
    for record in (CLIENT, replace(CLIENT, broker_id=3), LEADER, replace(LEADER, cluster_id="payments")):
        scraped.metrics.record_minute(record)
    assert scraped.read("fleetgauge_probe_duration_seconds_count") == {
        ("orders", "client"): 2 * 98,
        ("orders", "leader"): 99,
        ("payments", "leader"): 99,
    }
    buckets = scraped.read("fleetgauge_probe_duration_seconds_bucket")
    # 2, 4, .. 196 ms and 1, 2, .. 99 ms.
    assert (buckets["orders", "0.1", "client"], buckets["orders", "0.25", "client"]) == (2 * 50, 2 * 98)
    assert buckets["orders", "0.0025", "leader"] == 2
    sends = scraped.read("messaging_client_operation_duration_seconds_bucket")
    assert {labels[:1] + labels[2:] for labels in sends} == {("orders", "send", "kafka")}
    assert sends["orders", "0.05", "send", "kafka"] == 2 * 50
    scraped.metrics.remove_cluster("orders")
    assert set(scraped.read("fleetgauge_probe_duration_seconds_count")) == {("payments", "leader")}
    assert not scraped.read("messaging_client_operation_duration_seconds_count")


def test_probes_add_up_over_minutes_and_latency_is_that_of_the_last_minute(scraped: ScrapedMetrics) -> None:
    scraped.metrics.record_minute(CLIENT)
    scraped.metrics.record_minute(replace(CLIENT, minute=NOON + MINUTE, e2e_us=(7_000_000,)))
    probes = scraped.read("fleetgauge_probes_total")
    assert probes["2", "orders", "client", "succeeded"] == 99
    assert probes["2", "orders", "client", "failed"] == 101
    assert set(scraped.read("fleetgauge_probe_latency_seconds").values()) == {7}


def test_latency_is_absent_after_a_minute_without_a_success(scraped: ScrapedMetrics) -> None:
    scraped.metrics.record_minute(CLIENT)
    scraped.metrics.record_minute(OUTAGE)
    assert scraped.read("fleetgauge_probe_latency_seconds") == {}
    assert scraped.read("fleetgauge_probes_total")["2", "orders", "client", "failed"] == 102
    scraped.metrics.record_minute(replace(CLIENT, minute=NOON + 2 * MINUTE))
    assert len(scraped.read("fleetgauge_probe_latency_seconds")) == 2


def test_an_outage_removes_only_the_latency_of_its_broker_and_leg(scraped: ScrapedMetrics) -> None:
    for record in (CLIENT, LEADER, replace(CLIENT, broker_id=3), replace(CLIENT, cluster_id="payments")):
        scraped.metrics.record_minute(record)
    scraped.metrics.record_minute(OUTAGE)
    assert {labels[:3] for labels in scraped.read("fleetgauge_probe_latency_seconds")} == {
        ("2", "orders", "leader"),
        ("3", "orders", "client"),
        ("2", "payments", "client"),
    }


def test_the_schedule_lag_is_the_largest_of_a_cluster_in_its_last_minute(scraped: ScrapedMetrics) -> None:
    lags_us = [(NOON, 1_500), (NOON, 8_000), (NOON, 3_000), (NOON + MINUTE, 2_000), (NOON, 9_000)]
    lags_s = []
    for broker_id, (minute, lag_us) in enumerate(lags_us):
        scraped.metrics.record_minute(
            replace(CLIENT, broker_id=broker_id, minute=minute, schedule_lag_p95_us=lag_us)
        )
        lags_s.append(scraped.read("fleetgauge_agent_schedule_lag_seconds"))
    assert lags_s == [{("orders",): lag_s} for lag_s in (0.0015, 0.008, 0.008, 0.002, 0.002)]


def test_the_spool_and_the_outcomes_of_records_are_exposed(scraped: ScrapedMetrics) -> None:
    assert scraped.read("fleetgauge_agent_records_total") == {("delivered",): 0, ("dropped",): 0}
    scraped.metrics.count_records("delivered", 3)
    scraped.metrics.count_records("dropped", 2)
    scraped.metrics.count_records("delivered", 1)
    assert scraped.read("fleetgauge_agent_records_total") == {("delivered",): 4, ("dropped",): 2}
    scraped.metrics.record_spool_state(SpoolState(7, 5_000, NOON))
    assert scraped.read("fleetgauge_agent_spool_records") == {(): 7}
    assert scraped.read("fleetgauge_agent_spool_bytes") == {(): 5_000}
    assert scraped.read("fleetgauge_agent_spool_max_bytes") == {(): 1_000}
    assert scraped.read("fleetgauge_agent_spool_oldest_timestamp_seconds") == {(): NOON.timestamp()}
    scraped.metrics.record_spool_state(SpoolState(0, 0, None))
    assert isnan(scraped.read("fleetgauge_agent_spool_oldest_timestamp_seconds")[()])


def test_clusters_do_not_share_a_schedule_lag(scraped: ScrapedMetrics) -> None:
    scraped.metrics.record_minute(CLIENT)
    scraped.metrics.record_minute(replace(CLIENT, cluster_id="payments", schedule_lag_p95_us=500_000))
    assert scraped.read("fleetgauge_agent_schedule_lag_seconds") == {("orders",): 0.0015, ("payments",): 0.5}


def test_a_pulse_sets_its_time_and_the_number_of_registered_brokers(scraped: ScrapedMetrics) -> None:
    scraped.metrics.record_pulse(build_pulse(1, 2))
    scraped.metrics.record_pulse(build_pulse(1, 2, 3, emitted_at=NOON + timedelta(seconds=5.25)))
    scraped.metrics.record_pulse(build_pulse(1, cluster="payments"))
    noon_s = NOON.timestamp()
    assert scraped.read("fleetgauge_agent_pulse_timestamp_seconds") == {
        ("orders",): noon_s + 5.25,
        ("payments",): noon_s,
    }
    assert scraped.read("fleetgauge_brokers_expected") == {("orders",): 3, ("payments",): 1}


def test_deliveries_of_pulses_are_counted_by_outcome(scraped: ScrapedMetrics) -> None:
    assert scraped.read("fleetgauge_agent_pulses_total") == {("delivered",): 0, ("failed",): 0}
    scraped.metrics.record_pulse_deliveries(3, 1)
    scraped.metrics.record_pulse_deliveries(5, 1)
    assert scraped.read("fleetgauge_agent_pulses_total") == {("delivered",): 5, ("failed",): 1}


def test_the_number_of_brokers_is_absent_before_a_cluster_first_listed_them(scraped: ScrapedMetrics) -> None:
    scraped.metrics.record_pulse(build_pulse())
    assert scraped.read("fleetgauge_brokers_expected") == {}
    assert len(scraped.read("fleetgauge_agent_pulse_timestamp_seconds")) == 1


def test_an_unregistered_broker_keeps_its_counts_but_not_its_latency(scraped: ScrapedMetrics) -> None:
    for record in (CLIENT, LEADER, replace(CLIENT, broker_id=3), replace(CLIENT, cluster_id="payments")):
        scraped.metrics.record_minute(record)
    scraped.metrics.record_pulse(build_pulse(1, 3))
    assert {labels[:2] for labels in scraped.read("fleetgauge_probe_latency_seconds")} == {
        ("3", "orders"),
        ("2", "payments"),
    }
    assert scraped.read("fleetgauge_probes_total")["2", "orders", "leader", "succeeded"] == 99
