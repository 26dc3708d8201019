"""The brokers that the tests of this folder share, and which end with its last test."""

from collections.abc import Iterator

import pytest

from fleetgauge_local.fleet import LocalFleet
from fleetgauge_local.layout import ClusterSpec
from tests.kafka.strict import run_strict_fleet


@pytest.fixture(scope="package")
def local_fleet(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LocalFleet]:
    """Clusters orders and payments of three brokers and telemetry of one; tests must not inject faults."""
    with LocalFleet(tmp_path_factory.mktemp("fleet")) as fleet:
        yield fleet


@pytest.fixture
def breakable_fleet(local_fleet: LocalFleet) -> Iterator[LocalFleet]:
    """The same fleet for tests that inject faults; brokers are healed after the test."""
    yield local_fleet
    for cluster in local_fleet.status().clusters:
        for broker in cluster.brokers:
            if broker.state in ("hung", "dead") or broker.delay_ms or broker.blackhole:
                local_fleet.fault("heal", cluster.cluster, broker.broker)
    local_fleet.wait_ready()


@pytest.fixture(scope="module")
def strict(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LocalFleet]:
    """A cluster and a telemetry cluster on which clients have no permission."""
    clusters = (ClusterSpec("strict"), ClusterSpec("telemetry", brokers=1))
    with run_strict_fleet(tmp_path_factory.mktemp("strict"), clusters) as fleet:
        yield fleet
