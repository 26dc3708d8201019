"""The pipeline continues a lake that an earlier version wrote."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from pyspark.sql import SparkSession

from fleetgauge_core.contract import PROBE_MINUTE
from fleetgauge_core.tables import (
    ACTIONS,
    BROKER_MINUTES,
    BURN_CAUSES,
    CHANGE_COSTS,
    CHANGES,
    CLUSTER_MINUTES,
    CLUSTER_WEEKS,
    CORRECTIONS,
    EVIDENCE,
    FLEET_WEEKS,
    HEALTH_EVENTS,
    PROBE_MINUTES,
    QUALITY,
    RECOVERY_WEEKS,
    Column,
    ColumnType,
    Table,
)
from fleetgauge_pipelines.io.lake import Lake
from fleetgauge_pipelines.jobs.batch import BatchResult, Pipeline
from tests.fixtures.kept_lake import KeptLake, read_recorded, unpack
from tests.oracle.compare import find_differences
from tests.oracle.operations import Operations
from tests.oracle.oracle import Tables, evaluate, read_settings
from tests.oracle.revision_rules import LATE_RECORDS
from tests.spark.lakes import raw_frame

Row = dict[str, Any]
Key = tuple[Any, ...]

MINUTE = timedelta(minutes=1)
CLOCK = datetime.fromisoformat(read_recorded()["clock"])
#: The open week's first minute. The week before it is closed at the clock.
MONDAY = datetime(2026, 3, 30, tzinfo=UTC)
#: In it both clusters have records.
MODEL_MINUTE = MONDAY + 10 * MINUTE
#: The oldest minute that a stream would take.
OLDEST = CLOCK - timedelta(days=35)
#: Beyond the offsets of the records that the lake holds.
FIRST_OFFSET = 10_000
#: Of records in bronze, what they did not bring along.
ADDED_BY_BRONZE = ("source", "ingested_at", "day")
#: Tables of which the oracle says every row of the clusters whose samples are there.
JUDGED = (BROKER_MINUTES, CLUSTER_MINUTES, CLUSTER_WEEKS, FLEET_WEEKS, BURN_CAUSES)
#: Tables that a batch of good records may write.
WRITTEN = (PROBE_MINUTES, *JUDGED, EVIDENCE, QUALITY, RECOVERY_WEEKS)


@dataclass(frozen=True, slots=True)
class Content:
    """The rows and version of every table at a point in time."""

    rows: Mapping[Table, Sequence[Row]]
    versions: Mapping[str, int | None]


@dataclass(frozen=True, slots=True)
class Continued:
    """The lake before and after a batch, and after the same batch is repeated."""

    new_records: Sequence[Row]
    outcome: BatchResult
    before: Content
    after: Content
    repeated: Content
    judged_before: Mapping[Table, Sequence[Row]]
    judged_after: Mapping[Table, Sequence[Row]]


@pytest.fixture(scope="module")
def continued(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Continued:
    kept_lake = unpack(tmp_path_factory.mktemp("continued"))
    stored_records = _contract_records(kept_lake.rows(PROBE_MINUTES))
    new_records = [*_following_records(stored_records), _late_record(stored_records)]
    judged_before = _judge(kept_lake, stored_records, is_of_kept_lake=True)
    before = _read_content(kept_lake)
    outcome = _process(spark, kept_lake, new_records)
    after = _read_content(kept_lake)
    _process(spark, kept_lake, new_records)
    return Continued(
        new_records,
        outcome,
        before,
        after,
        _read_content(kept_lake),
        judged_before,
        _judge(kept_lake, [*stored_records, *new_records]),
    )


def _process(spark: SparkSession, kept_lake: KeptLake, records: Iterable[Row]) -> BatchResult:
    """Process a batch with a newly started pipeline."""
    pipeline = Pipeline(spark, Lake(spark, str(kept_lake.path)), kept_lake.fleet)
    pipeline.open()
    values = [PROBE_MINUTE.encode(record) for record in records]
    return pipeline.process(raw_frame(spark, values, FIRST_OFFSET), "continued", CLOCK, OLDEST)


def _read_content(kept_lake: KeptLake) -> Content:
    versions = kept_lake.versions()
    return Content({table: kept_lake.rows(table) for table in WRITTEN}, versions)


def _contract_records(rows: Iterable[Row]) -> list[Row]:
    return [
        {name: value for name, value in row.items() if name not in ADDED_BY_BRONZE}
        | {
            "produce_failures": dict(row["produce_failures"]),
            "consume_failures": dict(row["consume_failures"]),
        }
        for row in rows
    ]


def _following_records(records: Sequence[Row]) -> list[Row]:
    """Of each cluster two minutes more, measured as one that the lake holds."""
    model = [record for record in records if record["minute"] == MODEL_MINUTE]
    newest = max(record["minute"] for record in records)
    return [
        record
        | {"run_id": "next-run", "sequence": 100 * step + number}
        | {"minute": newest + step * MINUTE, "emitted_at": newest + step * MINUTE + timedelta(seconds=72)}
        for step in (1, 2)
        for number, record in enumerate(model)
    ]


def _late_record(records: Iterable[Row]) -> Row:
    """A second vantage's view of a broker in the closed week, so slow that the minute is bad."""
    model = next(
        record
        for record in records
        if (record["cluster_id"], record["leg"]) == ("orders", "client")
        and record["minute"] == MONDAY - 5 * MINUTE
        and len(record["e2e_us"]) == record["attempted"]
    )
    slower_us = [latency_us + 200_000 for latency_us in model["e2e_us"]]
    return model | {"run_id": "later-run", "sequence": 0, "vantage": "zone-late", "e2e_us": slower_us}


def _judge(
    kept_lake: KeptLake, records: Iterable[Row], is_of_kept_lake: bool = False
) -> dict[Table, Sequence[Row]]:
    """What the oracle makes of the records and of what people and the watch wrote.

    A pipeline that starts gives the minutes of open weeks the causes by the rule of its own version.
    """
    operations = Operations(
        corrections=tuple(kept_lake.rows(CORRECTIONS)),
        actions=tuple(kept_lake.rows(ACTIONS)),
        health_events=tuple(kept_lake.rows(HEALTH_EVENTS)),
        changes=tuple(kept_lake.rows(CHANGES)),
        is_of_kept_lake=is_of_kept_lake,
    )
    judged: Tables = evaluate(records, read_settings(kept_lake.fleet), CLOCK, operations)
    return {
        BROKER_MINUTES: judged.broker_minutes,
        CLUSTER_MINUTES: judged.cluster_minutes,
        CLUSTER_WEEKS: judged.cluster_weeks,
        FLEET_WEEKS: judged.fleet_weeks,
        BURN_CAUSES: judged.burn_causes,
    }


def _identity(table: Table, row: Row) -> Key:
    """What stays the same from a revision to the next."""
    return tuple(row[name] for name in table.key if name != "revision")


def _by_identity(table: Table, rows: Iterable[Row]) -> dict[Key, Row]:
    """The newest revision of each."""
    ordered = sorted(rows, key=lambda row: int(row.get("revision", 0)))
    return {_identity(table, row): row for row in ordered}


def _changed(continued: Continued, table: Table) -> dict[Key, Row]:
    """The oracle's rows that the new records make new or other."""
    before = _by_identity(table, continued.judged_before[table])
    after = _by_identity(table, continued.judged_after[table])
    return {identity: row for identity, row in after.items() if row != before.get(identity)}


def _expected_rows(continued: Continued, table: Table) -> list[Row]:
    """The rows that were there, but that open ones are replaced and closed ones get a revision."""
    changed, stored = _changed(continued, table), continued.before.rows[table]
    newest = _by_identity(table, stored)
    kept = [row for row in stored if row.get("closed", False) or _identity(table, row) not in changed]
    return [*kept, *(_revise(newest.get(identity), row) for identity, row in changed.items())]


def _revise(stored: Row | None, row: Row) -> Row:
    if stored is None or not stored.get("closed", False):
        return row
    reason = {"revision_reason": LATE_RECORDS} if "revision_reason" in row else {}
    return row | {"revision": stored["revision"] + 1} | reason


@pytest.mark.parametrize("table", JUDGED, ids=lambda table: str(table.path))
def test_the_stored_rows_match_the_oracle(continued: Continued, table: Table) -> None:
    """But for clusters and weeks whose samples have expired, of which the oracle says nothing."""
    expected = _by_identity(table, continued.judged_before[table])
    stored = _by_identity(table, continued.before.rows[table])
    without_number = [name for name in table.key if name != "revision"]
    numbering = ("revision", "revision_reason")
    as_stored = [
        row | {name: stored[key][name] for name in numbering if name in row} for key, row in expected.items()
    ]
    assert _texts(find_differences(table, as_stored, [stored[key] for key in expected], without_number)) == []


@pytest.mark.parametrize("table", JUDGED, ids=lambda table: str(table.path))
def test_a_batch_writes_the_oracles_rows_and_leaves_others_unchanged(
    continued: Continued, table: Table
) -> None:
    assert _changed(continued, table), "the batch changes nothing there"
    expected = _expected_rows(continued, table)
    assert _texts(find_differences(table, expected, continued.after.rows[table])) == []


def test_unaffected_rows_are_identical(continued: Continued) -> None:
    """Also in what says when they were computed."""
    for table in JUDGED:
        changed = _changed(continued, table)
        untouched = [row for row in continued.before.rows[table] if _identity(table, row) not in changed]
        assert untouched, table.path
        assert [row for row in untouched if row not in continued.after.rows[table]] == []
    for table in (PROBE_MINUTES, QUALITY):
        assert [row for row in continued.before.rows[table] if row not in continued.after.rows[table]] == []


def test_the_closed_week_gets_a_revision_and_keeps_the_earlier_ones(continued: Continued) -> None:
    def revisions(content: Content) -> list[Row]:
        closed_week = (MONDAY - timedelta(days=7)).date()
        rows = content.rows[CLUSTER_WEEKS]
        return [row for row in rows if (row["cluster_id"], row["week"]) == ("orders", closed_week)]

    *earlier, newest = revisions(continued.after)
    assert earlier == revisions(continued.before)
    assert (newest["revision"], newest["revision_reason"]) == (len(earlier) + 1, LATE_RECORDS)
    assert newest["bad_minutes"] == earlier[-1]["bad_minutes"] + 1


def test_evidence_of_other_clusters_and_weeks_stays(continued: Continued) -> None:
    kept, present = (
        [row for row in content.rows[EVIDENCE] if row["cluster_id"] != "orders"]
        for content in (continued.before, continued.after)
    )
    assert kept
    assert present == kept


def test_evidence_of_the_late_record_is_kept_with_the_revision(continued: Continued) -> None:
    late = continued.new_records[-1]
    key = tuple(late[name] for name in ("cluster_id", "minute", "broker_id", "leg"))
    [row] = (
        row
        for row in continued.after.rows[EVIDENCE]
        if (row["cluster_id"], row["minute"], row["broker_id"], row["leg"]) == key
    )
    assert row["e2e_us"][-1] == late["e2e_us"][-1]


def test_recovery_weeks_differ_only_in_their_expected_minutes(continued: Continued) -> None:
    """A pipeline that starts expects the open week's minutes up to its clock."""
    before, after = (content.rows[RECOVERY_WEEKS] for content in (continued.before, continued.after))
    assert [row for row in before if row["closed"]] == [row for row in after if row["closed"]]
    expected = ("minutes_expected", "coverage")
    assert _without(after, expected) == _without(before, expected)
    assert {row["minutes_expected"] for row in after if not row["closed"]} == {
        None,
        (CLOCK - MONDAY) // MINUTE,
    }


def test_all_records_are_stored_and_every_expectation_is_met(continued: Continued) -> None:
    outcome = continued.outcome
    assert (outcome.ingested.stored, outcome.ingested.quarantined) == (len(continued.new_records), 0)
    assert [verdict for verdict in outcome.verdicts if not verdict.success] == []
    assert outcome.weeks_held_back == ()


def test_tables_of_other_writers_are_unchanged(continued: Continued) -> None:
    written = {table.path for table in WRITTEN}
    before, after = (
        {path: version for path, version in content.versions.items() if path not in written}
        for content in (continued.before, continued.after)
    )
    created = {path for path, version in before.items() if version is None}
    assert created == {CHANGES.path, CHANGE_COSTS.path}
    assert after == before | dict.fromkeys(created, 0)


def test_a_repeated_batch_commits_nothing(continued: Continued) -> None:
    assert continued.repeated.versions == continued.after.versions
    assert continued.repeated.rows == continued.after.rows


def test_a_missing_column_is_added_and_rows_are_kept(
    spark: SparkSession, tmp_path_factory: pytest.TempPathFactory
) -> None:
    kept_lake = unpack(tmp_path_factory.mktemp("widened"))
    rows = kept_lake.rows(BROKER_MINUTES)
    widened = replace(
        BROKER_MINUTES, columns=(*BROKER_MINUTES.columns, Column("added_later", ColumnType.LONG))
    )
    assert not Lake(spark, str(kept_lake.path)).create(widened)
    assert kept_lake.rows(widened) == [row | {"added_later": None} for row in rows]


def _without(rows: Iterable[Row], names: Iterable[str]) -> list[Row]:
    left_out = set(names)
    return [{name: value for name, value in row.items() if name not in left_out} for row in rows]


def _texts(values: Iterable[object]) -> list[str]:
    """As many as a person reads."""
    return [str(value) for value in values][:20]
