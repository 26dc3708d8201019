"""The jobs give the same tables on a cluster with executors as on local[*]."""

import os
import subprocess
import sys
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

import psutil
import pytest
import yaml
from pyspark.sql import SparkSession

from fleetgauge_core.fleet import load_fleet
from fleetgauge_core.tables import (
    BROKER_MINUTES,
    CLUSTER_MINUTES,
    CLUSTER_WEEKS,
    FLEET_WEEKS,
)
from fleetgauge_pipelines.io.lake import Lake
from fleetgauge_pipelines.jobs.backfill import open_record_folder
from fleetgauge_pipelines.jobs.simulate_records import write_record_files
from fleetgauge_pipelines.simulation import SimulatedFleet
from tests.spark.lakes import backfilled, content
from tests.spark.standalone import HOST, list_java_variables, make_spark_home, run_standalone
from tests.waiting import wait_until

START = datetime(2026, 11, 16, tzinfo=UTC)
CLOCK = START + timedelta(hours=1)
COMPARED = (BROKER_MINUTES, CLUSTER_MINUTES, CLUSTER_WEEKS, FLEET_WEEKS)
#: Each test starts three JVMs or more.
pytestmark = [pytest.mark.thorough, pytest.mark.timeout(600)]


@dataclass(frozen=True, slots=True)
class Given:
    """Records, their fleet, the tables that local[*] computes from them, and a writable SPARK_HOME."""

    folder: Path

    @property
    def home(self) -> Path:
        return self.folder / "spark"

    def backfill(self, lake: Path) -> list[str]:
        records, config = str(self.folder / "records"), str(self.folder / "fleet.yaml")
        clock = f"{CLOCK:%Y-%m-%dT%H:%M:%SZ}"
        return ["backfill", "--from", records, "--config", config, "--lake", str(lake), "--clock", clock]

    def assert_same(self, lake: Path) -> None:
        for table in COMPARED:
            wanted = content(self.folder / "lake", table)
            assert wanted
            assert content(lake, table) == wanted, table.path


@pytest.fixture(scope="module")
def given(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Given:
    folder = tmp_path_factory.mktemp("beyond")
    simulated = SimulatedFleet(seed=4, clusters=3, start=START, minutes=4)
    write_record_files(simulated, folder / "records", lambda *_: None)
    (folder / "fleet.yaml").write_text(yaml.safe_dump(simulated.fleet_document()))
    lake, fleet = Lake(spark, str(folder / "lake")), load_fleet(folder / "fleet.yaml")
    backfilled(spark, lake, fleet, open_record_folder(folder / "records"), CLOCK)
    make_spark_home(folder / "spark")
    return Given(folder)


def environment(given: Given, **more: str) -> dict[str, str]:
    return {**os.environ, **list_java_variables(given.home), **more}


def run(command: list[str], env: Mapping[str, str]) -> None:
    done = subprocess.run(command, env=env, capture_output=True, text=True, timeout=500, check=False)
    assert done.returncode == 0, done.stderr[-4000:]


def executors_in(work: Path) -> set[str]:
    """Each executor that a worker started has a folder; one that is lost is followed by another."""
    return {folder.name for folder in work.glob("**/app-*/*") if folder.is_dir()}


def test_the_environments_master_takes_precedence(given: Given) -> None:
    lake = given.folder / "of-local-cluster"
    env = environment(given, PYSPARK_SUBMIT_ARGS="--master local-cluster[2,1,1024] pyspark-shell")
    run([str(Path(sys.executable).with_name("fleetgauge")), *given.backfill(lake)], env)
    assert executors_in(given.home / "work") >= {"0", "1"}
    given.assert_same(lake)


def test_spark_submit_runs_a_command_on_a_standalone_cluster(given: Given) -> None:
    lake = given.folder / "of-standalone"
    words = subprocess.check_output([sys.executable, "-m", "fleetgauge_pipelines.jobs.submit"], text=True)
    with run_standalone(given.folder, given.home) as url:
        submit = [str(given.home / "bin/spark-submit"), "--master", url, "--executor-memory", "512m"]
        submit += ["--conf", f"spark.driver.host={HOST}", "--conf", "spark.sql.shuffle.partitions=2"]
        env = environment(given, PYSPARK_PYTHON=sys.executable, SPARK_LOCAL_IP=HOST)
        run([*submit, *words.split(), *given.backfill(lake)], env)
    assert executors_in(given.folder / "work") >= {"0", "1"}
    given.assert_same(lake)


def list_working_executors(driver: int) -> list[psutil.Process]:
    """Return the executors of a command that have a Python worker."""
    working = []
    for process in psutil.Process(driver).children(recursive=True):
        with suppress(psutil.NoSuchProcess):
            is_executor = any("CoarseGrainedExecutorBackend" in word for word in process.cmdline())
            if is_executor and any(forker.children() for forker in process.children()):
                working.append(process)
    return working


def test_a_backfill_survives_the_loss_of_an_executor_and_its_workers(given: Given) -> None:
    lake = given.folder / "of-lost-executor"
    env = environment(given, PYSPARK_SUBMIT_ARGS="--master local-cluster[2,1,1024] pyspark-shell")
    command = [str(Path(sys.executable).with_name("fleetgauge")), *given.backfill(lake)]
    log = given.folder / "lost-executor.log"
    with log.open("w") as output, subprocess.Popen(command, env=env, stdout=output, stderr=output) as driver:
        try:
            wait_until(lambda: bool(list_working_executors(driver.pid)), 300, "an executor at work")
            executor = list_working_executors(driver.pid)[0]
            for process in (*executor.children(recursive=True), executor):
                process.kill()
            assert driver.wait(300) == 0, log.read_text()
        finally:
            driver.kill()
    given.assert_same(lake)


LOSES_AN_EXECUTOR = """
import psutil
from pyspark.sql import SparkSession
from fleetgauge_pipelines.io.lake import materialize

spark = SparkSession.builder.getOrCreate()
rows = materialize(spark.range(0, 1000, 1, 4))
executor = next(
    process
    for process in psutil.process_iter(["cmdline"])
    if any("CoarseGrainedExecutorBackend" in word for word in process.info["cmdline"] or ())
    and psutil.Process().parent() in process.parents()
)
executor.kill()
executor.wait(30)
assert sorted(row.id for row in rows.collect()) == list(range(1000))
spark.stop()
"""


def test_materialized_rows_survive_the_loss_of_an_executor(given: Given) -> None:
    script = given.folder / "loses_an_executor.py"
    script.write_text(LOSES_AN_EXECUTOR)
    submit = [str(given.home / "bin/spark-submit"), "--master", "local-cluster[2,1,1024]", str(script)]
    run(submit, environment(given, PYSPARK_PYTHON=sys.executable, SPARK_LOCAL_IP=HOST))
