"""Reads the rows of a table that are in spans of clusters."""

from collections.abc import Sequence

import pyarrow as pa
import pyarrow.compute as pc

from fleetgauge_pipelines.io.table_files import FILE, TableFiles
from fleetgauge_pipelines.transforms.cluster_spans import ClusterSpans


def read_spans(
    files: TableFiles, spans: ClusterSpans, columns: Sequence[str], where: pc.Expression | None = None
) -> pa.Table:
    """Return columns of the rows in spans for which a condition holds; they have cluster_id and minute.

    Files may have many times as many rows of other clusters, of which only a part is in memory at a time.

    Raises: DataFileError.
    """
    condition = spans.where if where is None else spans.where & where
    fields = [pa.field(name, pa.string()) if name == FILE else files.schema.field(name) for name in columns]
    parts = (spans.select(part) for part in files.read_parts(columns, condition))
    return pa.concat_tables([pa.schema(fields).empty_table(), *parts])
