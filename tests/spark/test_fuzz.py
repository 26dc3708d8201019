"""Random bytes end in bronze, as a replay, or in quarantine, as the contract requires."""

from collections import Counter
from pathlib import Path
from random import Random

import pytest
from pyspark.sql import SparkSession

from tests.spark.fuzz import Fate, fate, judge, process, values

pytestmark = pytest.mark.thorough

RECORDS, SEED = 2000, 20260402


def test_damaged_records_and_noise_end_in_bronze_or_quarantine(spark: SparkSession, tmp_path: Path) -> None:
    sent = values(RECORDS, Random(SEED))
    fates = Counter(fate(value) for value in sent)
    assert fates[Fate.TAKEN] > RECORDS // 5
    assert fates[Fate.REFUSED] > RECORDS // 2

    counts = process(spark, tmp_path / "lake", sent, 2, lambda _: None)

    report = judge(tmp_path / "lake", sent, counts)
    assert not any(report["faults"].values()), report
    assert report["replayed"]
    assert {"not_decodable", "unknown_fingerprint", "oversize", "trailing_bytes"} < set(report["reasons"])
    assert {"conflicting_duplicate", "counts_do_not_add_up", "unsorted_latencies"} < set(report["reasons"])
