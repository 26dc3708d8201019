"""What a task of Spark does with samples in a file; a module of its own, which a worker imports quickly."""

from collections.abc import Iterable
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from fleetgauge_pipelines.transforms.lists import Lists, rank_of


def compute_rows(path: Path, sort: bool, groups: Iterable[int]) -> pa.Table:
    """Return p99 and availability of the rows of some row groups."""
    return pa.concat_tables([_compute_group(path, sort, group) for group in groups])


def compute_sums(path: Path, sort: bool, groups: Iterable[int]) -> tuple[int, float]:
    """Return the sums of p99 and availability of the rows of some row groups."""
    p99_us, availability = 0, 0.0
    for group in groups:
        rows = _compute_group(path, sort, group)
        p99_us += pc.sum(rows["p99_us"]).as_py()
        availability += pc.sum(rows["availability"]).as_py()
    return p99_us, availability


def _compute_group(path: Path, sort: bool, group: int) -> pa.Table:
    table = pq.ParquetFile(path).read_row_group(group)
    samples = Lists.from_arrow(table["e2e_us"])
    p99, has_sample = (samples.ascending() if sort else samples).at(rank_of(99, samples.sizes))
    availability = pc.divide(pa.array(samples.sizes, pa.float64()), table["attempted"].cast(pa.float64()))
    columns = [table["id"], pa.array(p99, pa.int32(), mask=~has_sample), availability]
    return pa.table(columns, names=["id", "p99_us", "availability"])
