"""Read topics of probe records as frames of raw records: a stream's rows, or ranges of offsets."""

import json
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
from itertools import pairwise
from operator import or_

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F

from fleetgauge_core.fleet import ClusterAccess
from fleetgauge_core.metadata import OffsetGap
from fleetgauge_pipelines.io.kafka_options import build_kafka_options

#: A range never crosses a multiple of this offset, so that ranges stay the same when the topic grows.
_RANGE_RECORDS = 4096

#: A position has the partition in its high bits, and the offset in its low ones.
_PARTITION_SHIFT = 48
_OFFSET_MASK = (1 << _PARTITION_SHIFT) - 1

#: Estimated size of a record: a ProbeMinute of 100 probes has about 1 KiB.
_RECORD_BYTES = 1024


@dataclass(frozen=True, slots=True)
class OffsetRange:
    """Offsets of a partition from ``start`` (included) to ``end`` (not included)."""

    topic_id: str
    partition: int
    start: int
    end: int

    @property
    def bytes(self) -> int:
        """Return the estimated size of the range's records."""
        return (self.end - self.start) * _RECORD_BYTES

    @property
    def key(self) -> str:
        """Return an identifier of the range, with the id of its topic."""
        return f"{self.topic_id}/{self.partition}/{self.start}-{self.end}"

    @classmethod
    def parse(cls, key: str) -> "OffsetRange":
        """Return the range with that key. Raises: ValueError if it is the key of something else."""
        topic_id, partition, offsets = key.rsplit("/", 2)
        start, end = offsets.split("-")
        return cls(topic_id, int(partition), int(start), int(end))


def split_offsets(topic_id: str, bounds: Mapping[int, tuple[int, int]]) -> list[OffsetRange]:
    """Split the offsets of all partitions, given by ``bounds`` as (first, end), into ranges.

    Ranges are sorted by their offsets, so that all partitions are read side by side.
    """
    ranges = [
        OffsetRange(topic_id, partition, max(first, start), min(end, start + _RANGE_RECORDS))
        for partition, (first, end) in bounds.items()
        if first < end
        for start in range(first - first % _RANGE_RECORDS, end, _RANGE_RECORDS)
    ]
    return sorted(ranges, key=lambda range_: (range_.start // _RANGE_RECORDS, range_.partition))


def read_offset_ranges(
    spark: SparkSession, access: ClusterAccess, topic: str, ranges: Sequence[OffsetRange]
) -> DataFrame:
    """Return every record of the ranges of one topic, with the columns of record_files.RAW_DDL."""
    starts: dict[int, list[int]] = defaultdict(list)
    ends: dict[int, list[int]] = defaultdict(list)
    for range_ in ranges:
        starts[range_.partition].append(range_.start)
        ends[range_.partition].append(range_.end)
    rows = (
        spark.read.format("kafka")
        .options(**build_kafka_options(access))
        .option("assign", json.dumps({topic: list(starts)}))
        .option(
            "startingOffsets",
            json.dumps({topic: {partition: min(offsets) for partition, offsets in starts.items()}}),
        )
        .option(
            "endingOffsets",
            json.dumps({topic: {partition: max(offsets) for partition, offsets in ends.items()}}),
        )
        # The topic's retention may delete records meanwhile; see find_missing_ranges.
        .option("failOnDataLoss", "false")
        .load()
    )
    return to_raw_records(rows, {topic: ranges[0].topic_id})


def find_missing_ranges(raw: DataFrame, ranges: Sequence[OffsetRange]) -> list[OffsetGap]:
    """Return the spans of offsets in the ranges of which ``raw``, their rows or more, has no row."""
    wanted = [
        F.col("position").between(
            (range_.partition << _PARTITION_SHIFT) + range_.start,
            (range_.partition << _PARTITION_SHIFT) + range_.end - 1,
        )
        for range_ in ranges
    ]
    rows = raw.where(reduce(or_, wanted))
    if rows.count() == sum(range_.end - range_.start for range_ in ranges):
        return []
    read: dict[int, list[int]] = defaultdict(list)
    for row in rows.select("position").collect():
        read[row["position"] >> _PARTITION_SHIFT].append(row["position"] & _OFFSET_MASK)
    return [
        gap
        for range_ in ranges
        for gap in find_missing_offsets(range_.partition, range_.start, range_.end, read[range_.partition])
    ]


def remove_ranges(gaps: Iterable[OffsetGap], ranges: Sequence[OffsetRange]) -> list[OffsetGap]:
    """Return the spans of offsets that are in none of the ranges, which are all of the same topic."""
    return [
        left
        for gap in gaps
        for left in find_missing_offsets(
            *gap,
            (
                offset
                for range_ in ranges
                if range_.partition == gap.partition
                for offset in range(max(range_.start, gap.start), min(range_.end, gap.end))
            ),
        )
    ]


def find_missing_offsets(partition: int, start: int, end: int, read: Iterable[int]) -> list[OffsetGap]:
    """Return the spans of offsets from ``start`` to ``end`` (not included) that are not among ``read``."""
    borders = [start - 1, *sorted(offset for offset in read if start <= offset < end), end]
    spans = (OffsetGap(partition, before + 1, after) for before, after in pairwise(borders))
    return [span for span in spans if span.length > 0]


def to_raw_records(rows: DataFrame, topic_ids: Mapping[str, str]) -> DataFrame:
    """Return rows of Spark's Kafka source with the columns of record_files.RAW_DDL.

    A position combines partition and offset. It orders records of one key, which share a partition.
    """
    slash = F.lit("/")
    source = F.concat(_topic_id(topic_ids), slash, F.col("partition"), slash, F.col("offset"))
    position = F.shiftleft(F.col("partition").cast("long"), _PARTITION_SHIFT) + F.col("offset")
    return rows.select(
        "value", source.alias("source"), position.alias("position"), F.lit(None).cast("string").alias("hint")
    )


def _topic_id(topic_ids: Mapping[str, str]) -> Column:
    pairs = [F.lit(part) for pair in topic_ids.items() for part in pair]
    return F.create_map(*pairs)[F.col("topic")]
