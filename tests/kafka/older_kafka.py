"""Brokers of an earlier release of Kafka, each of which can be given the jars of another."""

import os
import shutil
import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest

from fleetgauge_local import distribution
from fleetgauge_local.distribution import KafkaDistribution, prepare_kafka
from fleetgauge_local.fleet import LocalFleet
from fleetgauge_local.fleet_folder import FleetFolder
from fleetgauge_local.runner_protocol import BrokerStatus
from fleetgauge_pipelines.io.cache import default_cache_folder
from fleetgauge_pipelines.io.jars import fetch_jars
from tests.waiting import wait_until

_OLDER_KAFKA = Path(__file__).with_name("older-kafka-jars.toml")
OLDER_KAFKA_LOCK = Path(__file__).with_name("older-kafka-jars.lock.toml")
_DEADLINE_S = 60


@dataclass(frozen=True)
class _OwnJars(KafkaDistribution):
    """Gives each broker a folder with its jars, which its JVM lists at every start.

    The archive of classes is for other paths, so the JVM does without.
    """

    def broker_command(self, properties: Path, log: Path, exporter_port: int | None) -> tuple[str, ...]:
        folder = _link_jars(properties.parent, self.class_path)
        own = KafkaDistribution(**vars(self) | {"class_path": (folder / "*",)})
        return own.broker_command(properties, log, exporter_port)


@contextmanager
def older_brokers() -> Iterator[None]:
    """Let fleets started within the block be formatted by the earlier release, and run it."""

    def prepare(cache: Path, progress: Callable[[str], None], *, exporters: bool) -> KafkaDistribution:
        return _OwnJars(**vars(prepare_kafka(cache, progress, exporters=exporters)))

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(distribution, "_KAFKA", _OLDER_KAFKA)
        patch.setattr(distribution, "KAFKA_LOCK", OLDER_KAFKA_LOCK)
        patch.setattr("fleetgauge_local.fleet.prepare_kafka", prepare)
        yield


def restart_with(local: LocalFleet, cluster: str, broker: int, lock: Path) -> None:
    """Let a broker end in an orderly way, and start it again with the jars of a lock; it is ready then."""
    jars = fetch_jars(lock, default_cache_folder(), lambda _: None)
    running = _find_broker(local, cluster, broker)
    assert running.pid is not None
    os.kill(running.pid, signal.SIGTERM)
    # A JVM opens its jars when it needs them, so they stay until it has ended.
    wait_until(lambda: _find_broker(local, cluster, broker).state == "dead", _DEADLINE_S, "the broker's end")
    _link_jars(FleetFolder(local.status().directory).brokers / f"{cluster}-{broker}", jars)
    local.fault("heal", cluster, broker)
    local.wait_ready()


def _link_jars(broker_folder: Path, jars: tuple[Path, ...]) -> Path:
    folder = broker_folder / "jars"
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    for jar in jars:
        (folder / jar.name).symlink_to(jar)
    return folder


def _find_broker(local: LocalFleet, cluster: str, broker: int) -> BrokerStatus:
    return next(
        status
        for clusters in local.status().clusters
        if clusters.cluster == cluster
        for status in clusters.brokers
        if status.broker == broker
    )
