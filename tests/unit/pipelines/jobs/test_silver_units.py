"""Units have every minute of every cluster once, and what one leaves out begins with what was before."""

from collections import Counter
from tempfile import TemporaryDirectory

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from hypothesis import given
from hypothesis import strategies as st

from fleetgauge_pipelines.io.table_files import TableFile, TableFiles
from fleetgauge_pipelines.jobs.silver_units import (
    FileSpan,
    Unit,
    describe_files,
    list_clusters,
    merge_observed,
    plan_units,
    resume_units,
)
from fleetgauge_pipelines.transforms.expected_brokers import ClusterSpan
from fleetgauge_pipelines.transforms.records import to_time
from fleetgauge_pipelines.transforms.silver import ClusterWork, ObservedMinutes

MINUTES = st.integers(0, 50)
NAMES = "abcdef"


def span(cluster_id: str, first: int, last: int) -> ClusterWork:
    return ClusterWork(ClusterSpan(cluster_id, first, last, None), 100_000)


@st.composite
def works(draw: st.DrawFn) -> list[ClusterWork]:
    names = draw(st.lists(st.sampled_from(NAMES), unique=True, min_size=1))
    return [span(name, *sorted((draw(MINUTES), draw(MINUTES)))) for name in names]


@st.composite
def plans(draw: st.DrawFn) -> tuple[list[FileSpan], list[ClusterWork]]:
    planned = draw(works())
    positions = st.lists(st.integers(0, len(planned) - 1), unique=True, min_size=1)
    return [
        file_span(
            str(number), draw(st.integers(1, 300)), draw(positions), *sorted((draw(MINUTES), draw(MINUTES)))
        )
        for number in range(draw(st.integers(0, 12)))
    ], planned


def file_span(path: str, records: int, clusters: list[int], first: int, last: int) -> FileSpan:
    return FileSpan(path, records, np.packbits(np.isin(np.arange(len(NAMES)), clusters)), first, last)


@given(plans(), st.integers(50, 1000))
def test_units_have_each_minute_once_and_those_of_a_cluster_follow_each_other(
    plan: tuple[list[FileSpan], list[ClusterWork]], most_records: int
) -> None:
    files, planned = plan
    units = plan_units(files, planned, most_records)
    minutes = Counter(
        (work.span.cluster_id, minute)
        for unit in units
        for work in unit.works
        for minute in range(work.span.first, work.span.last + 1)
    )
    assert minutes == {
        (work.span.cluster_id, minute): 1
        for work in planned
        for minute in range(work.span.first, work.span.last + 1)
    }
    for whole in planned:
        of_cluster = [
            work for unit in units for work in unit.works if work.span.cluster_id == whole.span.cluster_id
        ]
        begins = [work.span.first for work in of_cluster]
        assert begins == sorted(begins)
        assert [work.follows for work in of_cluster] == [begin > whole.span.first for begin in begins]
        assert all(work.span.initial_brokers is None for work in of_cluster if work.follows)


@given(plans(), st.integers(50, 1000))
def test_a_unit_names_each_file_with_records_of_it(
    plan: tuple[list[FileSpan], list[ClusterWork]], most_records: int
) -> None:
    files, planned = plan
    clusters = list_clusters(planned)
    for unit in plan_units(files, planned, most_records):
        for file in files:
            for work in unit.works:
                is_in_file = clusters.index(work.span.cluster_id) in file.positions
                if is_in_file and file.first <= work.span.last and file.last >= work.span.first:
                    assert file.path in unit.paths


def list_plan(units: list[Unit]) -> list[tuple[str, int, set[str]]]:
    """Return the clusters, the first minute and the files of units."""
    return [
        ("".join(work.span.cluster_id for work in unit.works), unit.works[0].span.first, set(unit.paths))
        for unit in units
    ]


def test_clusters_of_other_files_are_cut_from_each_other_and_large_files_in_time() -> None:
    files = [file_span("x", 100, [0, 2], 0, 9), file_span("y", 400, [1, 3], 0, 9)]
    units = plan_units(files, [span(name, 0, 9) for name in "abcd"], 100)
    assert list_plan(units) == [("ac", 0, {"x"}), *[("bd", first, {"y"}) for first in (0, 2, 5, 7)]]


def test_files_of_other_days_are_units_of_their_own() -> None:
    files = [file_span(str(day), 90, [0, 1], 10 * day, 10 * day + 9) for day in range(3)]
    units = plan_units(files, [span("a", 0, 29), span("b", 0, 29)], 100)
    assert list_plan(units) == [("ab", 10 * day, {str(day)}) for day in range(3)]


def test_files_that_overlap_completely_are_cut_in_time() -> None:
    files = [file_span(str(number), 200, [0, 1, 2], 0, 99) for number in range(10)]
    units = plan_units(files, [span(name, 0, 99) for name in "abc"], 250)
    assert len(units) == 10 * 200 // 250
    minutes = [unit.works[0].span.last - unit.works[0].span.first + 1 for unit in units]
    assert max(minutes) - min(minutes) <= 1


def test_what_was_left_out_begins_with_the_brokers_and_the_first_measured_minute_before_it() -> None:
    units = [unit(span("a", 0, 4)), unit(span("a", 5, 9)), unit(span("a", 10, 14), span("b", 10, 14))]
    observed = [{"a": ObservedMinutes(3, 4, (1, 2))}, {}, {"b": ObservedMinutes(10, 14, (1,))}]
    first, second, third = resume_units(units, observed, [(), ("a",), ("a",)])
    assert first == Unit((), frozenset())
    for resumed, begin in ((second, 5), (third, 10)):
        (work,) = resumed.works
        assert (work.span.cluster_id, work.span.first) == ("a", begin)
        assert (work.span.initial_brokers, work.first_minute) == ((1, 2), 3)
        assert not work.follows
        assert resumed.paths == {"x"}


def unit(*works: ClusterWork) -> Unit:
    return Unit(works, frozenset("x"))


def test_a_file_is_described_by_its_rows() -> None:
    with TemporaryDirectory() as folder:
        rows = {"cluster_id": ["c", "b", "other"], "minute": [to_time(minute) for minute in (7, 9, 8)]}
        schema = pa.schema([("cluster_id", pa.string()), ("minute", pa.timestamp("us", "UTC"))])
        table = pa.table(rows, schema=schema)
        pq.write_table(table, f"{folder}/part")
        pq.write_table(table.slice(2), f"{folder}/other")
        files = tuple(TableFile(path, None, 1, 1, {}, {}) for path in ("part", "other"))
        (described,) = describe_files(["a", "b", "c"], TableFiles(folder, schema, files))
    assert described.positions.tolist() == [1, 2]
    assert (described.path, described.records, described.first, described.last) == ("part", 3, 7, 9)


def test_what_was_observed_last_counts_with_the_first_measured_minute() -> None:
    parts = [
        {"a": ObservedMinutes(3, 4, (1,))},
        {"a": ObservedMinutes(6, 9, (2,)), "b": ObservedMinutes(None, 9, ())},
    ]
    assert merge_observed(parts) == {"a": ObservedMinutes(3, 9, (2,)), "b": ObservedMinutes(None, 9, ())}
