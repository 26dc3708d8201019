"""Probes that a client quota throttles are not measured, so that no broker is blamed for them."""

from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest
from kafka import KafkaAdminClient
from kafka.protocol.admin import AlterClientQuotasRequest

from fleetgauge_core.contract import ProbeMinute
from fleetgauge_core.fleet import Telemetry
from fleetgauge_local.fleet import LocalFleet
from fleetgauge_local.layout import ClusterSpec
from tests.exposition import samples_of
from tests.kafka.agents import Agent, build_fleet, has_successful_probes
from tests.topic_values import read_values
from tests.waiting import wait_until

#: A throttled client retries on a new connection, so most of its probes succeed late; a probe that does not
#: is reported when its minute closes.
DEADLINE_S = 180
PRODUCERS = ("fleetgauge-probe-acks-all", "fleetgauge-probe-acks-1")


@pytest.fixture(scope="module")
def local(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LocalFleet]:
    clusters = (ClusterSpec("throttled", brokers=1), ClusterSpec("telemetry", brokers=1))
    with LocalFleet(tmp_path_factory.mktemp("fleet"), clusters) as fleet:
        yield fleet


def set_producer_quota(bootstrap: str, client_id: str, bytes_per_second: float) -> None:
    """Set producer_byte_rate of a client ID; kafka-python has the request, but no method for it."""
    entry = AlterClientQuotasRequest.EntryData
    request = AlterClientQuotasRequest(
        entries=[
            entry(
                entity=[entry.EntityData(entity_type="client-id", entity_name=client_id)],
                ops=[entry.OpData(key="producer_byte_rate", value=bytes_per_second, remove=False)],
            )
        ],
        validate_only=False,
    )
    admin = KafkaAdminClient(bootstrap_servers=bootstrap)
    try:
        response = admin._manager.run(admin._manager.send, request)
        assert [entry.error_code for entry in response.entries] == [0]
    finally:
        admin.close()


def read_minutes(telemetry: Telemetry) -> list[ProbeMinute]:
    return [
        ProbeMinute.decode(value)
        for value in read_values(telemetry.access, telemetry.topics.probe_minutes.name)
    ]


def count_failures(telemetry: Telemetry) -> Counter[str]:
    failures: Counter[str] = Counter()
    for record in read_minutes(telemetry):
        failures.update(record.produce_failures)
    return failures


def test_throttled_probes_are_distinguished_from_failures_of_a_broker(
    local: LocalFleet, tmp_path: Path
) -> None:
    fleet, telemetry = build_fleet(local, ["throttled"])
    agent = Agent(fleet, telemetry, tmp_path / "spool")
    with agent.running():
        assert has_successful_probes(telemetry, "throttled", (1,))
        for client_id in PRODUCERS:
            set_producer_quota(local.bootstrap("throttled"), client_id, 1.0)

        wait_until(lambda: count_failures(telemetry)["THROTTLED"] > 0, DEADLINE_S, "a throttled probe")
        throttled_s = samples_of(agent.health.registry, "fleetgauge_agent_throttled_seconds_total")
        assert throttled_s["1", "throttled"] > 0
    assert set(count_failures(telemetry)) == {"THROTTLED"}
    records = read_minutes(telemetry)
    assert [record.attempted - len(record.success_us) for record in records] == [0] * len(records)
    # What was not delayed is measured, also in a minute of which the quota delayed a part.
    slowest_us = max(us for record in records for us in record.success_us)
    assert slowest_us < 1_000_000
