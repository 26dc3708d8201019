"""An agent whose fleet changes: clusters are added, get another bootstrap or their secret, are removed."""

from collections import defaultdict
from datetime import UTC, datetime
from pathlib import Path

from fleetgauge_core.contract import PROBE_MINUTE
from fleetgauge_core.fleet import Cluster
from fleetgauge_local.fleet import LocalFleet
from tests.exposition import samples_of
from tests.kafka.agents import STOP_TIMEOUT_S, Agent, build_fleet, has_successful_probes
from tests.topic_values import read_values
from tests.waiting import wait_until

BROKERS = (1, 2, 3)
FAULTY = "fleetgauge_part_faulty"


def list_measured_clusters(agent: Agent) -> set[str]:
    """Return the clusters in the agent's metrics."""
    return {cluster for (cluster,) in samples_of(agent.health.registry, "fleetgauge_brokers_expected")}


def test_clusters_are_added_changed_and_removed_while_the_others_are_measured(
    local_fleet: LocalFleet, tmp_path: Path
) -> None:
    both, telemetry = build_fleet(local_fleet, ["orders", "payments"])
    orders, payments = both.clusters
    sasl = {"mechanism": "PLAIN", "username": "u", "password": {"file": str(tmp_path / "password")}}
    closed = Cluster.model_validate(
        {"id": "closed", "bootstrap": orders.bootstrap, "security": {"sasl": sasl}}
    )
    agent = Agent(both, telemetry, tmp_path / "spool")

    def measure(*clusters: Cluster) -> datetime:
        agent.fleet = both.model_copy(update={"clusters": clusters})
        return datetime.now(UTC)

    measure(orders, closed)
    with agent.running():
        assert has_successful_probes(telemetry, "orders", BROKERS)
        assert list_measured_clusters(agent) == {"orders"}
        assert samples_of(agent.health.registry, FAULTY) == {("closed", "cluster", "credentials"): 1}
        (tmp_path / "password").write_text("word")
        # The broker has no listener with passwords, so that the cluster is tried, but not measured.
        wait_until(
            lambda: bool(samples_of(agent.health.registry, "fleetgauge_agent_cluster_unreachable")),
            STOP_TIMEOUT_S,
            "the cluster to be tried",
        )
        assert samples_of(agent.health.registry, FAULTY) == {}
        measure(orders, payments)
        assert has_successful_probes(telemetry, "payments", BROKERS)
        since = measure(orders.model_copy(update={"bootstrap": orders.bootstrap.split(",")[1]}), payments)
        assert has_successful_probes(telemetry, "orders", BROKERS, since)
        measure(payments)
        wait_until(
            lambda: list_measured_clusters(agent) == {"payments"},
            STOP_TIMEOUT_S,
            "orders to leave the metrics",
        )
    attempted: dict[tuple[str, int, str, datetime], int] = defaultdict(int)
    values = read_values(telemetry.access, telemetry.topics.probe_minutes.name)
    records = [PROBE_MINUTE.decode(value) for value in values]
    for record in records:
        key = record["cluster_id"], record["broker_id"], record["leg"], record["minute"]
        attempted[key] += record["attempted"]
    assert {key[:2] for key in attempted} == {
        (cluster, broker) for cluster in ("orders", "payments") for broker in BROKERS
    }
    assert all(count <= 100 for count in attempted.values())
    assert len({record["sequence"] for record in records}) == len(records)
    assert not any(record["produce_failures"] or record["consume_failures"] for record in records)
