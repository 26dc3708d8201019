"""A Kafka that is ready to start: its jars, and what need be computed only once per user.

Two things are kept in the cache, under a key of the jar lock and the Java version: the checkpoint
that a formatted storage begins with, and an archive of loaded classes, which halves the time to start.
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
from fleetgauge_local.layout import HOST, ClusterSpec, Layout, lay_out, ports_needed
from fleetgauge_local.ports import free_ports
from fleetgauge_local.properties import render, server_properties
from fleetgauge_local.readiness import brokers_seen
from fleetgauge_pipelines.io.cache import one_at_a_time
from fleetgauge_pipelines.io.jars import ensure
from fleetgauge_pipelines.io.java import Java, find_java

_KAFKA = Path(__file__).with_name("kafka-jars.toml")
KAFKA_LOCK = Path(__file__).with_name("kafka-jars.lock.toml")
_EXPORTER_LOCK = Path(__file__).with_name("exporter-jars.lock.toml")
_EXPORTED = Path(__file__).with_name("jmx-exporter.yml")
_LOGGING = Path(__file__).with_name("broker-log4j2.properties")

CHECKPOINT = "bootstrap.checkpoint"
_ARCHIVE = "classes.jsa"
_PARTIAL = ".partial-"
_FORMAT_S = 60
_REHEARSAL_S = 90
# Any id does: the checkpoint does not hold it.
_SOME_UUID = "AAAAAAAAAAAAAAAAAAAAAQ"


def kafka_version() -> str:
    """Of the brokers that are run."""
    wanted = tomllib.loads(_KAFKA.read_text(encoding="utf-8"))["dependencies"]["coordinates"]
    (version,) = (one.rpartition(":")[2] for one in wanted if one.startswith("org.apache.kafka:kafka_"))
    return str(version)


# 256 MiB hold a broker with some hundred partitions; one collector thread and the quick
# compiler alone keep seven of them bearable on two cores.
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
class Distribution:
    """What a broker's command line is made of."""

    java: Path
    class_path: tuple[Path, ...]
    prepared: Path
    exporter: Path | None = None

    @property
    def checkpoint(self) -> Path:
        """The first records of a metadata log."""
        return self.prepared / CHECKPOINT

    def broker_command(self, properties: Path, log: Path, exporter_port: int | None) -> tuple[str, ...]:
        """Start a broker from its server.properties; at that port, if any, it tells its counters."""
        options = [f"-XX:SharedArchiveFile={self.prepared / _ARCHIVE}"]
        if exporter_port:
            options.append(f"-javaagent:{self.exporter}={HOST}:{exporter_port}:{_EXPORTED}")
        return self._broker(properties, log, *options)

    def archiving_command(self, properties: Path, log: Path, folder: Path) -> tuple[str, ...]:
        """Start a broker that writes the archive of its classes into the folder when it ends."""
        return self._broker(properties, log, f"-XX:ArchiveClassesAtExit={folder / _ARCHIVE}")

    def format_command(self, properties: Path) -> tuple[str, ...]:
        """Format a storage."""
        arguments = ("format", "--config", str(properties), "--cluster-id", _SOME_UUID)
        return (*self._jvm(), "kafka.tools.StorageTool", *arguments)

    def _broker(self, properties: Path, log: Path, *options: str) -> tuple[str, ...]:
        logging = (f"-Dlog4j2.configurationFile={_LOGGING}", f"-Dfleetgauge.log={log}")
        return (*self._jvm(*options, *logging), "kafka.Kafka", str(properties))

    def _jvm(self, *options: str) -> tuple[str, ...]:
        return (str(self.java), *JVM, *options, "-cp", ":".join(map(str, self.class_path)))


def prepare(cache: Path, progress: Callable[[str], None], *, exporters: bool = False) -> Distribution:
    """Kafka's jars and what is computed once; both from the cache if they are there."""
    java = find_java(cache, progress)
    class_path = ensure(KAFKA_LOCK, cache, progress)
    (exporter,) = ensure(_EXPORTER_LOCK, cache, progress) if exporters else (None,)
    root = cache / "kafka"
    distribution = Distribution(java.executable, class_path, root / _key(java, class_path), exporter)
    if not distribution.prepared.exists():
        with one_at_a_time(root, progress):
            if not distribution.prepared.exists():
                progress("preparing Kafka for this Java, once")
                _compute(distribution, root)
    return distribution


def _key(java: Java, class_path: tuple[Path, ...]) -> str:
    """An archive fits one Java, one class path and one set of options."""
    parts = (KAFKA_LOCK.read_text(encoding="utf-8"), java.version, *map(str, class_path), *JVM)
    return hashlib.sha256("\n".join(parts).encode()).hexdigest()[:16]


def _compute(distribution: Distribution, root: Path) -> None:
    for abandoned in root.glob(f"{_PARTIAL}*"):
        shutil.rmtree(abandoned)
    with tempfile.TemporaryDirectory(dir=root, prefix=_PARTIAL) as scratch:
        made = Path(scratch, "made")
        made.mkdir()
        _rehearse(distribution, Path(scratch), made)
        made.rename(distribution.prepared)


def _rehearse(distribution: Distribution, scratch: Path, made: Path) -> None:
    """Format a storage, start one broker on it until it answers, end it: its traces are the result."""
    cluster = ClusterSpec("rehearsal", brokers=1)
    ports = free_ports(ports_needed((cluster,)), random.Random())  # noqa: S311 (ports are no secret)
    layout = lay_out((cluster,), {cluster.id: _SOME_UUID}, iter(ports))
    properties = scratch / "server.properties"
    data = scratch / "data"
    properties.write_text(render(server_properties(layout, cluster, layout.places[0], data)))
    _format(distribution, properties)
    shutil.copy(data / CHECKPOINT, made)
    _start_and_end(distribution.archiving_command(properties, scratch / "broker.log", made), layout)
    if not (made / _ARCHIVE).exists():
        raise LocalFleetError(f"{distribution.java}: wrote no class archive: use another Java, see JAVA_HOME")


def _format(distribution: Distribution, properties: Path) -> None:
    command = distribution.format_command(properties)
    done = subprocess.run(command, capture_output=True, text=True, timeout=_FORMAT_S, check=False)
    if done.returncode != 0:
        last = (done.stderr or done.stdout).strip().splitlines()[-1:]
        raise LocalFleetError(f"formatting Kafka's storage failed: {' '.join(last)}")


def _start_and_end(command: tuple[str, ...], layout: Layout) -> None:
    deadline = time.monotonic() + _REHEARSAL_S
    with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as broker:
        try:
            while not brokers_seen(HOST, layout.places[0].client_port, timeout_s=1):
                if broker.poll() is not None or time.monotonic() > deadline:
                    raise NotReadyError("a first Kafka broker did not start: is 1 GiB of memory free?")
                time.sleep(0.05)
            broker.terminate()
            broker.wait(_REHEARSAL_S)
        finally:
            broker.kill()
