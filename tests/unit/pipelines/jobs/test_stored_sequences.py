from collections.abc import Iterable
from datetime import UTC, date, datetime, time
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, cast

import pyarrow as pa
from hypothesis import given, settings
from hypothesis import strategies as st

from fleetgauge_core.tables import PROBE_MINUTES
from fleetgauge_core.tables.arrow_schema import arrow_schema
from fleetgauge_pipelines.io.lake import Lake
from fleetgauge_pipelines.io.table_files import write_files
from fleetgauge_pipelines.jobs.stored_sequences import StoredSequences

DAYS = [date(2026, 4, day) for day in range(1, 13)]
#: Run, sequence and day of a record.
KEYS = st.tuples(st.sampled_from("ab"), st.integers(0, 9), st.sampled_from(DAYS))
#: Batches of records that are stored, and whether another process goes on after each.
BATCHES = st.lists(st.tuples(st.lists(KEYS, min_size=1, max_size=5), st.booleans()), max_size=4)


def open_lake(folder: str) -> Lake:
    # No table of this test is read or written by Spark.
    lake = Lake(cast("Any", None), folder)
    lake.table_store(PROBE_MINUTES).create()
    return lake


def to_table(keys: Iterable[tuple[str, int, date]]) -> pa.Table:
    return pa.table(
        {"run_id": [run for run, _, _ in keys], "sequence": pa.array([n for _, n, _ in keys], pa.int64())}
    )


def store(lake: Lake, keys: Iterable[tuple[str, int, date]]) -> None:
    rows = [
        dict.fromkeys(PROBE_MINUTES.column_names)
        | {"run_id": run, "sequence": sequence, "day": day, "minute": datetime.combine(day, time(12), UTC)}
        for run, sequence, day in keys
    ]
    table = pa.Table.from_pylist(rows, arrow_schema(PROBE_MINUTES))
    lake.commit_files(PROBE_MINUTES, write_files(lake.path(PROBE_MINUTES), table))


@settings(max_examples=40, deadline=None)
@given(BATCHES, st.lists(KEYS, min_size=1, max_size=8))
def test_no_stored_key_is_missed_and_no_key_above_all_stored_ones_is_looked_up(
    batches: list[tuple[list[tuple[str, int, date]], bool]], asked: list[tuple[str, int, date]]
) -> None:
    with TemporaryDirectory() as folder:
        lake = open_lake(folder)
        sequences = StoredSequences(lake)
        stored: set[tuple[str, int, date]] = set()
        for keys, is_restarted in batches:
            sequences.may_be_stored(to_table(keys), sorted({day for _, _, day in keys}))
            for of_day in {day for _, _, day in keys}:
                sequences.add(of_day, to_table([key for key in keys if key[2] == of_day]))
            store(lake, set(keys) - stored)
            stored |= set(keys)
            if is_restarted:
                sequences = StoredSequences(lake)

        days = sorted({day for _, _, day in asked})
        possible = sequences.may_be_stored(to_table(asked), days)

        for (run, sequence, _), is_possible in zip(asked, possible, strict=True):
            of_run = [other for name, other, day in stored if name == run and day in days]
            assert bool(is_possible) == (sequence <= max(of_run, default=-1))


def test_no_record_is_looked_up_in_a_table_of_no_days(tmp_path: Path) -> None:
    sequences = StoredSequences(open_lake(str(tmp_path)))
    assert not sequences.may_be_stored(to_table([("a", 1, DAYS[0])]), []).any()
