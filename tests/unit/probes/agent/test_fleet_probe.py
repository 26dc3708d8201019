"""Which cluster probes run: all whose credentials can be read."""

from dataclasses import dataclass, field
from typing import Any, cast

import pytest

from fleetgauge_core.fleet import Cluster, ClusterAccess
from fleetgauge_core.kafka import CredentialsUnreadableError
from fleetgauge_probes.agent.cluster_probe import ClusterProbe
from fleetgauge_probes.agent.fleet_probe import FleetProbe


@dataclass
class MemoryProbe:
    """A cluster probe that starts only if its cluster's credentials can be read."""

    cluster: Cluster
    unreadable: set[str]
    attempts: list[str]

    @property
    def access(self) -> ClusterAccess:
        return self.cluster.access

    def start(self) -> None:
        self.attempts.append(self.cluster.id)
        if self.cluster.bootstrap in self.unreadable:
            raise CredentialsUnreadableError(f"{self.cluster.bootstrap}: no secret")

    def stop(self) -> Any:
        return None

    def has_outdated_credentials(self) -> bool:
        return False

    def configure(self, cluster: Cluster) -> None:
        self.cluster = cluster


@dataclass
class MemoryFleet:
    """A fleet probe of such probes, and its clock."""

    unreadable: set[str] = field(default_factory=set)
    attempts: list[str] = field(default_factory=list)
    now_s: float = 0.0

    def __post_init__(self) -> None:
        self.fleet_probe = FleetProbe(
            lambda cluster: cast("ClusterProbe", MemoryProbe(cluster, self.unreadable, self.attempts)),
            lambda: self.now_s,
        )

    def update(self, *clusters: Cluster) -> list[str]:
        self.fleet_probe.update_clusters(clusters)
        return list(self.fleet_probe.probes)


@pytest.fixture
def fleet() -> MemoryFleet:
    return MemoryFleet({"tls:1"})


ORDERS, TLS = (Cluster(id=name, bootstrap=f"{name}:1") for name in ("orders", "tls"))


def test_a_cluster_without_readable_credentials_delays_no_other_and_is_tried_again(
    fleet: MemoryFleet,
) -> None:
    for _ in range(5):
        assert fleet.update(ORDERS, TLS) == ["orders"]
        fleet.now_s += 0.25
    assert fleet.attempts == ["orders", "tls"]
    (message,) = fleet.fleet_probe.start_errors.values()
    assert message.startswith("tls:1: no secret; provide it: ")
    fleet.unreadable.clear()
    fleet.now_s += 2
    assert fleet.update(ORDERS, TLS) == ["orders", "tls"]
    assert fleet.fleet_probe.start_errors == {}


def test_another_access_is_tried_at_once_and_a_removed_cluster_has_no_error(fleet: MemoryFleet) -> None:
    fleet.update(ORDERS, TLS)
    assert fleet.update(ORDERS, TLS.model_copy(update={"bootstrap": "tls:2"})) == ["orders", "tls"]
    fleet.fleet_probe.stop()
    fleet = MemoryFleet({"tls:1"})
    fleet.update(ORDERS, TLS)
    fleet.update(ORDERS)
    assert fleet.fleet_probe.start_errors == {}
