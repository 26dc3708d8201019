"""Units have every minute of every cluster once, and chained they give what one unit gives."""

from collections import Counter

from hypothesis import given
from hypothesis import strategies as st

from fleetgauge_pipelines.jobs.silver_units import FileSpan, chain_units, merge_observed, plan_units
from fleetgauge_pipelines.transforms.expected_brokers import ClusterSpan
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
def file_spans(draw: st.DrawFn) -> FileSpan:
    clusters = sorted(draw(st.tuples(st.sampled_from(NAMES), st.sampled_from(NAMES))))
    minutes = sorted((draw(MINUTES), draw(MINUTES)))
    return FileSpan(draw(st.integers(1, 300)), *clusters, *minutes)


@given(st.lists(file_spans(), max_size=12), works(), st.integers(50, 1000))
def test_units_have_each_minute_once_and_those_of_a_strip_follow_each_other(
    files: list[FileSpan], planned: list[ClusterWork], most_records: int
) -> None:
    strips = plan_units(files, planned, most_records)
    minutes = Counter(
        (work.span.cluster_id, minute)
        for strip in strips
        for unit in strip
        for work in unit
        for minute in range(work.span.first, work.span.last + 1)
    )
    assert minutes == {
        (work.span.cluster_id, minute): 1
        for work in planned
        for minute in range(work.span.first, work.span.last + 1)
    }
    for strip in strips:
        ends = [max(work.span.last for work in unit) for unit in strip]
        begins = [min(work.span.first for work in unit) for unit in strip]
        assert all(end < begin for end, begin in zip(ends, begins[1:], strict=False))


def test_files_of_other_clusters_make_strips_and_large_ones_are_cut_in_time() -> None:
    files = [FileSpan(100, "a", "a", 0, 9), FileSpan(400, "b", "c", 0, 9)]
    strips = plan_units(files, [span("a", 0, 9), span("b", 0, 9), span("c", 0, 9)], 100)
    assert [[[work.span.cluster_id for work in unit] for unit in strip] for strip in strips] == [
        [["a"]],
        [["b", "c"]] * 4,
    ]
    assert [unit[0].span.first for unit in strips[1]] == [0, 2, 5, 7]


def test_files_that_overlap_completely_are_cut_in_time() -> None:
    files = [FileSpan(200, "a", "c", 0, 99)] * 10
    (strip,) = plan_units(files, [span(name, 0, 99) for name in "abc"], 250)
    assert len(strip) == 10 * 200 // 250
    minutes = [unit[0].span.last - unit[0].span.first + 1 for unit in strip]
    assert max(minutes) - min(minutes) <= 1


def test_a_unit_begins_with_the_brokers_and_the_first_measured_minute_of_those_before() -> None:
    units = [(span("a", 0, 4),), (span("a", 5, 9),), (span("a", 10, 14), span("b", 10, 14))]
    outlines = [{"a": ObservedMinutes(3, 4, (1, 2))}, {}]
    chained = chain_units(units, outlines)
    assert [unit[0].span.initial_brokers for unit in chained] == [None, (1, 2), (1, 2)]
    assert [unit[0].first_minute for unit in chained] == [None, 3, 3]
    assert chained[2][1] == span("b", 10, 14)


def test_what_was_observed_last_counts_with_the_first_measured_minute() -> None:
    parts = [
        {"a": ObservedMinutes(3, 4, (1,))},
        {"a": ObservedMinutes(6, 9, (2,)), "b": ObservedMinutes(None, 9, ())},
    ]
    assert merge_observed(parts) == {"a": ObservedMinutes(3, 9, (2,)), "b": ObservedMinutes(None, 9, ())}
