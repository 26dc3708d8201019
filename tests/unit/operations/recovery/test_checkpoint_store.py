"""Checkpoints are stored in a lake with one writer."""

from pathlib import Path

import pytest

from fleetgauge_core.lake.table_store import TableStoreError
from fleetgauge_operations.recovery.checkpoint_store import CheckpointStore, CheckpointStoreLostError
from fleetgauge_operations.recovery.offsets.checkpoint import (
    Checkpoint,
    CheckpointOrigin,
    PartitionRoute,
    TopicIds,
)
from fleetgauge_operations.recovery.offsets.mirror_state import CheckpointRecord, ReplicationState

NORTH = PartitionRoute("north", "north-all", "orders", 0)
IDS = TopicIds("s", "d")
AT_MS = 1_764_000_000_123


def build_record(
    src: int, dst: int, origin: CheckpointOrigin = CheckpointOrigin.SYNC, route: PartitionRoute = NORTH
) -> CheckpointRecord:
    return CheckpointRecord(route, IDS, 0, Checkpoint(src, dst, AT_MS, origin))


def test_checkpoints_are_read_in_the_order_in_which_they_were_stored(tmp_path: Path) -> None:
    store = CheckpointStore(str(tmp_path))
    first = [build_record(9, 9), build_record(3, 20), build_record(10, 25, CheckpointOrigin.IDLE_WATERMARK)]
    store.append(first, store.read().next_ordinal, {"north-all/syncs/1": 2})
    second = [build_record(4, 21, route=PartitionRoute("south", "north-all", "orders", 1))]
    store.append(second, store.read().next_ordinal, {"north-all/syncs/1": 3})
    assert list(store.read().records) == [*first, *second]
    assert store.read().next_ordinal == 4
    assert store.read_until("north-all/syncs/1") == 3
    store.compact()
    assert list(store.read().records) == [*first, *second]


def test_a_lake_without_the_table_has_no_checkpoints(tmp_path: Path) -> None:
    store = CheckpointStore(str(tmp_path / "none"))
    assert (list(store.read().records), store.read().next_ordinal, store.read_until("any")) == ([], 0, None)
    store.compact()
    assert not len(ReplicationState(store.read().records))


def test_the_second_of_two_writers_fails(tmp_path: Path) -> None:
    store, other = CheckpointStore(str(tmp_path)), CheckpointStore(str(tmp_path))
    store.append([build_record(1, 1)], 0, {"syncs": 1})
    with pytest.raises(CheckpointStoreLostError, match="another process has written it"):
        other.append([build_record(1, 1)], 0, {"syncs": 1})


def test_an_unreadable_table_is_reported_in_one_line(tmp_path: Path) -> None:
    log = tmp_path / "recovery" / "checkpoints" / "_delta_log"
    log.mkdir(parents=True)
    (log / f"{0:020}.json").write_text("{broken")
    with pytest.raises(TableStoreError, match=r"recovery/checkpoints: cannot be read: "):
        list(CheckpointStore(str(tmp_path)).read().records)
