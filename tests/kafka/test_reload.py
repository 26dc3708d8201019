"""An agent whose fleet changes while it runs: clusters come, are reached elsewhere, and go."""

from collections import defaultdict
from datetime import UTC, datetime
from pathlib import Path

from fleetgauge_core.contract import PROBE_MINUTE
from fleetgauge_core.fleet import Cluster
from fleetgauge_local.fleet import LocalFleet
from tests.exposition import samples_of
from tests.kafka.agents import STOPPED_S, Agent, fleet_of, probed
from tests.waiting import wait_until
from tests.whole_topic import values_on

BROKERS = (1, 2, 3)


def measured(agent: Agent) -> set[str]:
    """The clusters of which its metrics tell."""
    return {cluster for (cluster,) in samples_of(agent.vitals.registry, "fleetgauge_brokers_expected")}


def test_clusters_come_move_and_go_while_the_others_are_measured_on(
    local_fleet: LocalFleet, tmp_path: Path
) -> None:
    both, telemetry = fleet_of(local_fleet, ["orders", "payments"])
    orders, payments = both.clusters
    agent = Agent(both, telemetry, tmp_path / "spool")

    def measure(*clusters: Cluster) -> datetime:
        agent.fleet = both.model_copy(update={"clusters": clusters})
        return datetime.now(UTC)

    measure(orders)
    with agent.running():
        assert probed(telemetry, "orders", BROKERS)
        assert measured(agent) == {"orders"}
        measure(orders, payments)
        assert probed(telemetry, "payments", BROKERS)
        since = measure(orders.model_copy(update={"bootstrap": orders.bootstrap.split(",")[1]}), payments)
        assert probed(telemetry, "orders", BROKERS, since)
        measure(payments)
        wait_until(lambda: measured(agent) == {"payments"}, STOPPED_S, "orders to be forgotten")
    attempted: dict[tuple[str, int, str, datetime], int] = defaultdict(int)
    values = values_on(telemetry.access, telemetry.topics.probe_minutes.name)
    told = [PROBE_MINUTE.decode(value) for value in values]
    for one in told:
        attempted[one["cluster_id"], one["broker_id"], one["leg"], one["minute"]] += one["attempted"]
    assert {key[:2] for key in attempted} == {(one, b) for one in ("orders", "payments") for b in BROKERS}
    assert all(count <= 100 for count in attempted.values())
    assert len({one["sequence"] for one in told}) == len(told)
    assert not any(one["produce_failures"] or one["consume_failures"] for one in told)
