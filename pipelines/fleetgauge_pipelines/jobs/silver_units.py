"""Cuts the minutes to compute into units, each of which one task holds in memory.

A unit has all records of its clusters and minutes, so that no result has to be merged. It is cut along the
files of bronze where that is possible, because every task reads the files that its unit touches.
"""

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from fleetgauge_pipelines.transforms.silver import ClusterWork, ObservedMinutes

Unit = tuple[ClusterWork, ...]


@dataclass(frozen=True, slots=True)
class FileSpan:
    """A file of bronze: its number of records, and the clusters and minutes (since 1970) that it may have."""

    records: int
    first_cluster: str
    last_cluster: str
    first: int
    last: int


def plan_units(
    files: Sequence[FileSpan], works: Sequence[ClusterWork], most_records: int
) -> list[list[Unit]]:
    """Return units of about ``most_records`` in strips; the units of a strip follow each other in time.

    A strip has some of the clusters. ``files`` are those that have records of the works' minutes.
    """
    if sum(file.records for file in files) <= most_records:
        return [[tuple(works)]] if works else []
    return [
        list(_cut_by_time(strip_files, strip, most_records))
        for strip_files, strip in _cut_by_cluster(files, works, most_records)
    ]


def _cut_by_cluster(
    files: Sequence[FileSpan], works: Sequence[ClusterWork], most_records: int
) -> Iterator[tuple[list[FileSpan], list[ClusterWork]]]:
    """Yield the works in strips between which no file straddles, and the files of each."""
    waiting = sorted(files, key=lambda file: file.first_cluster)
    strip: list[ClusterWork] = []
    of_strip: list[FileSpan] = []
    ordered = sorted(works, key=lambda work: work.span.cluster_id)
    for work, following in zip(ordered, [*ordered[1:], None], strict=True):
        cluster_id = work.span.cluster_id
        while waiting and waiting[0].first_cluster <= cluster_id:
            of_strip.append(waiting.pop(0))
        strip.append(work)
        straddles = following and any(file.last_cluster >= following.span.cluster_id for file in of_strip)
        if not following or (not straddles and sum(file.records for file in of_strip) >= most_records):
            yield of_strip, strip
            strip, of_strip = [], []


def _cut_by_time(
    files: Sequence[FileSpan], works: Sequence[ClusterWork], most_records: int
) -> Iterator[Unit]:
    first, last = min(work.span.first for work in works), max(work.span.last for work in works)
    starts = [first, *_find_cuts(files, first, last, most_records)]
    for start, end in zip(starts, [*(cut - 1 for cut in starts[1:]), last], strict=True):
        unit = tuple(clipped for work in works if (clipped := _clip(work, start, end)))
        if unit:
            yield unit


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
        parts = min(max(1, math.ceil(between / most_records)), end - begin)
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
    return replace(work, span=replace(span, first=max(span.first, start), last=min(span.last, end)))


def chain_units(units: Sequence[Unit], outlines: Sequence[Mapping[str, ObservedMinutes]]) -> list[Unit]:
    """Return the units of a strip, each beginning with what was observed in those before it.

    ``outlines`` are what was observed in the units without the last one, by cluster; nothing of a cluster
    without a record.
    """
    initial: dict[str, tuple[int, ...]] = {}
    measured: dict[str, int] = {}
    chained = [units[0]]
    for unit, outline in zip(units[1:], outlines, strict=True):
        for cluster_id, observed in outline.items():
            initial[cluster_id] = observed.brokers
            if observed.first_measured is not None:
                measured.setdefault(cluster_id, observed.first_measured)
        chained.append(tuple(_begin_with(work, initial, measured) for work in unit))
    return chained


def _begin_with(
    work: ClusterWork, initial: Mapping[str, tuple[int, ...]], measured: Mapping[str, int]
) -> ClusterWork:
    span = work.span
    brokers = initial.get(span.cluster_id, span.initial_brokers)
    firsts = (work.first_minute, measured.get(span.cluster_id))
    first_minute = min((minute for minute in firsts if minute is not None), default=None)
    return replace(work, span=replace(span, initial_brokers=brokers), first_minute=first_minute)


def merge_observed(parts: Iterable[Mapping[str, ObservedMinutes]]) -> dict[str, ObservedMinutes]:
    """Return what was observed in units that follow each other in time, by cluster."""
    merged: dict[str, ObservedMinutes] = {}
    for part in parts:
        for cluster_id, observed in part.items():
            before = merged.get(cluster_id)
            first = before.first_measured if before else None
            merged[cluster_id] = observed if first is None else replace(observed, first_measured=first)
    return merged
