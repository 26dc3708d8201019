"""Cuts the minutes to compute into units, each of which one task holds in memory.

A unit has all records of its clusters and minutes, so that no result has to be merged. It is cut along the
files of bronze where that is possible, because every task reads the files that its unit touches.
"""

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from fleetgauge_pipelines.io.table_files import TableFile, TableFiles
from fleetgauge_pipelines.transforms.lists import Ints
from fleetgauge_pipelines.transforms.minute_spans import MinuteSpans
from fleetgauge_pipelines.transforms.records import to_minutes
from fleetgauge_pipelines.transforms.silver import ClusterWork, ObservedMinutes


@dataclass(frozen=True, slots=True)
class FileSpan:
    """A file: its number of records, the clusters that it has, and its first and last minute.

    ``clusters`` is a bit for each cluster to compute, packed: thousands of files may have thousands of
    clusters. Minutes are counted from 1970.
    """

    path: str
    records: int
    clusters: NDArray[np.uint8]
    first: int
    last: int

    @property
    def positions(self) -> Ints:
        """The positions of its clusters among all."""
        return np.flatnonzero(np.unpackbits(self.clusters))


@dataclass(frozen=True, slots=True)
class Unit:
    """Minutes of some clusters that one task computes, and the paths of the files with their records."""

    works: tuple[ClusterWork, ...]
    paths: frozenset[str]


def list_spans(works: Sequence[ClusterWork]) -> MinuteSpans:
    """Return the spans of works."""
    return MinuteSpans(
        [work.span.cluster_id for work in works],
        np.array([work.span.first for work in works], np.int64),
        np.array([work.span.last for work in works], np.int64),
    )


def list_clusters(works: Iterable[ClusterWork]) -> list[str]:
    """Return the clusters of works in the order of their positions."""
    return sorted(work.span.cluster_id for work in works)


def describe_files(clusters: Sequence[str], files: TableFiles) -> list[FileSpan]:
    """Return which clusters and minutes files have; those that have none of ``clusters`` are left out."""
    spans = (_describe_file(clusters, files, file) for file in files.files)
    return [span for span in spans if span.clusters.any()]


def _describe_file(clusters: Sequence[str], files: TableFiles, file: TableFile) -> FileSpan:
    rows = files.only(file).read(("cluster_id", "minute"))
    present = pc.is_in(pa.array(clusters, pa.string()), pc.unique(rows["cluster_id"]))
    minutes = to_minutes(rows["minute"])
    first, last = int(minutes.min(initial=_NEVER)), int(minutes.max(initial=-_NEVER))
    return FileSpan(file.path, rows.num_rows, np.packbits(np.asarray(present)), first, last)


_NEVER = 2**62


def plan_units(files: Sequence[FileSpan], works: Sequence[ClusterWork], most_records: int) -> list[Unit]:
    """Return units of about ``most_records``; those of a cluster follow each other in time.

    ``files`` have the records of the works, whose clusters are in the order of list_clusters.
    """
    ordered = sorted(works, key=lambda work: work.span.cluster_id)
    return [
        unit
        for of_part, part in _cut_by_cluster(files, ordered, most_records)
        for unit in _cut_by_time(of_part, part, most_records)
    ]


def _cut_by_cluster(
    files: Sequence[FileSpan], works: Sequence[ClusterWork], most_records: int
) -> Iterator[tuple[list[FileSpan], list[ClusterWork]]]:
    """Yield the works in parts of which no two have records in the same file, and the files of each."""
    group = _group_clusters(files, len(works))
    works_of: dict[int, list[ClusterWork]] = defaultdict(list)
    files_of: dict[int, list[FileSpan]] = defaultdict(list)
    for number, work in zip(group.tolist(), works, strict=True):
        works_of[number].append(work)
    for file in files:
        files_of[int(group[file.positions[0]])].append(file)
    part: list[ClusterWork] = []
    of_part: list[FileSpan] = []
    records = 0
    for number, of_group in works_of.items():
        part += of_group
        of_part += files_of[number]
        records += sum(file.records for file in files_of[number])
        if records >= most_records:
            yield of_part, part
            part, of_part, records = [], [], 0
    if part:
        yield of_part, part


def _group_clusters(files: Sequence[FileSpan], clusters: int) -> Ints:
    """Return a number for each cluster, the same for clusters that files connect."""
    # Each number leads to a lower one of its group, and at last to the lowest.
    parent = np.arange(clusters)
    for file in files:
        roots = _find_roots(parent, file.positions)
        parent[roots] = parent[file.positions] = roots.min()
    return _find_roots(parent, parent)


def _find_roots(parent: Ints, numbers: Ints) -> Ints:
    while not np.array_equal(numbers, above := parent[numbers]):
        numbers = above
    return numbers


def _cut_by_time(
    files: Sequence[FileSpan], works: Sequence[ClusterWork], most_records: int
) -> Iterator[Unit]:
    first, last = min(work.span.first for work in works), max(work.span.last for work in works)
    starts = [first, *_find_cuts(files, first, last, most_records)]
    for start, end in zip(starts, [*(cut - 1 for cut in starts[1:]), last], strict=True):
        clipped = tuple(part for work in works if (part := _clip(work, start, end)))
        if clipped:
            yield Unit(
                clipped, frozenset(file.path for file in files if file.first <= end and file.last >= start)
            )


def _find_cuts(files: Sequence[FileSpan], first: int, last: int, most_records: int) -> Iterator[int]:
    """Yield the minutes at which further units begin, ascending: where files begin, if that is enough."""
    before = _count_records_before(files, first, last)
    begins = sorted({file.first for file in files if first < file.first <= last})
    records = 0.0
    for begin, end in zip([first, *begins], [*begins, last + 1], strict=True):
        between = before[end - first] - before[begin - first]
        if records and records + between > most_records:
            yield begin
            records = 0
        # To read a file of half as many records more is cheaper than to read it twice.
        parts = min(max(1, round(between / most_records)), end - begin)
        yield from (begin + part * (end - begin) // parts for part in range(1, parts))
        records = between / parts if parts > 1 else records + between


def _count_records_before(files: Sequence[FileSpan], first: int, last: int) -> NDArray[np.float64]:
    """Return how many records come before each minute and the last one's end, if files have them evenly."""
    changes = np.zeros(last - first + 2)
    for file in files:
        a_minute = file.records / (file.last - file.first + 1)
        changes[min(max(file.first - first, 0), len(changes) - 1)] += a_minute
        changes[min(max(file.last - first + 1, 0), len(changes) - 1)] -= a_minute
    return np.concatenate([[0.0], np.cumsum(np.cumsum(changes[:-1]))])


def _clip(work: ClusterWork, start: int, end: int) -> ClusterWork | None:
    span = work.span
    if span.first > end or span.last < start:
        return None
    clipped = replace(span, first=max(span.first, start), last=min(span.last, end))
    if clipped.first == span.first:
        return replace(work, span=clipped)
    return replace(work, span=replace(clipped, initial_brokers=None), follows=True)


def resume_units(
    units: Sequence[Unit],
    observed: Sequence[Mapping[str, ObservedMinutes]],
    left_out: Sequence[Collection[str]],
) -> list[Unit]:
    """Return of each unit the works that were left out, each with what was observed before it.

    ``observed`` and ``left_out`` are those of each unit: see SilverMinutes.
    """
    initial: dict[str, tuple[int, ...]] = {}
    measured: dict[str, int] = {}
    resumed = []
    for unit, of_unit, names in zip(units, observed, left_out, strict=True):
        rest = (work for work in unit.works if work.span.cluster_id in names)
        works = tuple(_begin_with(work, initial, measured) for work in rest)
        resumed.append(Unit(works, unit.paths if works else frozenset()))
        for cluster_id, minutes in of_unit.items():
            initial[cluster_id] = minutes.brokers
            if minutes.first_measured is not None:
                measured.setdefault(cluster_id, minutes.first_measured)
    return resumed


def _begin_with(
    work: ClusterWork, initial: Mapping[str, tuple[int, ...]], measured: Mapping[str, int]
) -> ClusterWork:
    span = replace(work.span, initial_brokers=initial.get(work.span.cluster_id))
    firsts = (work.first_minute, measured.get(span.cluster_id))
    first_minute = min((minute for minute in firsts if minute is not None), default=None)
    return replace(work, span=span, first_minute=first_minute, follows=False)


def merge_observed(parts: Iterable[Mapping[str, ObservedMinutes]]) -> dict[str, ObservedMinutes]:
    """Return what was observed in units that follow each other in time, by cluster."""
    merged: dict[str, ObservedMinutes] = {}
    for part in parts:
        for cluster_id, observed in part.items():
            before = merged.get(cluster_id)
            first = before.first_measured if before else None
            merged[cluster_id] = observed if first is None else replace(observed, first_measured=first)
    return merged
