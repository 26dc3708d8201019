"""A lake's folder may have any path: relative, and with characters that URLs and SQL escape."""

from datetime import UTC, date, datetime
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from fleetgauge_core.contract import PROBE_MINUTE
from fleetgauge_core.fleet import Fleet
from fleetgauge_core.tables import CLUSTER_WEEKS, PROBE_MINUTES
from tests.spark.agreement import assert_tables_equal
from tests.spark.broken import good_record
from tests.spark.lakes import opened, raw_frame

START = datetime(2026, 3, 2, 10, tzinfo=UTC)
CLOCK = datetime(2026, 3, 2, 11, tzinfo=UTC)
FLEET = Fleet.model_validate({"clusters": [{"id": "orders", "bootstrap": "orders:9092"}]})


@pytest.mark.parametrize("path", ["./lake", "läke 100% 'y' #z?"])
def test_a_lake_may_have_any_path(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, path: str
) -> None:
    monkeypatch.chdir(tmp_path)
    lake, pipeline = opened(spark, Path(path), FLEET)
    records = [good_record(1, START), good_record(2, START)]
    pipeline.process(raw_frame(spark, [PROBE_MINUTE.encode(record) for record in records]), "batch", CLOCK)
    lake.compact(PROBE_MINUTES, date(2026, 3, 2))
    lake.compact(CLUSTER_WEEKS, None)
    lake.vacuum(PROBE_MINUTES)
    lake.expire(PROBE_MINUTES, date(2026, 3, 1))
    assert_tables_equal(tmp_path / path, records, FLEET, CLOCK)
    assert {entry.name for entry in tmp_path.iterdir()} == {Path(path).name}
