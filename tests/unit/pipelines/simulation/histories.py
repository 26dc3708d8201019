"""Short histories for tests, and a part of one as a running agent and the oracle would see it."""

from collections.abc import Mapping
from dataclasses import asdict
from datetime import UTC, datetime
from typing import Any

import numpy as np

from fleetgauge_pipelines.simulation import Part, SimulatedFleet
from fleetgauge_pipelines.simulation.records import probe_minutes
from fleetgauge_pipelines.simulation.silver import Columns

MONDAY = datetime(2026, 3, 2, tzinfo=UTC)
WEEK = 7 * 24 * 60

Row = dict[str, Any]


def history(seed: int = 1, clusters: int = 3, minutes: int = 2 * WEEK, **more: Any) -> SimulatedFleet:
    return SimulatedFleet(seed, clusters, MONDAY, minutes, **more)


def rows(columns: Columns) -> list[Row]:
    """Column by column to row by row: NULLs are None, times aware."""
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


def records(part: Part, hours: range) -> list[Mapping[str, Any]]:
    return [asdict(record) for hour in hours for record in probe_minutes(part, hour)]
