"""Reconciliation of the probe topic of a cluster whose controllers do not answer."""

from contextlib import suppress

from fleetgauge_core.fleet import Cluster
from fleetgauge_core.kafka import KafkaUnavailableError
from fleetgauge_core.metadata import PartitionMetadata
from fleetgauge_probes.agent.reconciler import Reconciler
from fleetgauge_probes.agent.topic_plan import HomeBroker

SECOND_NS = 1_000_000_000
CLUSTER = Cluster(id="orders", bootstrap="kafka:9092")
BROKERS = (1, 2, 3)
HOMES = [HomeBroker(broker_id, f"z{broker_id}") for broker_id in BROKERS]
#: Every broker is the preferred leader of a partition, and broker 1 leads all of them.
PARTITIONS = {
    number: PartitionMetadata(1, replicas, frozenset(BROKERS))
    for number, replicas in enumerate(((1, 2, 3), (2, 3, 1), (3, 1, 2)))
}


class UnavailableController:
    """An admin client whose elections fail after 6 seconds."""

    def __init__(self) -> None:
        self.now_ns = 0
        self.elections = 0

    def read_uptime_ns(self) -> int:
        return self.now_ns

    def read_topic_settings(self, _: str) -> dict[str, str]:
        return {}

    def elect_preferred_leaders_of_topic(self, *_: object) -> None:
        self.elections += 1
        self.now_ns += 6 * SECOND_NS
        raise KafkaUnavailableError("no answer")


def test_an_election_that_ends_late_is_not_repeated_at_once() -> None:
    controller = UnavailableController()
    reconciler = Reconciler(controller, controller.read_uptime_ns)  # type: ignore[arg-type]
    attempts = []
    for _ in range(5):
        with suppress(KafkaUnavailableError):
            reconciler.reconcile(CLUSTER, HOMES, frozenset(BROKERS), PARTITIONS)
        attempts.append(controller.elections)
        controller.now_ns += SECOND_NS
    assert attempts == [1, 1, 1, 2, 2]
