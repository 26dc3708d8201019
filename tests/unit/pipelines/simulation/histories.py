"""Short histories for tests, and a simulated week as rows and as probe records."""

from collections.abc import Mapping
from dataclasses import asdict
from datetime import UTC, datetime
from typing import Any

import numpy as np

from fleetgauge_pipelines.simulation import SimulatedFleet, SimulatedWeek
from fleetgauge_pipelines.simulation.records import make_probe_minutes
from fleetgauge_pipelines.simulation.silver import Columns

MONDAY = datetime(2026, 3, 2, tzinfo=UTC)
WEEK = 7 * 24 * 60

Row = dict[str, Any]


def history(seed: int = 1, clusters: int = 3, minutes: int = 2 * WEEK, **more: Any) -> SimulatedFleet:
    return SimulatedFleet(seed, clusters, MONDAY, minutes, **more)


def rows(columns: Columns) -> list[Row]:
    """Return columns as rows: NULLs are None, and times have their zone."""
    length = next(len(values) for values in columns.values() if isinstance(values, np.ndarray))
    lists = {
        name: values.tolist() if isinstance(values, np.ndarray) else [values] * length
        for name, values in columns.items()
    }
    minutes = [minute.replace(tzinfo=UTC) for minute in lists["minute"]]
    return [
        {name: values[row] for name, values in lists.items()} | {"minute": minutes[row]}
        for row in range(length)
    ]


def records(week: SimulatedWeek, hours: range) -> list[Mapping[str, Any]]:
    return [asdict(record) for hour in hours for record in make_probe_minutes(week, hour)]
