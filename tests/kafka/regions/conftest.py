"""Two regions, their aggregates and the mirrors between them, which take a minute to start."""

from collections.abc import Iterator

import pytest

from fleetgauge_local.fleet import LocalFleet
from fleetgauge_local.layout import REGIONS


@pytest.fixture(scope="package")
def regions(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LocalFleet]:
    """A fleet that each module leaves healthy, with topics and groups of its own."""
    with LocalFleet(tmp_path_factory.mktemp("regions"), REGIONS.clusters, mirrors=REGIONS.mirrors) as fleet:
        yield fleet
