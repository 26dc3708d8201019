"""Selects the files of a table that may have rows in spans of minutes, and reads these rows."""

from collections.abc import Sequence

import pyarrow as pa
import pyarrow.compute as pc

from fleetgauge_pipelines.io.table_files import FILE, TableFiles
from fleetgauge_pipelines.transforms.minute_spans import MinuteSpans
from fleetgauge_pipelines.transforms.records import to_time


def select_spans(files: TableFiles, spans: MinuteSpans) -> TableFiles:
    """Return the files that may have rows in spans."""
    first, last = min(spans.clusters), max(spans.clusters)
    lo, hi = to_time(int(spans.firsts.min())), to_time(int(spans.lasts.max()))
    return files.select(
        lambda file: file.overlaps("minute", lo, hi) and file.overlaps("cluster_id", first, last)
    )


def read_spans(
    files: TableFiles, spans: MinuteSpans, columns: Sequence[str], where: pc.Expression | None = None
) -> pa.Table:
    """Return columns of the rows in spans for which a condition holds; they have cluster_id and minute.

    Files may have many times as many rows of other clusters, of which only a part is in memory at a time.

    Raises: DataFileError.
    """
    condition = spans.where if where is None else spans.where & where
    fields = [pa.field(name, pa.string()) if name == FILE else files.schema.field(name) for name in columns]
    parts = (spans.select(part) for part in files.read_parts(columns, condition))
    return pa.concat_tables([pa.schema(fields).empty_table(), *parts])
