from datetime import UTC, datetime, timedelta
from pathlib import Path

import pyarrow as pa
from deltalake import write_deltalake

from fleetgauge_core.tables import CHECKPOINTS, GROUP_MINUTES
from fleetgauge_local.lake_counts import ReadinessCounts, count_recovery_rows

NOON = datetime(2026, 3, 2, 12, tzinfo=UTC)


def minute(group: str, number: int, ready: bool, passive: str = "south-all") -> dict[str, object]:
    return {
        "active": "north-all",
        "passive": passive,
        "group_id": group,
        "minute": NOON + timedelta(minutes=number),
        "ready": ready,
    }


def test_a_lake_without_recovery_tables_has_zero_counts(tmp_path: Path) -> None:
    assert count_recovery_rows(tmp_path) == ReadinessCounts(groups=0, groups_ready=0, checkpoints=0)


def test_a_group_is_ready_if_its_newest_minute_is_ready(tmp_path: Path) -> None:
    minutes = [
        minute("billing", 2, ready=True),
        minute("billing", 1, ready=False),
        minute("ledger", 1, ready=True),
        minute("ledger", 2, ready=False),
        minute("ledger", 1, ready=True, passive="west-all"),
    ]
    write_deltalake(tmp_path / GROUP_MINUTES.path, pa.Table.from_pylist(minutes))
    write_deltalake(tmp_path / CHECKPOINTS.path, pa.table({"ordinal": [1, 2, 3]}))
    assert count_recovery_rows(tmp_path) == ReadinessCounts(groups=3, groups_ready=2, checkpoints=3)
