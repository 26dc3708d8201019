"""A table is read when it moves, is nothing while it is not there, and an error when it is broken."""

from dataclasses import fields
from datetime import timedelta
from pathlib import Path
from shutil import rmtree

import pyarrow as pa
import pytest
from deltalake import DeltaTable

from fleetgauge_core import tables
from fleetgauge_core.tables import Table
from fleetgauge_dashboards.links import Leg, Span
from fleetgauge_dashboards.reader import (
    BrokenWeek,
    ClusterWeek,
    FleetWeek,
    HealthEvent,
    Lake,
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
        (BrokenWeek, tables.QUALITY),
    ],
)
def test_a_rows_fields_are_columns_of_its_table(row: type, table: Table) -> None:
    assert {field.name for field in fields(row)} <= set(table.names)


def test_a_lake_that_is_not_there_is_empty_and_is_not_made(tmp_path: Path) -> None:
    lake = Lake(str(tmp_path / "none"))
    assert lake.versions() == (None,) * 15
    assert (lake.weeks(), lake.clusters(), lake.cluster_weeks(WEEK), lake.weeks_of("a")) == ((), (), (), ())
    assert (lake.fleet_weeks(), lake.health_events()) == ((), ())
    assert len(lake.recent_minutes()) == 0
    assert len(lake.broker_minutes("a", Leg.CLIENT, Span(START, minute(1)))) == 0
    assert not (tmp_path / "none").exists()


def test_the_highest_revision_is_read(tmp_path: Path) -> None:
    known = write(tmp_path, START + timedelta(days=3))
    lake, before = Lake(str(tmp_path)), known.week - timedelta(days=14)
    assert lake.weeks() == tuple(known.week - timedelta(days=7 * back) for back in range(6))
    assert lake.clusters() == (ORDERS, PAYMENTS, SEARCH)
    (revised,) = (row for row in lake.cluster_weeks(before) if row.cluster_id == ORDERS)
    assert (revised.revision, revised.latency_p99_us, revised.revision_reason) == (2, 50_500, "late records")
    assert len(lake.cluster_weeks(before)) == 3
    own = lake.weeks_of(ORDERS)
    assert revised in own
    assert sorted(row.week for row in own) == sorted(lake.weeks())


def test_minutes_are_those_of_the_span_even_over_midnight(tmp_path: Path) -> None:
    midnight = START.replace(hour=0) + timedelta(days=1)
    write(tmp_path, midnight + timedelta(minutes=30))
    span = Span(midnight - timedelta(minutes=10), midnight + timedelta(minutes=5))
    lake = Lake(str(tmp_path))
    assert len(lake.cluster_minutes(ORDERS, span)) == 15
    assert len(lake.broker_minutes(ORDERS, Leg.LEADER, span)) == 45


class Stopped:
    """A clock that moves when it is told to."""

    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


def _counted(reader: TableReader, asked: list[int]) -> int:
    def ask(delta: DeltaTable) -> int:
        asked.append(delta.version())
        return len(reader.frame(delta, ("check_id",)))

    return reader.answer("q", ask, 0)


def test_a_question_is_asked_once_per_version(tmp_path: Path) -> None:
    clock, asked = Stopped(), list[int]()
    reader = TableReader(str(tmp_path), tables.QUALITY, monotonic=clock)
    put(tmp_path, tables.QUALITY, [{"check_id": "a"}])
    assert [_counted(reader, asked) for _ in range(3)] == [1, 1, 1]
    put(tmp_path, tables.QUALITY, [{"check_id": "b"}])
    assert _counted(reader, asked) == 1
    clock.now += 1
    assert _counted(reader, asked) == 2
    assert asked == [0, 1]


def test_a_table_made_anew_is_read_anew(tmp_path: Path) -> None:
    clock = Stopped()
    reader = TableReader(str(tmp_path), tables.QUALITY, monotonic=clock)
    put(tmp_path, tables.QUALITY, [{"check_id": "a"}])
    assert _counted(reader, []) == 1
    rmtree(tmp_path / "ops")
    for name in "abc":
        put(tmp_path, tables.QUALITY, [{"check_id": name}])
    clock.now += 1
    assert _counted(reader, []) == 3


def test_a_broken_table_is_an_error_in_one_line_and_heals(tmp_path: Path) -> None:
    put(tmp_path, tables.QUALITY, [{"check_id": "a"}])
    (commit,) = (tmp_path / "ops/quality/_delta_log").glob("*.json")
    good = commit.read_text()
    commit.write_text("{broken")
    reader = TableReader(str(tmp_path), tables.QUALITY)
    with pytest.raises(UnreadableError, match=r"^ops/quality: [^\n]+$"):
        reader.version()
    commit.write_text(good)
    assert reader.version() == 0


def test_a_column_that_the_table_does_not_have_yet_is_null(tmp_path: Path) -> None:
    old = Table(tables.QUALITY.path, ("check_id",), tables.QUALITY.columns[:2])
    put(tmp_path, old, [{"check_id": "a"}])
    reader = TableReader(str(tmp_path), tables.QUALITY)
    found = reader.answer("q", lambda delta: reader.frame(delta, ("success", "check_id")), None)
    assert found.to_pylist() == [{"success": None, "check_id": "a"}]


def test_weeks_that_break_an_expectation_now_are_read_and_no_others(tmp_path: Path) -> None:
    lake = Lake(str(tmp_path))
    assert lake.broken_weeks() == ()
    verdict = {"suite": "gold", "expectation": "e", "at": START}
    put(
        tmp_path,
        tables.QUALITY,
        [
            verdict | {"check_id": "a", "success": False, "week": WEEK},
            verdict | {"check_id": "b", "success": True, "week": WEEK - timedelta(days=7)},
            verdict | {"check_id": "c", "success": False},
        ],
    )
    assert Lake(str(tmp_path)).broken_weeks() == (BrokenWeek(WEEK, START, "e"),)


def test_a_lake_from_before_weeks_were_judged_holds_none_back(tmp_path: Path) -> None:
    old = Table(tables.QUALITY.path, ("check_id",), tables.QUALITY.columns[:-1])
    put(tmp_path, old, [{"check_id": "a", "success": False}])
    assert Lake(str(tmp_path)).broken_weeks() == ()


def test_a_table_that_is_deleted_is_none_any_more(tmp_path: Path) -> None:
    write(tmp_path, START + timedelta(days=3))
    now_s = [0.0]
    reader = TableReader(str(tmp_path), tables.CLUSTER_WEEKS, monotonic=lambda: now_s[0])
    assert reader.rows("all")
    rmtree(tmp_path / tables.CLUSTER_WEEKS.path)
    now_s[0] = 2
    assert (reader.version(), reader.rows("all")) == (None, [])


def test_a_lake_with_data_says_which_of_its_tables_is_lost(tmp_path: Path) -> None:
    assert Lake(str(tmp_path)).missing() == ()
    write(tmp_path, START + timedelta(days=3))
    assert Lake(str(tmp_path)).missing() == ()
    rmtree(tmp_path / tables.HEALTH_EVENTS.path)
    lake = Lake(str(tmp_path))
    assert lake.missing() == (tables.HEALTH_EVENTS.path,)
    with pytest.raises(UnreadableError, match="ops/health_events: there is no such table"):
        lake.health_events()
    assert {one.path: one.error for one in lake.readable()}[tables.HEALTH_EVENTS.path] is not None


def test_what_is_kept_of_a_table_is_bounded_in_bytes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(table, "KEPT_BYTES", 100_000)
    write(tmp_path, START + timedelta(days=3))
    reader, asked = TableReader(str(tmp_path), tables.BROKER_MINUTES), list[int]()

    def ask(number: int) -> None:
        def read(delta: DeltaTable) -> pa.Table:
            asked.append(number)
            return pa.table({"x": pa.array([number] * 5_000, pa.int64())})

        reader.answer(number, read, None)

    for number in (1, 2, 2, 3, 1):
        ask(number)
    assert asked == [1, 2, 3, 1]
