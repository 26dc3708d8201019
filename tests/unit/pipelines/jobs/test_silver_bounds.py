"""Where the measurement of a cluster begins whose first record came late and alone."""

from datetime import UTC, datetime, timedelta
from random import Random

import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from fleetgauge_pipelines.jobs.silver_bounds import find_begins

NOON = datetime(2026, 4, 1, 12, tzinfo=UTC)
NEAR = timedelta(hours=1)
TIME = pa.timestamp("us", "UTC")
SCHEMA = pa.schema(
    [
        *(("cluster_id", pa.string()), ("minute", TIME)),
        *(("ingested_at_min", TIME), ("ingested_at_count", pa.int64())),
    ]
)
#: Records by cluster and minute: so many, and so many minutes later the first was ingested.
RECORDS = st.dictionaries(
    st.tuples(st.sampled_from("ab"), st.integers(0, 300)),
    st.tuples(st.integers(1, 2), st.integers(0, 120)),
    max_size=6,
)


def at(minute: int) -> datetime:
    return NOON + timedelta(minutes=minute)


@given(RECORDS, st.integers(0, 300), st.randoms(use_true_random=False))
def test_a_measurement_begins_with_a_record_in_time_or_with_two_that_are_near(
    records: dict[tuple[str, int], tuple[int, int]], end: int, rng: Random
) -> None:
    rows = [
        (cluster_id, at(minute), at(minute + late), count)
        for (cluster_id, minute), (count, late) in records.items()
    ]
    rng.shuffle(rows)
    table = pa.Table.from_pylist([dict(zip(SCHEMA.names, row, strict=True)) for row in rows], SCHEMA)
    wanted = {}
    for cluster_id in "ab":
        begins = [
            minute
            for (of, minute), (count, late) in records.items()
            if of == cluster_id
            and minute <= end
            and (
                late <= 60
                or count > 1
                or any((of, minute + distance) in records for distance in range(1, 61))
            )
        ]
        if begins:
            wanted[cluster_id] = at(min(begins))
    assert find_begins(table, {"a": at(end), "b": at(end)}, NEAR) == wanted
