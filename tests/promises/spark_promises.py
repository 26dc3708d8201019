"""Entries from modules that import Spark, compared by tests/unit/promises and not by `make check`."""

from collections.abc import Iterator

from fleetgauge_pipelines.jobs.simulate import SimulatedRowCounts
from fleetgauge_pipelines.transforms.fleet_weeks import METRICS
from fleetgauge_pipelines.transforms.recovery_weeks import FLEET, GROUP, MIRROR
from tests.promises.key_paths import paths_of_type


def collect() -> Iterator[str]:
    yield from (f"simulate: {path}" for path in paths_of_type(SimulatedRowCounts))
    yield from (f"gold/fleet_weeks: metric may be {metric}" for metric in METRICS)
    yield from (f"gold/recovery_weeks: scope may be {scope}" for scope in (MIRROR, GROUP, FLEET))
