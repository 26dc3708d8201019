"""A broker whose disk freezes is reported as STORAGE_STALLED, from its own JMX counters.

The disk is a file system in a file. While it is frozen, writers block, as they do on a volume that is
detached. This needs root and loop devices; without them the test is skipped.
"""

import json
import subprocess
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest

from fleetgauge_core.contract import BrokerPulse
from fleetgauge_core.detection import (
    DEFAULT_THRESHOLDS,
    Finding,
    FleetHealth,
    HealthState,
    fold_pulse,
)
from fleetgauge_core.fleet import Telemetry, load_fleet
from fleetgauge_local.fleet import LocalFleet
from fleetgauge_local.layout import ClusterSpec
from tests.kafka.agents import Agent, build_fleet, read_pulses

STALLED_BROKER = 2
DISK_BYTES = 256 << 20
LISTEN_TIMEOUT_S = 180


@contextmanager
def mounted_disk(folder: Path, mount_point: Path) -> Iterator[Path]:
    """Mount a file system in a file until the block is left."""
    image = folder / "disk.img"
    image.touch()
    with image.open("r+b") as file:
        file.truncate(DISK_BYTES)
    mount_point.mkdir(parents=True)
    try:
        subprocess.run(["mkfs.ext4", "-q", str(image)], check=True, capture_output=True)
        subprocess.run(["mount", "-o", "loop", str(image), str(mount_point)], check=True, capture_output=True)
    except (OSError, subprocess.CalledProcessError) as error:
        # There is no other way: a stopped process would not report its counters either.
        pytest.skip(f"mounting a file system in a file takes root and loop devices: {error}")
    try:
        # Kafka would load this folder as a partition.
        (mount_point / "lost+found").rmdir()
        yield mount_point
    finally:
        subprocess.run(["umount", str(mount_point)], check=True)


@contextmanager
def frozen(mount_point: Path) -> Iterator[None]:
    """Block all writers until the block is left."""
    subprocess.run(["fsfreeze", "--freeze", str(mount_point)], check=True)
    try:
        yield
    finally:
        subprocess.run(["fsfreeze", "--unfreeze", str(mount_point)], check=True)


@pytest.fixture
def stalling(tmp_path: Path) -> Iterator[tuple[LocalFleet, Path]]:
    """Three brokers with JMX exporters, and the mount point of one broker's disk."""
    fleet = LocalFleet(tmp_path / "fleet", (ClusterSpec("stalling", exporters=True),))
    with (
        mounted_disk(tmp_path, tmp_path / f"fleet/brokers/stalling-{STALLED_BROKER}/data") as mount_point,
        fleet,
    ):
        yield fleet, mount_point


def test_a_frozen_disk_is_reported_as_stalled_storage_until_it_recovers(
    stalling: tuple[LocalFleet, Path], local_fleet: LocalFleet, tmp_path: Path
) -> None:
    local, mount_point = stalling
    measured, telemetry = build_fleet(local, ["stalling"], telemetry_fleet=local_fleet)
    (described,) = load_fleet(local.fleet_file).clusters
    cluster = measured.clusters[0].model_copy(update={"metrics": described.metrics})
    agent = Agent(measured.model_copy(update={"clusters": (cluster,)}), telemetry, tmp_path / "spool")
    with agent.running(), ExitStack() as freezing:
        findings, thawed = [], False
        for finding in _detect(telemetry, lambda: freezing.enter_context(frozen(mount_point))):
            findings.append(finding)
            if finding.to_state is HealthState.STORAGE_STALLED:
                freezing.close()
                thawed = True
            if thawed and finding.is_cleared:
                break
    assert {finding.event.broker_id for finding in findings} == {STALLED_BROKER}
    states = [finding.to_state for finding in findings if finding.to_state is not HealthState.SUSPECT]
    assert states == [HealthState.BROKER_DOWN, HealthState.STORAGE_STALLED, HealthState.HEALTHY]
    (evidence,) = json.loads(findings[-2].event.evidence)["vantages"].values()
    assert evidence["stalled_ms"] >= DEFAULT_THRESHOLDS.stalled_ms


def _detect(telemetry: Telemetry, freeze: Callable[[], object]) -> Iterator[Finding]:
    """Yield the findings of the pulses; call ``freeze`` once all brokers are healthy with counters."""
    state, is_frozen = FleetHealth(), False
    for pulse in read_pulses(telemetry, LISTEN_TIMEOUT_S):
        state, findings = fold_pulse(state, pulse)
        yield from findings
        if not is_frozen and len(pulse.brokers) == 3 and all(_is_healthy(broker) for broker in pulse.brokers):
            freeze()
            is_frozen = True


def _is_healthy(broker: BrokerPulse) -> bool:
    return broker.stalled_ms is not None and len(broker.legs) == 2 and broker.leads
