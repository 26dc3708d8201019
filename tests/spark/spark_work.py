"""What a batch makes Spark do: a small one spends its time on planning, scheduling and committing."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession

from tests.spark.lakes import versions


@dataclass(frozen=True, slots=True)
class SparkWork:
    """Counts of SQL executions, of jobs, and of commits to the tables of a lake."""

    executions: int
    jobs: int
    commits: int


def count_spark_work(spark: SparkSession, lake: Path, work: Callable[[], Any]) -> SparkWork:
    """Do the work, and return what it made Spark do."""
    before = _count_all(spark, lake)
    work()
    return SparkWork(*(now - then for now, then in zip(_count_all(spark, lake), before, strict=True)))


def _count_all(spark: SparkSession, lake: Path) -> tuple[int, int, int]:
    session: Any = spark._jsparkSession
    context = session.sparkContext()
    context.listenerBus().waitUntilEmpty()
    store = session.sharedState().statusStore()
    newest = store.executionsList(max(0, store.executionsCount() - 1), 1)
    executions = int(newest.head().executionId()) + 1 if newest.nonEmpty() else 0
    return executions, int(context.dagScheduler().numTotalJobs()), sum(versions(lake).values())
