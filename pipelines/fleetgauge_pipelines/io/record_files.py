"""Files of probe records as one frame of raw records, whatever their format."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession

from fleetgauge_pipelines.io import avro_files, parquet_files
from fleetgauge_pipelines.io.avro_files import Row

RAW_DDL = "value binary, source string, position bigint, hint string"

_READERS = {".avro": avro_files.raw_records, ".parquet": parquet_files.raw_records}
_ROWS_PER_ARROW_BATCH = 2000


@dataclass(frozen=True, slots=True)
class RecordFile:
    """A file as it was found; ``number`` is its place among all of its folder."""

    number: int
    path: str
    bytes: int
    modified_ns: int

    @property
    def key(self) -> str:
        """Equal as long as nobody writes to the file."""
        return f"{Path(self.path).name}/{self.bytes}/{self.modified_ns}"


def record_files(folder: Path) -> list[RecordFile]:
    """The folder's files by name. Raises FileNotFoundError when there is none."""
    paths = sorted(path for path in folder.iterdir() if path.suffix in _READERS)
    if not paths:
        raise FileNotFoundError(f"{folder}: no *.avro or *.parquet file")
    stats = [path.stat() for path in paths]
    return [
        RecordFile(number, str(path), stat.st_size, stat.st_mtime_ns)
        for number, (path, stat) in enumerate(zip(paths, stats, strict=True))
    ]


def read_files(spark: SparkSession, files: Sequence[RecordFile]) -> DataFrame:
    """Every record of the files: value, source (`file:index`), position, hint; a task a file.

    A position is the file's number and the record's index, so records of a folder
    have the same order however many of its files are read at a time.
    """
    rows = [(file.number, file.path) for file in files]
    frame = spark.createDataFrame(rows, "number bigint, path string").repartition(len(rows))
    return frame.mapInArrow(_read_batches, RAW_DDL)


def _read_batches(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    for batch in batches:
        for number, path in zip(batch["number"].to_pylist(), batch["path"].to_pylist(), strict=True):
            raw_records = _READERS[Path(path).suffix]
            yield from _in_arrow(raw_records(Path(path), number))


def _in_arrow(rows: Iterable[Row]) -> Iterator[pa.RecordBatch]:
    schema = pa.schema(
        [("value", pa.binary()), ("source", pa.string()), ("position", pa.int64()), ("hint", pa.string())]
    )
    waiting: list[Row] = []
    for row in rows:
        waiting.append(row)
        if len(waiting) == _ROWS_PER_ARROW_BATCH:
            yield _batch(waiting, schema)
            waiting = []
    if waiting:
        yield _batch(waiting, schema)


def _batch(rows: list[Row], schema: pa.Schema) -> pa.RecordBatch:
    columns = zip(*rows, strict=True)
    arrays = [pa.array(column, field.type) for column, field in zip(columns, schema, strict=True)]
    return pa.RecordBatch.from_arrays(arrays, schema=schema)
