"""Small tables: one commit a write, only differences, retried conflicts, files that readers can filter."""

from collections.abc import Mapping
from datetime import UTC, date, datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from deltalake import DeltaTable, write_deltalake
from hypothesis import given
from hypothesis import strategies as st

from fleetgauge_core.lake.table_store import StaleProgressError, TableStore, TableStoreError
from fleetgauge_core.tables import ACTIONS, BURN_CAUSES, CHECKPOINTS, CLUSTER_WEEKS, HEALTH_EVENTS

FIRST, SECOND = date(2026, 3, 2), date(2026, 3, 9)
NOON = datetime(2026, 3, 2, 12, tzinfo=UTC)


def week(cluster: str, first_day: date, bad: int = 0, **more: Any) -> dict[str, Any]:
    row = dict.fromkeys(CLUSTER_WEEKS.column_names)
    key = {"cluster_id": cluster, "week": first_day, "revision": 0}
    return row | key | {"bad_minutes": bad, "causes": {"roll": bad}, "computed_at": NOON} | more


@pytest.fixture
def weeks(tmp_path: Path) -> TableStore:
    store = TableStore(str(tmp_path), CLUSTER_WEEKS)
    store.create()
    return store


def sorted_rows(store: TableStore) -> list[dict[str, Any]]:
    return sorted(store.rows(), key=lambda row: (row["cluster_id"], row["week"]))


def test_rows_come_back_as_they_were_written(weeks: TableStore) -> None:
    row = week("it's", FIRST, 3)
    weeks.append([row])
    (stored,) = weeks.rows()
    assert stored == row
    assert weeks.rows(pc.field("week") == SECOND) == []
    assert weeks.rows(pc.field("cluster_id") == "it's", ("bad_minutes",)) == [{"bad_minutes": 3}]


def test_replacing_writes_only_what_differs(weeks: TableStore) -> None:
    wanted = [week("a", FIRST, 1), week("b", FIRST, 2), week("b", SECOND, 3)]
    assert weeks.replace(wanted, [], {"week": [FIRST, SECOND]}) == 3
    version = weeks.version
    later = [row | {"computed_at": NOON.replace(hour=13)} for row in wanted]
    assert weeks.replace(later, weeks.rows(), {"week": [FIRST, SECOND]}) == 0
    assert weeks.version == version
    changed = [later[0], later[1] | {"bad_minutes": 9}]
    stored = weeks.rows(pc.field("week") == FIRST)
    assert weeks.replace(changed, stored, {"week": [FIRST]}) == 1
    assert sorted_rows(weeks) == [wanted[0], changed[1], wanted[2]]
    assert weeks.replace([], weeks.rows(pc.field("week") == FIRST), {"week": [FIRST]}) == 2
    assert sorted_rows(weeks) == [wanted[2]]


_ROWS = st.dictionaries(
    st.tuples(st.sampled_from(["a", "b's", "ü"]), st.sampled_from([FIRST, SECOND])), st.integers(0, 2)
)


@given(st.lists(_ROWS, min_size=1, max_size=4))
def test_a_table_holds_what_was_last_wanted_of_each_week(
    tmp_path_factory: pytest.TempPathFactory, states: list[dict[tuple[str, date], int]]
) -> None:
    store = TableStore(str(tmp_path_factory.mktemp("lake")), BURN_CAUSES, create=True)
    store.create()
    expected: dict[tuple[str, date], Mapping[str, Any]] = {}
    for state in states:
        dates = {first_day for _, first_day in state}
        wanted = {
            key: {
                "week": key[1],
                "segment": "fleet",
                "segment_value": "",
                "cause": key[0],
                "bad_minutes": bad,
                "clusters": 1,
            }
            for key, bad in state.items()
        }
        stored = store.rows(pc.field("week").isin(list(dates))) if dates else []
        store.replace(wanted.values(), stored, {"week": dates})
        expected = {key: row for key, row in expected.items() if key[1] not in dates} | wanted
    assert {(row["cause"], row["week"]): row for row in store.rows()} == expected


def test_files_can_be_filtered_by_their_strings_after_every_kind_of_write(
    weeks: TableStore, tmp_path: Path
) -> None:
    weeks.append([week("a", FIRST), week("b", FIRST)])
    weeks.update(week("a", FIRST, 5))
    weeks.compact()
    dataset = DeltaTable(str(tmp_path / CLUSTER_WEEKS.path)).to_pyarrow_dataset()
    assert dataset.to_table(filter=pc.field("cluster_id") == "a")["bad_minutes"].to_pylist() == [5]


def test_vacuum_deletes_the_files_of_replaced_rows_once_their_retention_has_passed(
    weeks: TableStore, tmp_path: Path
) -> None:
    weeks.append([week("a", FIRST)])
    weeks.update(week("a", FIRST, 5))
    folder = tmp_path / CLUSTER_WEEKS.path
    weeks.vacuum()
    assert len([*folder.rglob("*.parquet")]) == 2
    DeltaTable(str(folder)).alter.set_table_properties(
        {"delta.deletedFileRetentionDuration": "interval 0 hours"}
    )
    weeks.vacuum()
    assert len([*folder.rglob("*.parquet")]) == 1
    assert [row["bad_minutes"] for row in weeks.rows()] == [5]


def test_files_of_a_merge_by_an_earlier_version_are_filtered_too(tmp_path: Path) -> None:
    store = TableStore(str(tmp_path), ACTIONS, create=True)
    store.append([{"action_id": "a", "kind": "roll"}, {"action_id": "b", "kind": "roll"}])
    delta = DeltaTable(str(tmp_path / ACTIONS.path))
    source = delta.to_pyarrow_table().slice(0, 1)
    delta.merge(source, "t.action_id = s.action_id", "s", "t").when_matched_update_all().execute()
    assert [row["action_id"] for row in store.rows(pc.field("action_id") == "a")] == ["a"]


def test_a_column_that_an_older_table_lacks_is_null_and_is_added_by_create(tmp_path: Path) -> None:
    older = pa.table({"event_id": ["e"], "cluster_id": ["orders"]})
    write_deltalake(str(tmp_path / HEALTH_EVENTS.path), older)
    store = TableStore(str(tmp_path), HEALTH_EVENTS)
    assert store.rows(columns=("event_id", "kind")) == [{"event_id": "e", "kind": None}]
    assert not store.create()
    names = {field.name for field in DeltaTable(str(tmp_path / HEALTH_EVENTS.path)).schema().fields}
    assert names == set(HEALTH_EVENTS.column_names)


def test_a_table_that_is_missing_is_an_error_unless_its_writer_creates_it(tmp_path: Path) -> None:
    with pytest.raises(TableStoreError, match="no such table"):
        TableStore(str(tmp_path), ACTIONS).rows()
    store = TableStore(str(tmp_path), ACTIONS, create=True)
    assert (store.rows(), store.exists, store.version) == ([], False, None)
    store.append([{"action_id": "a"}])
    assert (len(store.rows()), store.exists) == (1, True)


def test_what_is_no_table_of_ours_is_one_line(tmp_path: Path) -> None:
    write_deltalake(str(tmp_path / ACTIONS.path), pa.table({"a": [1]}))
    with pytest.raises(TableStoreError, match="action_id is missing") as error:
        TableStore(str(tmp_path), ACTIONS).rows()
    assert "\n" not in str(error.value)


class _Overtaken(TableStore):
    """Another writer commits between reading the table and writing it, so many times."""

    def __init__(self, lake: str, others: int) -> None:
        super().__init__(lake, CLUSTER_WEEKS)
        self._others = others
        self._rival = TableStore(lake, CLUSTER_WEEKS)

    def _open(self) -> DeltaTable | None:
        delta = super()._open()
        if self._others:
            self._others -= 1
            self._rival.update(week("a", FIRST, 100 + self._others))
        return delta


def test_a_write_that_is_overtaken_is_repeated_on_the_newest_version(
    weeks: TableStore, tmp_path: Path
) -> None:
    weeks.append([week("a", FIRST), week("b", FIRST)])
    _Overtaken(str(tmp_path), 3).update(week("a", FIRST, 7))
    assert [row["bad_minutes"] for row in sorted_rows(weeks)] == [7, 0]
    with pytest.raises(TableStoreError, match="cannot be written"):
        _Overtaken(str(tmp_path), 10).update(week("a", FIRST, 8))


def test_progress_is_committed_with_the_rows_and_a_batch_that_is_repeated_adds_nothing(
    tmp_path: Path,
) -> None:
    store = TableStore(str(tmp_path), CHECKPOINTS, create=True)
    store.append([{"ordinal": 0}, {"ordinal": 1}], {"syncs": 40, "rows": 2}, {"rows": 0})
    with pytest.raises(StaleProgressError):
        store.append([{"ordinal": 0}, {"ordinal": 1}], {"syncs": 40, "rows": 2}, {"rows": 0})
    store.append([{"ordinal": 2}], {"syncs": 50, "rows": 3}, {"rows": 2})
    assert sorted(row["ordinal"] for row in store.rows()) == [0, 1, 2]
    delta = DeltaTable(str(tmp_path / CHECKPOINTS.path))
    assert (delta.transaction_version("syncs"), delta.transaction_version("rows")) == (50, 3)
