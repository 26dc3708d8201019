"""Settings without which jobs would only be slower, or end where they need not."""

import gc
import os
import signal
import sys
from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession

from fleetgauge_pipelines.io.tasks import run_tasks


def test_the_drivers_jvm_compiles_huge_methods(spark: SparkSession) -> None:
    jvm: Any = spark._jvm
    started_with = jvm.java.lang.management.ManagementFactory.getRuntimeMXBean().getInputArguments()
    assert "-XX:-DontCompileHugeMethods" in list(started_with)


def test_python_workers_begin_with_what_tasks_import_and_never_look_through_it(spark: SparkSession) -> None:
    def begins_with(module: str) -> bool:
        return module in sys.modules and gc.get_freeze_count() > len(sys.modules)

    assert run_tasks(spark, begins_with, ["fleetgauge_pipelines.jobs.silver_tasks"]) == [True]


def test_a_task_whose_python_worker_is_killed_runs_again(spark: SparkSession, tmp_path: Path) -> None:
    def kill_first_worker(mark: Path) -> int:
        if not mark.exists():
            mark.touch()
            os.kill(os.getpid(), signal.SIGKILL)
        return os.getpid()

    marks = [tmp_path / "first", tmp_path / "second"]
    assert len(run_tasks(spark, kill_first_worker, marks)) == len(marks)
    assert all(mark.exists() for mark in marks)
