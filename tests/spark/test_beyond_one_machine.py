"""The jobs give the same tables on a cluster with executors as on local[*]."""

import os
import random
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pyspark
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
from fleetgauge_local.ports import find_free_ports
from fleetgauge_pipelines.io.cache import default_cache_folder
from fleetgauge_pipelines.io.java import find_java
from fleetgauge_pipelines.io.lake import Lake
from fleetgauge_pipelines.jobs.backfill import open_record_folder
from fleetgauge_pipelines.jobs.simulate_records import write_record_files
from fleetgauge_pipelines.simulation import SimulatedFleet
from tests.spark.lakes import backfilled, content

START = datetime(2026, 11, 16, tzinfo=UTC)
CLOCK = START + timedelta(hours=1)
COMPARED = (BROKER_MINUTES, CLUSTER_MINUTES, CLUSTER_WEEKS, FLEET_WEEKS)
HOST = "127.0.0.1"
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
    prepared = Given(folder)
    # Workers keep their folders in Spark's home, which is no place of ours.
    prepared.home.mkdir()
    for part in Path(pyspark.__file__).parent.iterdir():
        (prepared.home / part.name).symlink_to(part)
    return prepared


def environment(given: Given, **more: str) -> dict[str, str]:
    java = str(find_java(default_cache_folder(), print).home)
    return {**os.environ, "JAVA_HOME": java, "SPARK_HOME": str(given.home), **more}


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


@contextmanager
def daemon(given: Given, name: str, *arguments: str) -> Iterator[None]:
    command = [str(given.home / "bin/spark-class"), f"org.apache.spark.deploy.{name}", "--host", HOST]
    env = environment(given, SPARK_DAEMON_MEMORY="256m", SPARK_LOCAL_IP=HOST)
    with (given.folder / f"{name}.log").open("a") as log:
        process = subprocess.Popen([*command, *arguments], env=env, stdout=log, stderr=log)
        try:
            yield
        finally:
            process.terminate()
            process.wait(timeout=30)


@contextmanager
def standalone(given: Given) -> Iterator[str]:
    """A master and two workers of one core; its URL."""
    port, *other_ports = map(str, find_free_ports(6, random.Random()))
    url, size = f"spark://{HOST}:{port}", ("--cores", "1", "--memory", "1g")
    with daemon(given, "master.Master", "--port", port, "--webui-port", other_ports[0]):
        where = [("--port", other_ports[n], "--webui-port", other_ports[n + 1]) for n in (1, 3)]
        work = ("--work-dir", str(given.folder / "work"))
        with (
            daemon(given, "worker.Worker", *where[0], *size, *work, url),
            daemon(given, "worker.Worker", *where[1], *size, *work, url),
        ):
            yield url


def test_spark_submit_runs_a_command_on_a_standalone_cluster(given: Given) -> None:
    lake = given.folder / "of-standalone"
    words = subprocess.check_output([sys.executable, "-m", "fleetgauge_pipelines.jobs.submit"], text=True)
    with standalone(given) as url:
        submit = [str(given.home / "bin/spark-submit"), "--master", url, "--executor-memory", "512m"]
        submit += ["--conf", f"spark.driver.host={HOST}", "--conf", "spark.sql.shuffle.partitions=2"]
        env = environment(given, PYSPARK_PYTHON=sys.executable, SPARK_LOCAL_IP=HOST)
        run([*submit, *words.split(), *given.backfill(lake)], env)
    assert executors_in(given.folder / "work") >= {"0", "1"}
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
