"""What a lake holds, read without a JVM."""

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
    """Rows per table."""

    probe_minutes: int
    broker_minutes: int
    cluster_weeks: int
    fleet_weeks: int
    quarantined: int


@dataclass(frozen=True, slots=True)
class RecoveryCounts:
    """What is known of other regions; a group is ready if its newest minute says so."""

    groups: int
    groups_ready: int
    checkpoints: int


def counts(lake: Path) -> LakeCounts:
    """Rows of each table now; a table that is not there has none."""
    return LakeCounts(
        probe_minutes=_rows(lake, PROBE_MINUTES),
        broker_minutes=_rows(lake, BROKER_MINUTES),
        cluster_weeks=_rows(lake, CLUSTER_WEEKS),
        fleet_weeks=_rows(lake, FLEET_WEEKS),
        quarantined=_rows(lake, QUARANTINE),
    )


def recovery_counts(lake: Path) -> RecoveryCounts:
    """What `fleetgauge recover run` has kept until now."""
    newest = _newest_ready(_column_table(lake, GROUP_MINUTES, [*GROUP_MINUTES.key, "ready"]))
    return RecoveryCounts(len(newest), sum(newest.values()), _rows(lake, CHECKPOINTS))


def holds_minute(lake: Path, clusters: Iterable[str], minute: datetime) -> bool:
    """Whether every cluster's minutes reach that far and a batch that took them has ended.

    A batch writes its quality rows last, so newer ones than any record's mean that gold is done.
    """
    minutes = _column_table(lake, CLUSTER_MINUTES, ["cluster_id", "minute"])
    ingested = _column_table(lake, PROBE_MINUTES, ["ingested_at"])
    judged = _column_table(lake, QUALITY, ["at"])
    if minutes is None or ingested is None or judged is None or not (len(ingested) and len(judged)):
        return False
    reached = minutes.filter(pc.greater_equal(minutes["minute"], minute))["cluster_id"].to_pylist()
    done = pc.max(judged["at"]).as_py() >= pc.max(ingested["ingested_at"]).as_py()
    return set(clusters) <= set(reached) and done


def _newest_ready(minutes: Any) -> dict[tuple[str, str, str], bool]:
    """By active and passive cluster and group."""
    rows = [] if minutes is None else minutes.sort_by("minute").to_pylist()
    return {(row["active"], row["passive"], row["group_id"]): row["ready"] for row in rows}


def _rows(lake: Path, table: Table) -> int:
    found = _column_table(lake, table, [table.key[0]])
    return 0 if found is None else len(found)


def _column_table(lake: Path, table: Table, columns: list[str]) -> Any:
    try:
        return DeltaTable(str(lake / table.path)).to_pyarrow_table(columns=columns)
    except TableNotFoundError:
        return None
