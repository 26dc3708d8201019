import logging
from datetime import UTC, datetime, timedelta

import pytest

from fleetgauge_core.contract.failure_codes import AgentFault
from fleetgauge_core.kafka import ConnectionFailure, ConnectionMeasurement, EndpointResponse
from fleetgauge_core.metadata import BrokerRegistration
from fleetgauge_probes.agent.cold_connections import AttemptTime, ColdConnectionTracker
from fleetgauge_probes.agent.process_pauses import ProcessPauses

SECOND_NS = 1_000_000_000
START, EXPIRY = datetime(2026, 1, 1, tzinfo=UTC), datetime(2026, 6, 1, tzinfo=UTC)
NOW = datetime(2026, 3, 2, 12, tzinfo=UTC)
AT = AttemptTime(SECOND_NS, NOW, NOW)
BROKER = BrokerRegistration(2, "kafka-2", 9093, "z1", fenced=False)


def measurement(at_s: float, certificate_expires_at: datetime | None = None) -> ConnectionMeasurement:
    return ConnectionMeasurement(
        int(at_s * SECOND_NS),
        None,
        100,
        None,
        900,
        EndpointResponse((4, 3), certificate_expires_at, certificate_expires_at and START),
    )


@pytest.fixture
def pauses() -> ProcessPauses:
    return ProcessPauses(SECOND_NS // 10, 0)


@pytest.fixture
def connections(pauses: ProcessPauses) -> ColdConnectionTracker:
    return ColdConnectionTracker("orders", pauses, has_certificate=True)


def test_a_response_is_valid_for_three_seconds(
    connections: ColdConnectionTracker, pauses: ProcessPauses
) -> None:
    assert not connections.is_responding(2, 0)
    for at_ns in range(0, 14 * SECOND_NS, SECOND_NS // 20):
        pauses.record_heartbeat(at_ns)
    connections.record(BROKER, measurement(10), AT)
    assert connections.is_responding(2, 10 * SECOND_NS)
    assert connections.is_responding(2, 13 * SECOND_NS - 1)
    assert not connections.is_responding(2, 13 * SECOND_NS)


def test_a_response_does_not_expire_during_a_process_pause(
    connections: ColdConnectionTracker, pauses: ProcessPauses
) -> None:
    pauses.record_heartbeat(10 * SECOND_NS)
    connections.record(BROKER, measurement(10), AT)
    pauses.record_heartbeat(20 * SECOND_NS)
    assert connections.is_responding(2, 20 * SECOND_NS)


def test_attempts_are_counted_by_outcome_and_drained_once(connections: ColdConnectionTracker) -> None:
    no_response, expired = ConnectionFailure.NO_RESPONSE, ConnectionFailure.CERTIFICATE_EXPIRED
    for result in (measurement(1), no_response, no_response, expired, measurement(5)):
        connections.record(BROKER, result, AT)
    assert connections.drain_outcomes() == {
        (2, "answered"): 2,
        (2, "mute"): 2,
        (2, "certificate_expired"): 1,
    }
    assert connections.drain_outcomes() == {}


def test_a_failure_is_kept_until_the_next_success(connections: ColdConnectionTracker) -> None:
    assert connections.latest_failure(2) is None
    connections.record(BROKER, ConnectionFailure.CONNECTION_REFUSED, AT)
    assert connections.latest_failure(2) is ConnectionFailure.CONNECTION_REFUSED
    connections.record(BROKER, measurement(1), AT)
    assert connections.latest_failure(2) is None


def test_only_changes_of_the_result_are_logged(
    connections: ColdConnectionTracker, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    no_response, refused = ConnectionFailure.NO_RESPONSE, ConnectionFailure.CONNECTION_REFUSED
    for result in (measurement(1), no_response, no_response, refused, measurement(5), measurement(6)):
        connections.record(BROKER, result, AT)
    assert [record.getMessage() for record in caplog.records] == [
        f"orders: broker 2 at kafka-2:9093: {no_response.description}",
        f"orders: broker 2 at kafka-2:9093: {refused.description}",
        "orders: broker 2 responds again",
    ]


def test_certificate_expiries_cover_requested_brokers_with_a_certificate(
    connections: ColdConnectionTracker,
) -> None:
    connections.record(BROKER, measurement(1, EXPIRY), AT)
    connections.record(BrokerRegistration(3, "kafka-3", 9092, None, fenced=False), measurement(1), AT)
    assert connections.certificate_expiries({2, 3}) == {2: EXPIRY}
    assert connections.certificate_expiries({3}) == {}


# Faults of the agent's own ---------------------------------------------------------

OTHER = BrokerRegistration(3, "kafka-3", 9093, "z1", fenced=False)
REJECTED = ConnectionFailure.CLIENT_CERTIFICATE_REJECTED


def test_a_host_without_resources_is_the_agents_fault(connections: ColdConnectionTracker) -> None:
    connections.record(BROKER, ConnectionFailure.OWN_RESOURCES, AT)
    assert connections.latest_fault(2) is AgentFault.HOST
    connections.record(BROKER, measurement(1), AT)
    assert connections.latest_fault(2) is None


def test_a_certificate_that_every_broker_rejects_is_the_agents_fault(
    connections: ColdConnectionTracker,
) -> None:
    for second in range(60):
        for broker in (BROKER, OTHER):
            connections.record(broker, REJECTED, AttemptTime(second * SECOND_NS, NOW, NOW))
            assert connections.latest_fault(broker.broker_id) is AgentFault.CREDENTIALS


@pytest.mark.parametrize(
    ("has_certificate", "failure"), [(False, REJECTED), (True, ConnectionFailure.TLS_REFUSED)]
)
def test_a_handshake_that_every_broker_refuses_is_the_clusters_fault(
    pauses: ProcessPauses, has_certificate: bool, failure: ConnectionFailure
) -> None:
    connections = ColdConnectionTracker("orders", pauses, has_certificate=has_certificate)
    for broker in (BROKER, OTHER):
        connections.record(broker, failure, AT)
        assert connections.latest_fault(broker.broker_id) is None


def test_a_certificate_that_one_broker_alone_rejects_is_the_brokers_fault(
    connections: ColdConnectionTracker,
) -> None:
    for second in range(10):
        connections.record(OTHER, measurement(second), AttemptTime(second * SECOND_NS, NOW, NOW))
        connections.record(BROKER, REJECTED, AttemptTime(second * SECOND_NS, NOW, NOW))
    assert connections.latest_fault(2) is None
    assert connections.latest_failure(2) is REJECTED


EXPIRED, EARLY = ConnectionFailure.CERTIFICATE_EXPIRED, ConnectionFailure.CERTIFICATE_NOT_YET_VALID


@pytest.mark.parametrize(
    ("failure", "step", "agent_time", "fault"),
    [
        (EXPIRED, timedelta(days=200), NOW, AgentFault.CLOCK),
        (EARLY, timedelta(days=-200), NOW, AgentFault.CLOCK),
        (EXPIRED, timedelta(seconds=5), EXPIRY - timedelta(seconds=1), None),
        (EXPIRED, timedelta(days=1), EXPIRY + timedelta(days=1), None),
        # The host's clock was corrected, and the broker has another certificate since.
        (EXPIRED, timedelta(minutes=2), NOW, None),
        (EARLY, timedelta(minutes=2), NOW, None),
        (ConnectionFailure.CERTIFICATE_UNTRUSTED, timedelta(minutes=2), NOW, None),
        (ConnectionFailure.CERTIFICATE_UNTRUSTED, timedelta(days=200), NOW, None),
    ],
)
def test_only_a_certificate_out_of_whose_validity_the_clock_stepped_is_the_agents_fault(
    connections: ColdConnectionTracker,
    failure: ConnectionFailure,
    step: timedelta,
    agent_time: datetime,
    fault: AgentFault | None,
) -> None:
    connections.record(BROKER, measurement(1, EXPIRY), AT)
    connections.record(BROKER, failure, AttemptTime(2 * SECOND_NS, agent_time, agent_time + step))
    assert connections.latest_fault(2) is fault


def test_a_step_of_the_clock_excuses_no_broker_whose_certificate_alone_is_rejected(
    connections: ColdConnectionTracker,
) -> None:
    host_time = NOW + timedelta(days=200)
    for second in range(10):
        at = AttemptTime(second * SECOND_NS, NOW, host_time)
        connections.record(OTHER, measurement(second), at)
        connections.record(BROKER, EXPIRED if second else measurement(second, EXPIRY), at)
    assert connections.latest_fault(2) is None
