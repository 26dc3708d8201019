"""A Spark master and its workers as processes of this machine."""

import os
import random
import subprocess
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import pyspark

from fleetgauge_local.ports import find_free_ports
from fleetgauge_pipelines.io.cache import default_cache_folder
from fleetgauge_pipelines.io.java import find_java

HOST = "127.0.0.1"


def make_spark_home(folder: Path) -> Path:
    """Return a writable SPARK_HOME, in which workers keep their folders: PySpark is no place of ours."""
    folder.mkdir()
    for part in Path(pyspark.__file__).parent.iterdir():
        (folder / part.name).symlink_to(part)
    return folder


def list_java_variables(home: Path) -> dict[str, str]:
    """Return the variables with which Spark's scripts find Java and their own home."""
    java = str(find_java(default_cache_folder(), print).home)
    return {"JAVA_HOME": java, "SPARK_HOME": str(home)}


@contextmanager
def run_standalone(folder: Path, home: Path, environment: Mapping[str, str] = os.environ) -> Iterator[str]:
    """Run a master and two workers of one core, with their files in ``folder``; yield the URL."""
    variables = {
        **environment,
        **list_java_variables(home),
        "SPARK_DAEMON_MEMORY": "256m",
        "SPARK_LOCAL_IP": HOST,
    }

    @contextmanager
    def running(name: str, *arguments: str) -> Iterator[None]:
        command = [str(home / "bin/spark-class"), f"org.apache.spark.deploy.{name}", "--host", HOST]
        with (folder / f"{name}.log").open("a") as log:
            process = subprocess.Popen([*command, *arguments], env=variables, stdout=log, stderr=log)
            try:
                yield
            finally:
                process.terminate()
                process.wait(timeout=30)

    port, *other_ports = map(str, find_free_ports(6, random.Random()))
    url, size = f"spark://{HOST}:{port}", ("--cores", "1", "--memory", "1g")
    with running("master.Master", "--port", port, "--webui-port", other_ports[0]):
        where = [("--port", other_ports[n], "--webui-port", other_ports[n + 1]) for n in (1, 3)]
        work = ("--work-dir", str(folder / "work"))
        with (
            running("worker.Worker", *where[0], *size, *work, url),
            running("worker.Worker", *where[1], *size, *work, url),
        ):
            yield url
