"""Brokers that all tests of mitigation share, and what a test does with them."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from fleetgauge_core.detection import HealthState
from fleetgauge_local.fleet import LocalFleet
from fleetgauge_local.layout import ClusterSpec
from tests.kafka.mitigation.testbed import MitigationTestbed, open_testbed


@pytest.fixture(scope="package")
def mitigated_fleet(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LocalFleet]:
    """A cluster for mitigation only: topics with one replica of other tests would refuse every action."""
    with LocalFleet(tmp_path_factory.mktemp("mitigated"), (ClusterSpec("mitigated"),)) as fleet:
        yield fleet


@pytest.fixture
def testbed(
    mitigated_fleet: LocalFleet, local_fleet: LocalFleet, tmp_path: Path
) -> Iterator[MitigationTestbed]:
    """Broker 2 leads a topic with three replicas, and has been DEGRADED for five minutes."""
    with open_testbed(mitigated_fleet, local_fleet, tmp_path) as testbed:
        testbed.publish_finding(2, HealthState.DEGRADED)
        testbed.create_topic((2, 3, 1), **{"min.insync.replicas": "2"})
        yield testbed
