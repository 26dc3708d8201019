"""Prepare Kafka for starting brokers: fetch its jars and compute what is needed once per user.

The cache keeps two files per jar lock and Java version: the metadata checkpoint of a newly formatted log
directory, and a class data sharing (CDS) archive, which halves the startup time.
"""

import hashlib
import random
import shutil
import subprocess
import tempfile
import time
import tomllib
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from fleetgauge_local.errors import LocalFleetError, NotReadyError
from fleetgauge_local.layout import HOST, ClusterSpec, FleetLayout, build_layout, count_ports
from fleetgauge_local.metadata_request import list_known_brokers
from fleetgauge_local.ports import find_free_ports
from fleetgauge_local.properties import build_server_properties, render
from fleetgauge_pipelines.io.cache import lock_folder
from fleetgauge_pipelines.io.jars import fetch_jars
from fleetgauge_pipelines.io.java import Java, find_java

_KAFKA = Path(__file__).with_name("kafka-jars.toml")
KAFKA_LOCK = Path(__file__).with_name("kafka-jars.lock.toml")
_EXPORTER_LOCK = Path(__file__).with_name("exporter-jars.lock.toml")
_EXPORTER_RULES = Path(__file__).with_name("jmx-exporter.yml")
_LOGGING = Path(__file__).with_name("broker-log4j2.properties")

CHECKPOINT = "bootstrap.checkpoint"
_ARCHIVE = "classes.jsa"
_PARTIAL = ".partial-"
_FORMAT_S = 60
_TRIAL_RUN_S = 90
# Any cluster id will do: the checkpoint does not contain it.
_PLACEHOLDER_UUID = "AAAAAAAAAAAAAAAAAAAAAQ"


def read_kafka_version() -> str:
    """Return the version of Kafka that the brokers run."""
    coordinates = tomllib.loads(_KAFKA.read_text(encoding="utf-8"))["dependencies"]["coordinates"]
    (version,) = (jar.rpartition(":")[2] for jar in coordinates if jar.startswith("org.apache.kafka:kafka_"))
    return str(version)


# 256 MiB suffice for a broker with some hundred partitions. The serial collector and the C1 compiler allow
# seven brokers on two cores.
JVM = (
    "-Xmx256m",
    "-Xms64m",
    "-XX:+UseSerialGC",
    "-XX:TieredStopAtLevel=1",
    "-Xshare:auto",
    "-Djava.awt.headless=true",
    "-Dlog4j2.disable.jmx=true",
)


@dataclass(frozen=True)
class KafkaDistribution:
    """The files that a broker's command line refers to."""

    java: Path
    class_path: tuple[Path, ...]
    prepared: Path
    exporter: Path | None = None

    @property
    def checkpoint(self) -> Path:
        """The bootstrap checkpoint: the first records of a cluster's metadata log."""
        return self.prepared / CHECKPOINT

    def broker_command(self, properties: Path, log: Path, exporter_port: int | None) -> tuple[str, ...]:
        """Return the command line of a broker; with ``exporter_port`` it serves JMX metrics there."""
        options = [f"-XX:SharedArchiveFile={self.prepared / _ARCHIVE}"]
        if exporter_port:
            options.append(f"-javaagent:{self.exporter}={HOST}:{exporter_port}:{_EXPORTER_RULES}")
        return self._broker(properties, log, *options)

    def archiving_command(self, properties: Path, log: Path, folder: Path) -> tuple[str, ...]:
        """Return the command line of a broker that writes its CDS archive into the folder when it ends."""
        return self._broker(properties, log, f"-XX:ArchiveClassesAtExit={folder / _ARCHIVE}")

    def format_command(self, properties: Path) -> tuple[str, ...]:
        """Return the command line that formats a broker's log directory."""
        arguments = ("format", "--config", str(properties), "--cluster-id", _PLACEHOLDER_UUID)
        return (*self._jvm(), "kafka.tools.StorageTool", *arguments)

    def _broker(self, properties: Path, log: Path, *options: str) -> tuple[str, ...]:
        logging = (f"-Dlog4j2.configurationFile={_LOGGING}", f"-Dfleetgauge.log={log}")
        return (*self._jvm(*options, *logging), "kafka.Kafka", str(properties))

    def _jvm(self, *options: str) -> tuple[str, ...]:
        return (str(self.java), *JVM, *options, "-cp", ":".join(map(str, self.class_path)))


def prepare_kafka(
    cache: Path, progress: Callable[[str], None], *, exporters: bool = False
) -> KafkaDistribution:
    """Return Kafka ready to start, fetching or computing what the cache lacks.

    Raises: SetupError when Java or a jar is not available; LocalFleetError when Kafka cannot be prepared.
    """
    java = find_java(cache, progress)
    class_path = fetch_jars(KAFKA_LOCK, cache, progress)
    (exporter,) = fetch_jars(_EXPORTER_LOCK, cache, progress) if exporters else (None,)
    root = cache / "kafka"
    distribution = KafkaDistribution(java.executable, class_path, root / _key(java, class_path), exporter)
    if not distribution.prepared.exists():
        with lock_folder(root, progress):
            if not distribution.prepared.exists():
                progress("preparing Kafka for this Java version (only once)")
                _prepare_files(distribution, root)
    return distribution


def _key(java: Java, class_path: tuple[Path, ...]) -> str:
    """Return the cache key: a CDS archive is valid for one Java, one class path and one set of options."""
    parts = (KAFKA_LOCK.read_text(encoding="utf-8"), java.version, *map(str, class_path), *JVM)
    return hashlib.sha256("\n".join(parts).encode()).hexdigest()[:16]


def _prepare_files(distribution: KafkaDistribution, root: Path) -> None:
    for abandoned in root.glob(f"{_PARTIAL}*"):
        shutil.rmtree(abandoned)
    with tempfile.TemporaryDirectory(dir=root, prefix=_PARTIAL) as scratch:
        output = Path(scratch, "output")
        output.mkdir()
        _run_trial_broker(distribution, Path(scratch), output)
        output.rename(distribution.prepared)


def _run_trial_broker(distribution: KafkaDistribution, scratch: Path, output: Path) -> None:
    """Format a log directory and run a broker on it until it responds.

    The checkpoint and the CDS archive of that run are stored in ``output``.
    """
    cluster = ClusterSpec("trial", brokers=1)
    ports = find_free_ports(count_ports((cluster,)), random.Random())
    layout = build_layout((cluster,), {cluster.id: _PLACEHOLDER_UUID}, iter(ports))
    properties = scratch / "server.properties"
    data = scratch / "data"
    properties.write_text(render(build_server_properties(layout, cluster, layout.places[0], data)))
    _format(distribution, properties)
    shutil.copy(data / CHECKPOINT, output)
    _start_and_end(distribution.archiving_command(properties, scratch / "broker.log", output), layout)
    if not (output / _ARCHIVE).exists():
        raise LocalFleetError(
            f"{distribution.java}: wrote no class data archive: set JAVA_HOME to another Java"
        )


def _format(distribution: KafkaDistribution, properties: Path) -> None:
    command = distribution.format_command(properties)
    process = subprocess.run(command, capture_output=True, text=True, timeout=_FORMAT_S, check=False)
    if process.returncode != 0:
        last = (process.stderr or process.stdout).strip().splitlines()[-1:]
        raise LocalFleetError(f"formatting the log directory of the trial broker failed: {' '.join(last)}")


def _start_and_end(command: tuple[str, ...], layout: FleetLayout) -> None:
    deadline = time.monotonic() + _TRIAL_RUN_S
    with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as broker:
        try:
            while not list_known_brokers(HOST, layout.places[0].client_port, timeout_s=1):
                if broker.poll() is not None or time.monotonic() > deadline:
                    raise NotReadyError(
                        "the trial Kafka broker did not start: check that 1 GiB of memory is free"
                    )
                time.sleep(0.05)
            broker.terminate()
            broker.wait(_TRIAL_RUN_S)
        finally:
            broker.kill()
