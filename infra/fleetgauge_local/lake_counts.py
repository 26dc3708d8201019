"""Count the rows of a lake's tables, read by delta-rs without a JVM."""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

import pyarrow.compute as pc
from deltalake import DeltaTable
from deltalake.exceptions import TableNotFoundError

from fleetgauge_core.tables import (
    BROKER_MINUTES,
    CHECKPOINTS,
    CLUSTER_MINUTES,
    CLUSTER_WEEKS,
    FLEET_WEEKS,
    GROUP_MINUTES,
    PROBE_MINUTES,
    QUALITY,
    QUARANTINE,
    Table,
)


@dataclass(frozen=True, slots=True)
class LakeCounts:
    """The number of rows per table."""

    probe_minutes: int
    broker_minutes: int
    cluster_weeks: int
    fleet_weeks: int
    quarantined: int


@dataclass(frozen=True, slots=True)
class ReadinessCounts:
    """Consumer groups that can fail over, those ready by their newest minute, and stored checkpoints."""

    groups: int
    groups_ready: int
    checkpoints: int


def count_rows(lake: Path) -> LakeCounts:
    """Return the current number of rows per table; 0 for a table that does not exist."""
    return LakeCounts(
        probe_minutes=_rows(lake, PROBE_MINUTES),
        broker_minutes=_rows(lake, BROKER_MINUTES),
        cluster_weeks=_rows(lake, CLUSTER_WEEKS),
        fleet_weeks=_rows(lake, FLEET_WEEKS),
        quarantined=_rows(lake, QUARANTINE),
    )


def count_recovery_rows(lake: Path) -> ReadinessCounts:
    """Return what `fleetgauge recover run` has stored until now."""
    newest = _newest_ready(_column_table(lake, GROUP_MINUTES, [*GROUP_MINUTES.key, "ready"]))
    return ReadinessCounts(len(newest), sum(newest.values()), _rows(lake, CHECKPOINTS))


def has_processed_minute(lake: Path, clusters: Iterable[str], minute: datetime) -> bool:
    """Return whether every cluster has rows for ``minute`` or later and the last batch has completed.

    A batch writes its quality rows last. So the gold tables are complete when the newest quality row is not
    older than the newest ingested record.
    """
    minutes = _column_table(lake, CLUSTER_MINUTES, ["cluster_id", "minute"])
    ingested = _column_table(lake, PROBE_MINUTES, ["ingested_at"])
    quality = _column_table(lake, QUALITY, ["at"])
    if minutes is None or ingested is None or quality is None or not (len(ingested) and len(quality)):
        return False
    cluster_ids = minutes.filter(pc.greater_equal(minutes["minute"], minute))["cluster_id"].to_pylist()
    complete = pc.max(quality["at"]).as_py() >= pc.max(ingested["ingested_at"]).as_py()
    return set(clusters) <= set(cluster_ids) and complete


def _newest_ready(minutes: Any) -> dict[tuple[str, str, str], bool]:
    """Return whether each group is ready in its newest minute, by active cluster, passive cluster, group."""
    rows = [] if minutes is None else minutes.sort_by("minute").to_pylist()
    return {(row["active"], row["passive"], row["group_id"]): row["ready"] for row in rows}


def _rows(lake: Path, table: Table) -> int:
    rows = _column_table(lake, table, [table.key[0]])
    return 0 if rows is None else len(rows)


def _column_table(lake: Path, table: Table, columns: list[str]) -> Any:
    try:
        return DeltaTable(str(lake / table.path)).to_pyarrow_table(columns=columns)
    except TableNotFoundError:
        return None
