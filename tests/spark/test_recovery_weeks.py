"""Recovery weeks match worked examples and a plain Python implementation."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import UTC, date, datetime, timedelta
from math import ceil, inf
from pathlib import Path
from random import Random
from typing import Any
from zoneinfo import ZoneInfo

import pyarrow as pa
import pytest
from deltalake import write_deltalake
from pyspark.sql import SparkSession

from fleetgauge_core.contract import PROBE_MINUTE
from fleetgauge_core.fleet import Fleet
from fleetgauge_core.lake.table_store import TableStore
from fleetgauge_core.tables import (
    ALL_TABLES,
    GROUP_MINUTES,
    MIRROR_MINUTES,
    RECOVERY_WEEKS,
    Table,
)
from fleetgauge_core.tables.arrow_schema import arrow_schema
from fleetgauge_pipelines.io.lake import Lake
from fleetgauge_pipelines.jobs.batch import BatchResult, Pipeline
from fleetgauge_pipelines.jobs.recovery_weeks import RecoveryWeeksWriter
from tests.spark.broken import good_record
from tests.spark.lakes import delta, opened, raw_frame, rows, versions

MINUTE, HOUR, DAY, WEEK = (timedelta(**{unit: 1}) for unit in ("minutes", "hours", "days", "weeks"))
#: A Monday.
MONDAY = datetime(2026, 4, 6, tzinfo=UTC)
THIS_WEEK, NEXT_WEEK = MONDAY.date(), (MONDAY + WEEK).date()
NOON = MONDAY + 12 * HOUR
SOUTH, EAST = "north to south", "north to east"
BILLING = "south to east: billing"
RECOVERY: dict[str, Any] = {
    "mirrors": [{"source": "north", "destination": "south"}, {"source": "north", "destination": "east"}],
    "groups": [{"groups": ".*", "active": "south", "passive": "east"}],
    "objectives": {"rpo_s": 60, "readiness": 0.9},
}
Row = dict[str, Any]


def fleet(recovery: Mapping[str, Any] = RECOVERY, zone: str = "UTC") -> Fleet:
    clusters = [
        {"id": cluster_id, "bootstrap": f"{cluster_id}:9092"} for cluster_id in ("north", "south", "east")
    ]
    week = {"zone": zone, "start": "monday"}
    return Fleet.model_validate({"week": week, "clusters": clusters, "recovery": recovery})


def at(number: int, since: datetime = NOON) -> datetime:
    return since + number * MINUTE


def mirror_minute(minute: datetime, at_most_s: float | None = 1.0, to: str = "south", **more: Any) -> Row:
    row: Row = dict.fromkeys(MIRROR_MINUTES.column_names)
    row |= {"source": "north", "destination": to, "minute": minute, "day": minute.date()}
    return row | {"behind_s_at_most": at_most_s} | more


def group_minute(minute: datetime, ready: bool = True, group: str = "billing") -> Row:
    row: Row = dict.fromkeys(GROUP_MINUTES.column_names)
    row |= {"active": "south", "passive": "east", "group_id": group, "minute": minute}
    return row | {"ready": ready, "day": minute.date()}


def append_minutes(folder: Path, table: Table, added: Iterable[Row]) -> None:
    """Append minutes as `recover run` does, without a JVM."""
    frame = pa.Table.from_pylist(list(added), schema=arrow_schema(table))
    write_deltalake(str(folder / table.path), frame, mode="append")


def create_job(
    spark: SparkSession, folder: Path, of: Fleet, mirrors: Iterable[Row] = (), groups: Iterable[Row] = ()
) -> RecoveryWeeksWriter:
    """Return the job on a new lake with these minutes."""
    lake = Lake(spark, str(folder))
    for table in (MIRROR_MINUTES, GROUP_MINUTES, RECOVERY_WEEKS):
        lake.create(table)
    append_minutes(folder, MIRROR_MINUTES, mirrors)
    append_minutes(folder, GROUP_MINUTES, groups)
    return started(spark, folder, of)


def started(spark: SparkSession, folder: Path, of: Fleet) -> RecoveryWeeksWriter:
    job = RecoveryWeeksWriter(Lake(spark, str(folder)), of)
    job.open()
    return job


def weeks(folder: Path) -> dict[tuple[date, str, str], Row]:
    """Return the rows by week, metric and subject; the fleet's subject is empty."""
    return {(row["week"], row["metric"], row["subject"]): row for row in rows(folder, RECOVERY_WEEKS)}


def numbers(row: Row) -> tuple[Any, ...]:
    return row["minutes_measured"], row["minutes_expected"], row["coverage"]


# --- On paper ----------------------------------------------------------------


def test_a_mirrors_week_is_the_p99_of_its_minutes(spark: SparkSession, tmp_path: Path) -> None:
    mirrors = [
        mirror_minute(at(n), 100.0 - n, behind_at_most=10 * (n + 1), behind_s=n / 2 if n % 2 else None)
        for n in range(100)
    ]
    assert create_job(spark, tmp_path, fleet(), mirrors).compute_weeks(at(100) + 59 * MINUTE / 60) == 6

    south = {metric: row for (_, metric, subject), row in weeks(tmp_path).items() if subject == SOUTH}
    assert {metric: row["value"] for metric, row in south.items()} == {
        "rpo_s": 99.0,
        "rpo_s_estimate": 49.5,
        "rpo_records": 990.0,
    }
    assert {metric: (row["objective"], row["met"]) for metric, row in south.items()} == {
        "rpo_s": (60.0, False),
        "rpo_s_estimate": (None, None),
        "rpo_records": (None, None),
    }
    for row in south.values():
        assert (row["week"], row["scope"], row["closed"]) == (THIS_WEEK, "mirror", False)
        assert numbers(row) == (100, 100, 1.0)
        assert [row[name] for name in ("median", "p90", "p99", "subjects", "subjects_excluded")] == [None] * 5


def test_an_unknown_minute_counts_as_infinitely_late(spark: SparkSession, tmp_path: Path) -> None:
    wanted = {0: (7.0, True), 1: (7.0, True), 2: (None, False), 100: (None, False)}
    mirrors = [
        mirror_minute(at(n), None if n < unknown else 7.0, f"without-{unknown}")
        for unknown in wanted
        for n in range(100)
    ]
    create_job(spark, tmp_path, fleet(), mirrors).compute_weeks(at(100))
    stored = weeks(tmp_path)
    for unknown, (value, met) in wanted.items():
        row, records, estimate = (
            stored[THIS_WEEK, metric, f"north to without-{unknown}"]
            for metric in ("rpo_s", "rpo_records", "rpo_s_estimate")
        )
        assert (row["value"], row["met"], numbers(row)) == (value, met, (100, 100, 1.0))
        assert (records["value"], estimate["value"]) == (None, None)


def test_a_groups_week_is_its_share_of_ready_minutes(spark: SparkSession, tmp_path: Path) -> None:
    wanted = {8: False, 9: True, 10: True}
    groups_ = [group_minute(at(n), n < ready, f"ready-{ready}") for ready in wanted for n in range(10)]
    create_job(spark, tmp_path, fleet(), groups=groups_).compute_weeks(at(12))
    stored = weeks(tmp_path)
    for ready, met in wanted.items():
        row = stored[THIS_WEEK, "readiness", f"south to east: ready-{ready}"]
        assert (row["scope"], row["value"], row["objective"], row["met"]) == ("group", ready / 10, 0.9, met)
        assert numbers(row) == (10, 12, 10 / 12)


def test_the_fleets_week_has_quantiles_over_subjects_with_enough_coverage(
    spark: SparkSession, tmp_path: Path
) -> None:
    mirrors = [mirror_minute(at(n), s, to) for to, s in (("south", 10.0), ("east", 20.0)) for n in range(10)]
    mirrors += [mirror_minute(at(n), None, "west", behind_s=3.0) for n in range(10)]
    mirrors += [mirror_minute(at(n), 1000.0, "moon") for n in (0, *range(2, 9))]
    groups = [
        group_minute(at(n), n < ready, group)
        for group, ready in (("a", 10), ("b", 9), ("c", 5))
        for n in range(10)
    ]
    create_job(spark, tmp_path, fleet(), mirrors, groups).compute_weeks(at(10))
    stored = weeks(tmp_path)
    assert numbers(stored[THIS_WEEK, "rpo_s", "north to moon"]) == (8, 10, 0.8)
    of_fleet = {metric: row for (_, metric, subject), row in stored.items() if not subject}
    names = ("median", "p90", "p99", "subjects", "subjects_excluded")
    assert {metric: tuple(row[name] for name in names) for metric, row in of_fleet.items()} == {
        "rpo_s": (20.0, None, None, 3, 1),
        "rpo_s_estimate": (3.0, 3.0, 3.0, 1, 3),
        "rpo_records": (None, None, None, 3, 1),
        "readiness": (0.9, 0.5, 0.5, 3, 0),
    }
    for row in of_fleet.values():
        assert (row["scope"], row["closed"]) == ("fleet", False)
        assert [row[name] for name in ("value", "objective", "met")] == [None] * 3
        assert numbers(row) == (None, None, None)


@pytest.mark.parametrize(
    ("starts", "ends", "minutes"),
    [
        (datetime(2026, 3, 22, 23, tzinfo=UTC), datetime(2026, 3, 29, 22, tzinfo=UTC), 10_020),
        (datetime(2026, 10, 18, 22, tzinfo=UTC), datetime(2026, 10, 25, 23, tzinfo=UTC), 10_140),
    ],
    ids=["an hour less", "an hour more"],
)
def test_a_week_with_a_clock_change_expects_fewer_or_more_minutes(
    spark: SparkSession, tmp_path: Path, starts: datetime, ends: datetime, minutes: int
) -> None:
    before, after = mirror_minute(starts - MINUTE, 9.0), mirror_minute(ends, 9.0)
    mirrors = [mirror_minute(at(n, starts)) for n in range(minutes)]
    create_job(spark, tmp_path, fleet(zone="Europe/Berlin"), [before, *mirrors, after]).compute_weeks(
        ends + MINUTE
    )
    named = (starts + DAY).date()
    of_mirror = {
        week: row for (week, metric, subject), row in weeks(tmp_path).items() if metric == "rpo_s" and subject
    }
    assert {week: (row["value"], numbers(row)) for week, row in of_mirror.items()} == {
        named - WEEK: (9.0, (1, 1, 1.0)),
        named: (1.0, (minutes, minutes, 1.0)),
        named + WEEK: (9.0, (1, 1, 1.0)),
    }


def test_a_week_without_minutes_has_null_levels_for_subjects_that_continue(
    spark: SparkSession, tmp_path: Path
) -> None:
    """A mirror is expected while the fleet file has it, a group only if it has later minutes."""
    mirrors = [mirror_minute(NOON), mirror_minute(NOON, to="moon")]
    groups = [group_minute(NOON), group_minute(NOON, group="gone"), group_minute(NOON + 2 * WEEK)]
    job = create_job(spark, tmp_path, fleet(), mirrors, groups)
    job.compute_weeks(NOON + 2 * WEEK + MINUTE)
    stored = weeks(tmp_path)
    silent = {(metric, subject) for week, metric, subject in stored if week == NEXT_WEEK and subject}
    assert silent == {
        *((metric, SOUTH) for metric in ("rpo_s", "rpo_s_estimate", "rpo_records")),
        ("readiness", BILLING),
    }
    for key in silent:
        row = stored[NEXT_WEEK, *key]
        assert (row["value"], row["met"], numbers(row)) == (None, None, (0, 10_080, 0.0))
    assert stored[NEXT_WEEK, "rpo_s", SOUTH]["objective"] == 60.0
    of_fleet = stored[NEXT_WEEK, "rpo_s", ""]
    assert (of_fleet["median"], of_fleet["subjects"], of_fleet["subjects_excluded"]) == (None, 0, 1)
    assert numbers(stored[THIS_WEEK, "rpo_s", SOUTH]) == (1, 6.5 * 1440, 1 / (6.5 * 1440))


# --- Closing -----------------------------------------------------------------


def test_a_week_is_computed_a_last_time_when_it_closes(spark: SparkSession, tmp_path: Path) -> None:
    last, closes = MONDAY + WEEK - MINUTE, MONDAY + WEEK + 2 * DAY
    job = create_job(spark, tmp_path, fleet(), [mirror_minute(last, 5.0)], [group_minute(last)])
    key = (THIS_WEEK, "rpo_s", SOUTH)

    def table() -> tuple[float, bool]:
        return weeks(tmp_path)[key]["value"], weeks(tmp_path)[key]["closed"]

    job.compute_weeks(MONDAY + WEEK)
    assert table() == (5.0, False)
    late = [mirror_minute(last - MINUTE, 50.0)]
    append_minutes(tmp_path, MIRROR_MINUTES, late)
    job.compute_weeks(closes - MINUTE)
    assert table() == (50.0, False)
    # Nothing is new but the time; of the week that is open a minute more is expected.
    assert job.compute_weeks(closes) > 0
    assert table() == (50.0, True)
    assert {row["closed"] for (week, *_), row in weeks(tmp_path).items() if week == THIS_WEEK} == {True}
    assert {row["closed"] for (week, *_), row in weeks(tmp_path).items() if week == NEXT_WEEK} == {False}

    closed = {at: row for at, row in weeks(tmp_path).items() if at[0] == THIS_WEEK}
    too_late = [mirror_minute(last - 2 * MINUTE, 500.0), mirror_minute(closes, 9.0)]
    append_minutes(tmp_path, MIRROR_MINUTES, too_late)
    for again in (job, started(spark, tmp_path, fleet())):
        again.compute_weeks(closes + HOUR)
        assert {at: row for at, row in weeks(tmp_path).items() if at[0] == THIS_WEEK} == closed
        row = weeks(tmp_path)[NEXT_WEEK, "rpo_s", SOUTH]
        assert (row["value"], numbers(row)) == (9.0, (1, 2 * 1440 + 60, 1 / (2 * 1440 + 60)))


def test_weeks_that_were_due_while_no_pipeline_ran_are_computed_as_closed(
    spark: SparkSession, tmp_path: Path
) -> None:
    mirrors = [mirror_minute(NOON + number * WEEK, 1.0 + number) for number in range(4)]
    create_job(spark, tmp_path, fleet(), mirrors).compute_weeks(NOON + 3 * WEEK + MINUTE)
    closed = {
        (week - THIS_WEEK) // WEEK: (row["value"], row["closed"])
        for (week, metric, subject), row in weeks(tmp_path).items()
        if (metric, subject) == ("rpo_s", SOUTH)
    }
    assert closed == {0: (1.0, True), 1: (2.0, True), 2: (3.0, False), 3: (4.0, False)}


def test_a_mirror_removed_from_the_fleet_is_no_longer_expected(spark: SparkSession, tmp_path: Path) -> None:
    mirrors = [mirror_minute(NOON), mirror_minute(NOON, to="east")]
    clock = NOON + 2 * WEEK
    create_job(spark, tmp_path, fleet(), mirrors).compute_weeks(clock)
    alone = fleet({"mirrors": RECOVERY["mirrors"][:1], "objectives": RECOVERY["objectives"]})
    started(spark, tmp_path, alone).compute_weeks(clock)
    stored = {(week, subject) for week, metric, subject in weeks(tmp_path) if metric == "rpo_s" and subject}
    after = (MONDAY + 2 * WEEK).date()
    assert stored == {(THIS_WEEK, SOUTH), (THIS_WEEK, EAST), *((week, SOUTH) for week in (NEXT_WEEK, after))}


def test_weeks_are_computed_every_ten_minutes_if_there_are_new_minutes(
    spark: SparkSession, tmp_path: Path
) -> None:
    job = create_job(spark, tmp_path, fleet(), [mirror_minute(NOON)])
    changed = [job.compute_weeks(at(n)) for n in (1, 2, 11, 21)]
    assert [rows_changed > 0 for rows_changed in changed] == [True, False, False, False]
    append_minutes(tmp_path, MIRROR_MINUTES, [mirror_minute(at(20))])
    changed = [job.compute_weeks(at(n)) for n in (25, 31, 32)]
    assert [rows_changed > 0 for rows_changed in changed] == [False, True, False]
    assert numbers(weeks(tmp_path)[THIS_WEEK, "rpo_s", SOUTH]) == (2, 31, 2 / 31)


def test_minutes_that_have_not_ended_do_not_count(spark: SparkSession, tmp_path: Path) -> None:
    mirrors = [mirror_minute(at(n), 1.0 + n) for n in range(5)]
    job = create_job(spark, tmp_path, fleet(), mirrors)
    assert job.compute_weeks(NOON + 0.9 * MINUTE) == 0
    assert started(spark, tmp_path, fleet()).compute_weeks(at(2) + 0.9 * MINUTE) > 0
    row = weeks(tmp_path)[THIS_WEEK, "rpo_s", SOUTH]
    assert (row["value"], numbers(row)) == (2.0, (2, 2, 1.0))


# --- In a batch --------------------------------------------------------------


def process(spark: SparkSession, pipeline: Pipeline, clock: datetime) -> BatchResult:
    values = [PROBE_MINUTE.encode(good_record(0, NOON, "north"))]
    return pipeline.process(raw_frame(spark, values), "batch", clock)


def test_a_batch_computes_recovery_weeks_and_a_repeated_one_commits_nothing(
    spark: SparkSession, tmp_path: Path
) -> None:
    clock = at(5)
    _, pipeline = opened(spark, tmp_path, fleet())
    first = process(spark, pipeline, clock)
    assert rows(tmp_path, RECOVERY_WEEKS) == []
    append_minutes(tmp_path, MIRROR_MINUTES, [mirror_minute(NOON)])
    append_minutes(tmp_path, GROUP_MINUTES, [group_minute(NOON)])
    again = Pipeline(spark, Lake(spark, str(tmp_path)), fleet())
    again.open()
    outcome = process(spark, again, clock)
    assert (first.gold_rows_changed > 0, outcome.gold_rows_changed) == (True, 4 + 4)

    before = versions(tmp_path)
    process(spark, again, clock)
    restarted = Pipeline(spark, Lake(spark, str(tmp_path)), fleet())
    restarted.open()
    outcome = process(spark, restarted, clock)
    assert (outcome.gold_rows_changed, versions(tmp_path)) == (0, before)
    # What is due is done even if no record comes.
    assert restarted.compute_weeks((), "start", MONDAY + 10 * DAY) > 0
    assert weeks(tmp_path)[THIS_WEEK, "readiness", BILLING]["closed"]


def test_a_fleet_without_mirrors_computes_no_recovery_weeks(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In a lake without the tables of recovery, only the table that the pipeline writes is created."""
    lake = Lake(spark, str(tmp_path))
    for table in ALL_TABLES:
        if table not in (MIRROR_MINUTES, GROUP_MINUTES, RECOVERY_WEEKS):
            lake.create(table)
    pipeline = Pipeline(spark, lake, fleet({}))
    pipeline.open()
    assert delta(tmp_path, RECOVERY_WEEKS).version() == 0
    append_minutes(tmp_path, MIRROR_MINUTES, [mirror_minute(NOON)])
    opened: list[Table] = []
    open_store = lake.table_store

    def record(table: Table) -> TableStore:
        opened.append(table)
        return open_store(table)

    monkeypatch.setattr(lake, "table_store", record)
    process(spark, pipeline, at(5))
    assert opened
    assert not {MIRROR_MINUTES, GROUP_MINUTES, RECOVERY_WEEKS} & set(opened)
    assert delta(tmp_path, RECOVERY_WEEKS).version() == 0


def test_without_tables_of_minutes_nothing_is_computed(spark: SparkSession, tmp_path: Path) -> None:
    Lake(spark, str(tmp_path)).create(RECOVERY_WEEKS)
    assert started(spark, tmp_path, fleet()).compute_weeks(NOON) == 0


# --- A plain twin ------------------------------------------------------------

#: The last weekend of winter time, and the Monday after it.
SATURDAY = datetime(2026, 3, 28, 18, tzinfo=UTC)
BERLIN = ZoneInfo("Europe/Berlin")


def drawn(rng: Random) -> tuple[list[Row], list[Row]]:
    """Return random minutes of mirrors and groups, some of them missing or with unknown values."""
    mirrors: list[Row] = []
    for to in ("south", "east", "west", "moon"):
        unknown = rng.choice((0.0, 0.005, 0.05))
        for minute in _drawn_minutes(rng):
            at_most = None if rng.random() < unknown else round(rng.expovariate(0.05), 3)
            more = {
                "behind_at_most": None if rng.random() < unknown else rng.randint(0, 10_000),
                "behind_s": rng.choice((None, at_most)),
            }
            mirrors.append(mirror_minute(minute, at_most, to, **more))
    groups = [
        group_minute(minute, rng.random() < rng.choice((0.9, 1.0)), group)
        for group in ("a", "b", "c", "d", "e")
        for minute in _drawn_minutes(rng)
    ]
    return mirrors, groups


def _drawn_minutes(rng: Random) -> Iterator[datetime]:
    first, end = rng.choice((0, rng.randint(0, 2000))), rng.choice((2160, rng.randint(1000, 2160)))
    missed = rng.choice((0.0, 0.05, 0.11, 0.3))
    return (SATURDAY + n * MINUTE for n in range(first, end) if rng.random() >= missed)


@pytest.mark.parametrize(
    "seed", [0, *(pytest.param(seed, marks=pytest.mark.thorough) for seed in range(1, 6))]
)
def test_spark_agrees_with_a_plain_python_implementation(
    spark: SparkSession, tmp_path: Path, seed: int
) -> None:
    rng = Random(seed)
    mirrors, groups = drawn(rng)
    clock = SATURDAY + timedelta(minutes=rng.randint(1500, 2200), seconds=rng.randint(0, 59))
    rng.shuffle(mirrors)
    create_job(spark, tmp_path, fleet(zone="Europe/Berlin"), mirrors, groups).compute_weeks(clock)
    wanted = compute_plainly(mirrors, groups, clock.replace(second=0))
    assert sorted(rows(tmp_path, RECOVERY_WEEKS), key=_key) == sorted(wanted, key=_key)
    assert len({row["week"] for row in wanted}) == 2


def compute_plainly(mirrors: Sequence[Row], groups: Sequence[Row], until: datetime) -> list[Row]:
    """Return gold/recovery_weeks of open weeks in Berlin, without Spark and without WeekCalendar."""
    values: dict[tuple[str, str, str], dict[datetime, float | None]] = {}
    for row in mirrors:
        subject = f"{row['source']} to {row['destination']}"
        for metric, name in (("rpo_s", "behind_s_at_most"), ("rpo_records", "behind_at_most")):
            value = inf if row[name] is None else float(row[name])
            values.setdefault((metric, "mirror", subject), {})[row["minute"]] = value
        values.setdefault(("rpo_s_estimate", "mirror", subject), {})[row["minute"]] = row["behind_s"]
    for row in groups:
        subject = f"{row['active']} to {row['passive']}: {row['group_id']}"
        values.setdefault(("readiness", "group", subject), {})[row["minute"]] = float(row["ready"])
    named = {
        SATURDAY + n * MINUTE: _monday(SATURDAY + n * MINUTE) for n in range((until - SATURDAY) // MINUTE)
    }
    weeks_rows: list[Row] = []
    for week in sorted(set(named.values())):
        all_minutes = [minute for minute, of in named.items() if of == week]
        of_week = []
        for (metric, scope, subject), by_minute in values.items():
            expected = [minute for minute in all_minutes if minute >= min(by_minute)]
            measured = [minute for minute in expected if minute in by_minute]
            going_on = subject in (SOUTH, EAST) or max(m for m in by_minute if m < until) >= all_minutes[0]
            if expected and going_on:
                level = _level(metric, [by_minute[minute] for minute in measured])
                of_week.append(_row(week, metric, scope, subject, level, len(measured), len(expected)))
        weeks_rows += of_week
        weeks_rows += [
            _of_fleet(week, metric, of_week) for metric in sorted({row["metric"] for row in of_week})
        ]
    return [
        row | {name: None if row[name] == inf else row[name] for name in ("value", "median", "p90", "p99")}
        for row in weeks_rows
    ]


def _monday(minute: datetime) -> date:
    local = minute.astimezone(BERLIN).date()
    return local - local.weekday() * DAY


def _level(metric: str, values: Sequence[float | None]) -> float | None:
    measured = [value for value in values if value is not None]
    if metric == "readiness":
        return sum(measured) / len(measured) if measured else None
    return sorted(measured)[ceil(99 * len(measured) / 100) - 1] if measured else None


def _row(
    week: date, metric: str, scope: str, subject: str, level: float | None, measured: int, expected: int
) -> Row:
    row: Row = dict.fromkeys(RECOVERY_WEEKS.column_names)
    row |= {"week": week, "metric": metric, "scope": scope, "subject": subject, "value": level}
    row |= {"minutes_measured": measured, "minutes_expected": expected, "coverage": measured / expected}
    objective = {"rpo_s": 60.0, "readiness": 0.9}.get(metric)
    if objective is not None and level is not None:
        row["met"] = level <= objective if metric == "rpo_s" else level >= objective
    return row | {"objective": objective, "closed": False}


def _of_fleet(week: date, metric: str, of_week: Sequence[Row]) -> Row:
    row: Row = dict.fromkeys(RECOVERY_WEEKS.column_names)
    all_ = [row for row in of_week if row["metric"] == metric]
    good = [row["value"] for row in all_ if row["coverage"] >= 0.9 and row["value"] is not None]
    worst_last = sorted(good, reverse=metric == "readiness")
    for name, percent in (("median", 50), ("p90", 90), ("p99", 99)):
        if good:
            row[name] = worst_last[ceil(percent * len(good) / 100) - 1]
    row |= {"week": week, "metric": metric, "scope": "fleet", "subject": ""}
    return row | {"subjects": len(good), "subjects_excluded": len(all_) - len(good), "closed": False}


def _key(row: Row) -> tuple[str, ...]:
    return tuple(str(row[name]) for name in RECOVERY_WEEKS.key)
