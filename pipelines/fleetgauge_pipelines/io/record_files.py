"""Read Avro and Parquet files of probe records as one frame of raw records."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession

from fleetgauge_pipelines.io import avro_files, parquet_files
from fleetgauge_pipelines.io.avro_files import RawRecord

#: A raw record: its bytes, its source, its position among all records of the input, and the quarantine reason
#: that only its file can tell.
RAW_DDL = "value binary, source string, position bigint, hint string"

_READERS = {".avro": avro_files.read_avro_records, ".parquet": parquet_files.read_parquet_records}
_ROWS_PER_ARROW_BATCH = 2000


@dataclass(frozen=True, slots=True)
class RecordFile:
    """A record file; ``number`` is its index among all files of its folder, by name."""

    number: int
    path: str
    bytes: int
    modified_ns: int

    @property
    def key(self) -> str:
        """Return an identifier that stays the same until the file is written to."""
        return f"{Path(self.path).name}/{self.bytes}/{self.modified_ns}"


def list_record_files(folder: Path) -> list[RecordFile]:
    """Return the record files of a folder, sorted by name.

    Raises: FileNotFoundError when the folder has none.
    """
    paths = sorted(path for path in folder.iterdir() if path.suffix in _READERS)
    if not paths:
        raise FileNotFoundError(f"{folder}: no *.avro or *.parquet file")
    stats = [path.stat() for path in paths]
    return [
        RecordFile(number, str(path), stat.st_size, stat.st_mtime_ns)
        for number, (path, stat) in enumerate(zip(paths, stats, strict=True))
    ]


def read_record_files(spark: SparkSession, files: Sequence[RecordFile]) -> DataFrame:
    """Return every record of the files with the columns of RAW_DDL; each file is read by a separate task.

    A position combines the file's number and the record's index, so the records of a folder have the same
    order however many of its files are read at a time.
    """
    rows = [(file.number, file.path) for file in files]
    frame = spark.createDataFrame(rows, "number bigint, path string").repartition(len(rows))
    return frame.mapInArrow(_read_batches, RAW_DDL)


def _read_batches(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    for batch in batches:
        for number, path in zip(batch["number"].to_pylist(), batch["path"].to_pylist(), strict=True):
            read_records = _READERS[Path(path).suffix]
            yield from _to_arrow(read_records(Path(path), number))


def _to_arrow(rows: Iterable[RawRecord]) -> Iterator[pa.RecordBatch]:
    schema = pa.schema(
        [("value", pa.binary()), ("source", pa.string()), ("position", pa.int64()), ("hint", pa.string())]
    )
    pending: list[RawRecord] = []
    for row in rows:
        pending.append(row)
        if len(pending) == _ROWS_PER_ARROW_BATCH:
            yield _to_record_batch(pending, schema)
            pending = []
    if pending:
        yield _to_record_batch(pending, schema)


def _to_record_batch(rows: list[RawRecord], schema: pa.Schema) -> pa.RecordBatch:
    columns = zip(*rows, strict=True)
    arrays = [pa.array(column, field.type) for column, field in zip(columns, schema, strict=True)]
    return pa.RecordBatch.from_arrays(arrays, schema=schema)
