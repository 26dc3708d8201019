"""A broker's quota holds the agent's probes back: they fail for that reason, and nobody else is accused."""

from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest
from kafka import KafkaAdminClient
from kafka.protocol.admin import AlterClientQuotasRequest

from fleetgauge_core.contract import PROBE_MINUTE
from fleetgauge_core.fleet import Telemetry
from fleetgauge_local.fleet import LocalFleet
from fleetgauge_local.layout import ClusterSpec
from tests.exposition import samples_of
from tests.kafka.agents import Agent, fleet_of, probed
from tests.waiting import wait_until
from tests.whole_topic import values_on

#: A client that is held back tries again on a new connection, so most of its probes come through late;
#: one that does not is known when its minute closes.
PATIENCE_S = 180
PRODUCERS = ("fleetgauge-probe-acks-all", "fleetgauge-probe-acks-1")


@pytest.fixture(scope="module")
def local(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LocalFleet]:
    clusters = (ClusterSpec("held", brokers=1), ClusterSpec("telemetry", brokers=1))
    with LocalFleet(tmp_path_factory.mktemp("fleet"), clusters) as fleet:
        yield fleet


def give_quota(bootstrap: str, client_id: str, bytes_a_second: float) -> None:
    """As kafka-configs.sh --entity-type clients does; kafka-python has the request and no call for it."""
    entry = AlterClientQuotasRequest.EntryData
    request = AlterClientQuotasRequest(
        entries=[
            entry(
                entity=[entry.EntityData(entity_type="client-id", entity_name=client_id)],
                ops=[entry.OpData(key="producer_byte_rate", value=bytes_a_second, remove=False)],
            )
        ],
        validate_only=False,
    )
    admin = KafkaAdminClient(bootstrap_servers=bootstrap)
    try:
        response = admin._manager.run(admin._manager.send, request)
        assert [one.error_code for one in response.entries] == [0]
    finally:
        admin.close()


def failures_told(telemetry: Telemetry) -> Counter[str]:
    failures: Counter[str] = Counter()
    for value in values_on(telemetry.access, telemetry.topics.probe_minutes.name):
        failures.update(PROBE_MINUTE.decode(value)["produce_failures"])
    return failures


def test_what_a_quota_holds_back_is_told_from_what_a_broker_does(local: LocalFleet, tmp_path: Path) -> None:
    fleet, telemetry = fleet_of(local, ["held"])
    agent = Agent(fleet, telemetry, tmp_path / "spool")
    with agent.running():
        assert probed(telemetry, "held", (1,))
        for client_id in PRODUCERS:
            give_quota(local.bootstrap("held"), client_id, 1.0)

        wait_until(lambda: failures_told(telemetry)["THROTTLED"] > 0, PATIENCE_S, "a probe held back")
        throttled_s = samples_of(agent.vitals.registry, "fleetgauge_agent_throttled_seconds_total")
        assert throttled_s["1", "held"] > 0
    # Some come through, after their time.
    failures = failures_told(telemetry)
    assert set(failures) <= {"THROTTLED", "ACK_LATE"}, failures
