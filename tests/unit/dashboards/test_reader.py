"""Tables are read when their version changes; a missing table is empty, a broken one is an error."""

from dataclasses import fields
from datetime import timedelta
from pathlib import Path
from shutil import rmtree

import pyarrow as pa
import pytest
from deltalake import DeltaTable

from fleetgauge_core import tables
from fleetgauge_core.contract import HealthEvent, Leg
from fleetgauge_core.tables import Table
from fleetgauge_dashboards.links import (
    Span,
)
from fleetgauge_dashboards.reader import (
    ClusterWeek,
    FailedWeekCheck,
    FleetWeek,
    LakeReader,
    TableReader,
    UnreadableError,
    table,
)
from tests.browser.lake import ORDERS, PAYMENTS, SEARCH, put, write
from tests.unit.dashboards.frames import START, WEEK, minute


@pytest.mark.parametrize(
    ("row", "table"),
    [
        (ClusterWeek, tables.CLUSTER_WEEKS),
        (FleetWeek, tables.FLEET_WEEKS),
        (HealthEvent, tables.HEALTH_EVENTS),
        (FailedWeekCheck, tables.QUALITY),
    ],
)
def test_the_fields_of_a_row_are_columns_of_its_table(row: type, table: Table) -> None:
    assert {field.name for field in fields(row)} <= set(table.column_names)


def test_a_missing_lake_is_empty_and_is_not_created(tmp_path: Path) -> None:
    lake = LakeReader(str(tmp_path / "none"))
    assert lake.versions() == (None,) * 16
    assert (lake.weeks(), lake.clusters(), lake.cluster_weeks(WEEK), lake.weeks_of_cluster("a")) == (
        (),
        (),
        (),
        (),
    )
    assert (lake.fleet_weeks(), lake.health_events()) == ((), ())
    assert len(lake.recent_minutes()) == 0
    assert len(lake.broker_minutes("a", Leg.CLIENT, Span(START, minute(1)))) == 0
    assert not (tmp_path / "none").exists()


def test_the_highest_revision_is_read(tmp_path: Path) -> None:
    written = write(tmp_path, START + timedelta(days=3))
    lake, before = LakeReader(str(tmp_path)), written.week - timedelta(days=14)
    assert lake.weeks() == tuple(written.week - timedelta(days=7 * back) for back in range(6))
    assert lake.clusters() == (ORDERS, PAYMENTS, SEARCH)
    (revised,) = (row for row in lake.cluster_weeks(before) if row.cluster_id == ORDERS)
    assert (revised.revision, revised.latency_p99_us, revised.revision_reason) == (2, 50_500, "late records")
    assert len(lake.cluster_weeks(before)) == 3
    weeks_of_orders = lake.weeks_of_cluster(ORDERS)
    assert revised in weeks_of_orders
    assert sorted(row.week for row in weeks_of_orders) == sorted(lake.weeks())


def test_minutes_of_a_span_across_midnight_are_complete(tmp_path: Path) -> None:
    midnight = START.replace(hour=0) + timedelta(days=1)
    write(tmp_path, midnight + timedelta(minutes=30))
    span = Span(midnight - timedelta(minutes=10), midnight + timedelta(minutes=5))
    lake = LakeReader(str(tmp_path))
    assert len(lake.cluster_minutes(ORDERS, span)) == 15
    assert len(lake.broker_minutes(ORDERS, Leg.LEADER, span)) == 45


class StoppedClock:
    """A clock that moves only when the test sets it."""

    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


def _count_rows(reader: TableReader, versions_read: list[int]) -> int:
    def read(delta: DeltaTable) -> int:
        versions_read.append(delta.version())
        return len(reader.read_columns(delta, ("check_id",)))

    return reader.read_cached("q", read, 0)


def test_a_query_is_read_once_per_table_version(tmp_path: Path) -> None:
    clock, versions_read = StoppedClock(), list[int]()
    reader = TableReader(str(tmp_path), tables.QUALITY, monotonic=clock)
    put(tmp_path, tables.QUALITY, [{"check_id": "a"}])
    assert [_count_rows(reader, versions_read) for _ in range(3)] == [1, 1, 1]
    put(tmp_path, tables.QUALITY, [{"check_id": "b"}])
    assert _count_rows(reader, versions_read) == 1
    clock.now += 1
    assert _count_rows(reader, versions_read) == 2
    assert versions_read == [0, 1]


def test_a_recreated_table_is_read_again(tmp_path: Path) -> None:
    clock = StoppedClock()
    reader = TableReader(str(tmp_path), tables.QUALITY, monotonic=clock)
    put(tmp_path, tables.QUALITY, [{"check_id": "a"}])
    assert _count_rows(reader, []) == 1
    rmtree(tmp_path / "ops")
    for name in "abc":
        put(tmp_path, tables.QUALITY, [{"check_id": name}])
    clock.now += 1
    assert _count_rows(reader, []) == 3


def test_a_broken_table_raises_a_one_line_error_until_it_is_repaired(tmp_path: Path) -> None:
    put(tmp_path, tables.QUALITY, [{"check_id": "a"}])
    (commit,) = (tmp_path / "ops/quality/_delta_log").glob("*.json")
    good = commit.read_text()
    commit.write_text("{broken")
    reader = TableReader(str(tmp_path), tables.QUALITY)
    with pytest.raises(UnreadableError, match=r"^ops/quality: [^\n]+$"):
        reader.version()
    commit.write_text(good)
    assert reader.version() == 0


def test_a_column_missing_from_the_table_is_null(tmp_path: Path) -> None:
    old = Table(tables.QUALITY.path, ("check_id",), tables.QUALITY.columns[:2])
    put(tmp_path, old, [{"check_id": "a"}])
    reader = TableReader(str(tmp_path), tables.QUALITY)
    rows = reader.read_cached("q", lambda delta: reader.read_columns(delta, ("success", "check_id")), None)
    assert rows.to_pylist() == [{"success": None, "check_id": "a"}]


def test_only_failed_checks_of_weeks_are_read(tmp_path: Path) -> None:
    lake = LakeReader(str(tmp_path))
    assert lake.failed_week_checks() == ()
    check = {"suite": "gold", "expectation": "e", "at": START}
    put(
        tmp_path,
        tables.QUALITY,
        [
            check | {"check_id": "a", "success": False, "week": WEEK},
            check | {"check_id": "b", "success": True, "week": WEEK - timedelta(days=7)},
            check | {"check_id": "c", "success": False},
        ],
    )
    assert LakeReader(str(tmp_path)).failed_week_checks() == (FailedWeekCheck(WEEK, START, "e"),)


def test_a_table_without_a_week_column_holds_no_week_back(tmp_path: Path) -> None:
    old = Table(tables.QUALITY.path, ("check_id",), tables.QUALITY.columns[:-1])
    put(tmp_path, old, [{"check_id": "a", "success": False}])
    assert LakeReader(str(tmp_path)).failed_week_checks() == ()


def test_a_deleted_table_has_no_version_and_no_rows(tmp_path: Path) -> None:
    write(tmp_path, START + timedelta(days=3))
    now_s = [0.0]
    reader = TableReader(str(tmp_path), tables.CLUSTER_WEEKS, monotonic=lambda: now_s[0])
    assert reader.read_rows("all")
    rmtree(tmp_path / tables.CLUSTER_WEEKS.path)
    now_s[0] = 2
    assert (reader.version(), reader.read_rows("all")) == (None, [])


def test_a_lake_with_data_reports_its_missing_tables(tmp_path: Path) -> None:
    assert LakeReader(str(tmp_path)).missing_tables() == ()
    write(tmp_path, START + timedelta(days=3))
    assert LakeReader(str(tmp_path)).missing_tables() == ()
    rmtree(tmp_path / tables.HEALTH_EVENTS.path)
    lake = LakeReader(str(tmp_path))
    assert lake.missing_tables() == (tables.HEALTH_EVENTS.path,)
    with pytest.raises(UnreadableError, match="ops/health_events: the table does not exist"):
        lake.health_events()
    assert {status.path: status.error for status in lake.table_statuses()}[
        tables.HEALTH_EVENTS.path
    ] is not None


def test_the_cache_of_a_table_is_bounded_in_bytes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(table, "MAX_CACHED_BYTES", 100_000)
    write(tmp_path, START + timedelta(days=3))
    reader, queries_read = TableReader(str(tmp_path), tables.BROKER_MINUTES), list[int]()

    def run_query(number: int) -> None:
        def read(delta: DeltaTable) -> pa.Table:
            queries_read.append(number)
            return pa.table({"x": pa.array([number] * 5_000, pa.int64())})

        reader.read_cached(number, read, None)

    for number in (1, 2, 2, 3, 1):
        run_query(number)
    assert queries_read == [1, 2, 3, 1]
