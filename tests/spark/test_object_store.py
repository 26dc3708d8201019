"""Spark's own writing to a lake in an object store, against a server of the S3 protocol."""

import os
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import pytest

from fleetgauge_core.lake.lake_files import open_files
from fleetgauge_core.lake.table_store import TableStore
from fleetgauge_core.tables import BROKER_MINUTES, CLUSTER_MINUTES, CLUSTER_WEEKS, PROBE_MINUTES, Table
from tests.s3 import S3
from tests.spark.standalone import make_spark_home, run_standalone
from tests.waiting import wait_until

pytestmark = pytest.mark.thorough

CLOCK = "2026-04-01T12:00:00Z"
VERSION = "2.29.52"
#: Hadoop's client, and the parts of the AWS SDK that it uses in place of the bundle of 642 MB that it names.
PACKAGES = (
    "org.apache.hadoop:hadoop-aws:3.4.2",
    *(f"software.amazon.awssdk:{name}:{VERSION}" for name in ("s3", "s3-transfer-manager", "sts")),
)
#: Spark brings these.
EXCLUDED = ("software.amazon.awssdk:bundle", "org.wildfly.openssl:wildfly-openssl", "org.slf4j:slf4j-api")
STARTED_S = 300
COMPARED = (PROBE_MINUTES, BROKER_MINUTES, CLUSTER_MINUTES, CLUSTER_WEEKS)
VOLATILE = ("ingested_at", "computed_at", "source")


@pytest.fixture
def environment(s3: S3, monkeypatch: pytest.MonkeyPatch) -> Mapping[str, str]:
    for name, value in s3.environment.items():
        monkeypatch.setenv(name, value)
    submitted = (
        *("--packages", ",".join(PACKAGES)),
        *("--exclude-packages", ",".join(EXCLUDED)),
        *("--conf", f"spark.hadoop.fs.s3a.endpoint={s3.endpoint}"),
        *("--conf", "spark.hadoop.fs.s3a.path.style.access=true"),
        "pyspark-shell",
    )
    return os.environ | {"PYSPARK_SUBMIT_ARGS": " ".join(submitted)}


@pytest.fixture
def simulated(tmp_path: Path) -> Path:
    folder = tmp_path / "simulated"
    arguments = (
        "--records",
        "files",
        "--minutes",
        "10",
        "--clusters",
        "2",
        "--end",
        CLOCK,
        "--to",
        str(folder),
    )
    subprocess.run([sys.executable, "-m", "fleetgauge_core", "simulate", *arguments], check=True)
    return folder


@contextmanager
def backfilling(
    simulated: Path, lake: str, log: Path, environment: Mapping[str, str] | None = None
) -> Iterator["subprocess.Popen[bytes]"]:
    """Run a backfill, with its output in a file."""
    arguments = (
        "--config",
        str(simulated / "fleet.yaml"),
        "--from",
        str(simulated / "records"),
        "--lake",
        lake,
    )
    command = (sys.executable, "-m", "fleetgauge_core", "backfill", *arguments, "--clock", CLOCK)
    with (
        log.open("wb") as output,
        subprocess.Popen(command, stdout=output, stderr=output, env=environment) as process,
    ):
        try:
            yield process
        finally:
            process.kill()


def read(lake: str, table: Table) -> list[tuple[str, ...]]:
    rows = TableStore(lake, table).rows()
    return sorted(tuple(str(value) for name, value in row.items() if name not in VOLATILE) for row in rows)


def test_two_backfills_into_an_object_store_are_one_that_writes_what_it_writes_to_a_folder(
    simulated: Path, s3: S3, environment: Mapping[str, str], tmp_path: Path
) -> None:
    s3.make_bucket("spark")
    lake, read_by = "s3a://spark/fleet", "s3://spark/fleet"
    with backfilling(simulated, lake, tmp_path / "first.log", environment) as writer:
        lease = open_files(f"{read_by}/_checkpoints")
        wait_until(
            lambda: writer.poll() is not None or bool(lease.list_sizes("leases")), STARTED_S, "the lease"
        )
        with backfilling(simulated, lake, tmp_path / "second.log", environment) as second:
            assert second.wait(STARTED_S) == 2
        last_line = (tmp_path / "second.log").read_text().splitlines()[-1]
        assert f"{lake}: another pipeline is writing this lake by `fleetgauge backfill` on " in last_line
        assert f"(process {writer.pid}) since " in last_line
        assert writer.wait(STARTED_S) == 0
    folder = str(tmp_path / "folder")
    with backfilling(simulated, folder, tmp_path / "local.log") as local:
        assert local.wait(STARTED_S) == 0
    for table in COMPARED:
        rows = read(read_by, table)
        assert rows
        assert rows == read(folder, table), table.path


def test_executors_use_the_credentials_of_the_driver_and_show_them_nowhere(
    simulated: Path, s3: S3, environment: Mapping[str, str], tmp_path: Path
) -> None:
    """The master and its workers are started without the variables."""
    s3.make_bucket("executors")
    lake, folder = "s3a://executors/fleet", str(tmp_path / "folder")
    without = {name: value for name, value in environment.items() if name not in s3.environment}
    (tmp_path / "cluster").mkdir()
    home = make_spark_home(tmp_path / "spark")
    with run_standalone(tmp_path / "cluster", home, without) as url:
        submitted = environment["PYSPARK_SUBMIT_ARGS"].replace(
            "pyspark-shell", f"--master {url} pyspark-shell"
        )
        on_cluster = {**environment, "PYSPARK_SUBMIT_ARGS": submitted}
        with backfilling(simulated, lake, tmp_path / "on-cluster.log", on_cluster) as writer:
            assert writer.wait(STARTED_S) == 0, (tmp_path / "on-cluster.log").read_text()
    with backfilling(simulated, folder, tmp_path / "local.log") as local:
        assert local.wait(STARTED_S) == 0
    for table in COMPARED:
        assert read("s3://executors/fleet", table) == read(folder, table), table.path
    logs = [path for path in tmp_path.rglob("*") if path.is_file() and path.name.endswith(("log", "stderr"))]
    assert any(path.name == "stderr" for path in logs)
    secret = s3.environment["AWS_SECRET_ACCESS_KEY"]
    assert not [path for path in logs if secret in path.read_text(errors="replace")]
