"""What the tests on real brokers share: one fleet for the whole run."""

from collections.abc import Iterator

import pytest

from fleetgauge_local.fleet import LocalFleet


@pytest.fixture(scope="session")
def local_fleet(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LocalFleet]:
    """Clusters orders and payments of three brokers and telemetry of one. Break nothing in it."""
    with LocalFleet(tmp_path_factory.mktemp("fleet")) as fleet:
        yield fleet


@pytest.fixture
def breakable_fleet(local_fleet: LocalFleet) -> Iterator[LocalFleet]:
    """The same fleet for a test that breaks brokers; they are healed when it ends."""
    yield local_fleet
    for cluster in local_fleet.status().clusters:
        for broker in cluster.brokers:
            if broker.state in ("hung", "dead") or broker.delay_ms or broker.blackhole:
                local_fleet.fault("heal", cluster.cluster, broker.broker)
    local_fleet.wait_ready()
