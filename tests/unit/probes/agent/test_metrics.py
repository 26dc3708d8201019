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
#: Nothing succeeded in it.
OUTAGE = replace(CLIENT, minute=NOON + MINUTE, acknowledged=0, received=0, ack_us=(), e2e_us=())


def _pulse(*broker_ids: int, cluster: str = "orders", emitted_at: datetime = NOON) -> ProbePulse:
    brokers = tuple(BrokerPulse(one, True, True, False, 100, 900, ()) for one in broker_ids)
    return ProbePulse("host/zone-a", "run", "zone-a", cluster, 1, emitted_at, 15_000, brokers)


class Told:
    """Metrics and what a scraper reads of them."""

    def __init__(self) -> None:
        self._registry = CollectorRegistry()
        self.metrics = AgentMetrics(self._registry, 1_000)

    def of(self, name: str) -> dict[tuple[str, ...], float]:
        return samples_of(self._registry, name)


@pytest.fixture
def told() -> Told:
    return Told()


def test_what_told_of_the_agent_itself_is_counted_and_how_long_it_did_not_run(told: Told) -> None:
    told.metrics.cluster("orders", 3, 0, None)
    told.metrics.cluster("orders", 2, 1, None)
    told.metrics.clock(500_000_000, timedelta(0))
    told.metrics.clock(2_000_000_000, timedelta(hours=-1))
    assert told.of("fleetgauge_agent_probes_left_out_total") == {("orders",): 5}
    assert told.of("fleetgauge_agent_topic_changes_pending") == {("orders",): 1}
    assert told.of("fleetgauge_agent_stalled_seconds_total") == {(): 2}
    assert told.of("fleetgauge_agent_clock_ahead_seconds") == {(): -3600}


def test_only_what_stands_in_the_way_now_is_told(told: Told) -> None:
    for reason in ("authentication", "certificate_expired", None, "refused"):
        told.metrics.cluster("orders", 0, 0, reason)
        expected = {("orders", reason): 1.0} if reason else {}
        assert told.of("fleetgauge_agent_cluster_unreachable") == expected


def test_cold_questions_are_counted_by_what_they_met_until_the_broker_is_gone(told: Told) -> None:
    told.metrics.answers("orders", {(1, "answered"): 4, (2, "mute"): 3}, {1: NOON})
    told.metrics.answers("orders", {(2, "mute"): 1, (2, "certificate_expired"): 1}, {})
    assert told.of("fleetgauge_agent_answers_total") == {
        ("1", "orders", "answered"): 4,
        ("2", "orders", "mute"): 4,
        ("2", "orders", "certificate_expired"): 1,
    }
    expiry = "fleetgauge_agent_certificate_expiry_timestamp_seconds"
    assert told.of(expiry) == {("1", "orders"): NOON.timestamp()}
    told.metrics.pulse(_pulse(2))
    assert told.of(expiry) == {}
    assert {broker for broker, *_ in told.of("fleetgauge_agent_answers_total")} == {"2"}


def test_of_a_cluster_that_is_measured_no_more_nothing_is_told(told: Told) -> None:
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
        told.metrics.minute(replace(CLIENT, cluster_id=cluster))
        told.metrics.pulse(_pulse(2, cluster=cluster))
        told.metrics.cluster(cluster, 1, 1, "authentication")
        told.metrics.answers(cluster, {(2, "answered"): 1}, {2: NOON})
    told.metrics.forget("orders")
    for name in names:
        assert {labels for labels in told.of(name) if "orders" in labels} == set()
        assert told.of(name)


def test_a_clients_success_ends_at_the_consumer_a_leaders_at_the_acknowledgement(told: Told) -> None:
    told.metrics.minute(CLIENT)
    told.metrics.minute(LEADER)
    assert told.of("fleetgauge_probes_total") == {
        ("2", "orders", "client", "succeeded"): 98,
        ("2", "orders", "client", "failed"): 2,
        ("2", "orders", "leader", "succeeded"): 99,
        ("2", "orders", "leader", "failed"): 1,
    }
    assert told.of("fleetgauge_probe_latency_seconds") == {
        ("2", "orders", "client", "0.5"): 0.098,
        ("2", "orders", "client", "0.99"): 0.196,
        ("2", "orders", "leader", "0.5"): 0.05,
        ("2", "orders", "leader", "0.99"): 0.099,
    }


def test_durations_of_a_cluster_add_up_over_its_brokers(told: Told) -> None:
    for record in (CLIENT, replace(CLIENT, broker_id=3), LEADER, replace(LEADER, cluster_id="payments")):
        told.metrics.minute(record)
    assert told.of("fleetgauge_probe_duration_seconds_count") == {
        ("orders", "client"): 2 * 98,
        ("orders", "leader"): 99,
        ("payments", "leader"): 99,
    }
    buckets = told.of("fleetgauge_probe_duration_seconds_bucket")
    # 2, 4, .. 196 ms and 1, 2, .. 99 ms.
    assert (buckets["orders", "0.1", "client"], buckets["orders", "0.25", "client"]) == (2 * 50, 2 * 98)
    assert buckets["orders", "0.0025", "leader"] == 2
    sends = told.of("messaging_client_operation_duration_seconds_bucket")
    assert {labels[:1] + labels[2:] for labels in sends} == {("orders", "send", "kafka")}
    assert sends["orders", "0.05", "send", "kafka"] == 2 * 50
    told.metrics.forget("orders")
    assert set(told.of("fleetgauge_probe_duration_seconds_count")) == {("payments", "leader")}
    assert not told.of("messaging_client_operation_duration_seconds_count")


def test_probes_add_up_over_minutes_and_latency_is_the_last_ones(told: Told) -> None:
    told.metrics.minute(CLIENT)
    told.metrics.minute(replace(CLIENT, minute=NOON + MINUTE, e2e_us=(7_000_000,)))
    probes = told.of("fleetgauge_probes_total")
    assert probes["2", "orders", "client", "succeeded"] == 99
    assert probes["2", "orders", "client", "failed"] == 101
    assert set(told.of("fleetgauge_probe_latency_seconds").values()) == {7}


def test_a_minute_without_a_success_has_no_latency_until_one_has(told: Told) -> None:
    told.metrics.minute(CLIENT)
    told.metrics.minute(OUTAGE)
    assert told.of("fleetgauge_probe_latency_seconds") == {}
    assert told.of("fleetgauge_probes_total")["2", "orders", "client", "failed"] == 102
    told.metrics.minute(replace(CLIENT, minute=NOON + 2 * MINUTE))
    assert len(told.of("fleetgauge_probe_latency_seconds")) == 2


def test_an_outage_takes_away_nobody_elses_latency(told: Told) -> None:
    for record in (CLIENT, LEADER, replace(CLIENT, broker_id=3), replace(CLIENT, cluster_id="payments")):
        told.metrics.minute(record)
    told.metrics.minute(OUTAGE)
    assert {labels[:3] for labels in told.of("fleetgauge_probe_latency_seconds")} == {
        ("2", "orders", "leader"),
        ("3", "orders", "client"),
        ("2", "payments", "client"),
    }


def test_the_schedule_lag_is_the_largest_of_a_cluster_in_its_last_minute(told: Told) -> None:
    lags_us = [(NOON, 1_500), (NOON, 8_000), (NOON, 3_000), (NOON + MINUTE, 2_000), (NOON, 9_000)]
    seen = []
    for broker_id, (minute, lag_us) in enumerate(lags_us):
        told.metrics.minute(replace(CLIENT, broker_id=broker_id, minute=minute, schedule_lag_p95_us=lag_us))
        seen.append(told.of("fleetgauge_agent_schedule_lag_seconds"))
    assert seen == [{("orders",): lag_s} for lag_s in (0.0015, 0.008, 0.008, 0.002, 0.002)]


def test_what_waits_and_what_became_of_the_rest_is_told(told: Told) -> None:
    assert told.of("fleetgauge_agent_records_total") == {("delivered",): 0, ("dropped",): 0}
    told.metrics.records("delivered", 3)
    told.metrics.records("dropped", 2)
    told.metrics.records("delivered", 1)
    assert told.of("fleetgauge_agent_records_total") == {("delivered",): 4, ("dropped",): 2}
    told.metrics.spool(SpoolState(7, 5_000, NOON))
    assert told.of("fleetgauge_agent_spool_records") == {(): 7}
    assert told.of("fleetgauge_agent_spool_bytes") == {(): 5_000}
    assert told.of("fleetgauge_agent_spool_max_bytes") == {(): 1_000}
    assert told.of("fleetgauge_agent_spool_oldest_timestamp_seconds") == {(): NOON.timestamp()}
    told.metrics.spool(SpoolState(0, 0, None))
    assert isnan(told.of("fleetgauge_agent_spool_oldest_timestamp_seconds")[()])


def test_clusters_do_not_share_a_schedule_lag(told: Told) -> None:
    told.metrics.minute(CLIENT)
    told.metrics.minute(replace(CLIENT, cluster_id="payments", schedule_lag_p95_us=500_000))
    assert told.of("fleetgauge_agent_schedule_lag_seconds") == {("orders",): 0.0015, ("payments",): 0.5}


def test_a_pulse_says_when_it_was_made_and_how_many_brokers_are_registered(told: Told) -> None:
    told.metrics.pulse(_pulse(1, 2))
    told.metrics.pulse(_pulse(1, 2, 3, emitted_at=NOON + timedelta(seconds=5.25)))
    told.metrics.pulse(_pulse(1, cluster="payments"))
    noon_s = NOON.timestamp()
    assert told.of("fleetgauge_agent_pulse_timestamp_seconds") == {
        ("orders",): noon_s + 5.25,
        ("payments",): noon_s,
    }
    assert told.of("fleetgauge_brokers_expected") == {("orders",): 3, ("payments",): 1}


def test_before_a_cluster_first_answered_nobody_says_that_it_has_no_brokers(told: Told) -> None:
    told.metrics.pulse(_pulse())
    assert told.of("fleetgauge_brokers_expected") == {}
    assert len(told.of("fleetgauge_agent_pulse_timestamp_seconds")) == 1


def test_a_broker_that_is_registered_no_more_keeps_its_counts_but_no_latency(told: Told) -> None:
    for record in (CLIENT, LEADER, replace(CLIENT, broker_id=3), replace(CLIENT, cluster_id="payments")):
        told.metrics.minute(record)
    told.metrics.pulse(_pulse(1, 3))
    assert {labels[:2] for labels in told.of("fleetgauge_probe_latency_seconds")} == {
        ("3", "orders"),
        ("2", "payments"),
    }
    assert told.of("fleetgauge_probes_total")["2", "orders", "leader", "succeeded"] == 99
