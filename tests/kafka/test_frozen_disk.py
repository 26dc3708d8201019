"""A broker on a disk of its own that freezes: by its own counters it is named as what it is.

The disk is a file system in a file, which the kernel lets nobody write to while it is frozen: whoever tries
waits, as for a volume that is away. That takes root and loop devices; elsewhere the test is skipped.
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
    FleetState,
    Phase,
    judge,
)
from fleetgauge_core.fleet import Telemetry, load
from fleetgauge_local.fleet import LocalFleet
from fleetgauge_local.layout import ClusterSpec
from tests.kafka.agents import Agent, fleet_of, pulses

SICK = 2
DISK_BYTES = 256 << 20
LISTENED_S = 180


@contextmanager
def disk(folder: Path, at: Path) -> Iterator[Path]:
    """A file system in a file, mounted there; never left frozen."""
    image = folder / "disk.img"
    image.touch()
    with image.open("r+b") as file:
        file.truncate(DISK_BYTES)
    at.mkdir(parents=True)
    try:
        subprocess.run(["mkfs.ext4", "-q", str(image)], check=True, capture_output=True)
        subprocess.run(["mount", "-o", "loop", str(image), str(at)], check=True, capture_output=True)
    except (OSError, subprocess.CalledProcessError) as error:
        # No other way makes a disk hang: a stopped process tells no counters either.
        pytest.skip(f"mounting a file system in a file takes root and loop devices: {error}")
    try:
        # Kafka would take it for a partition.
        (at / "lost+found").rmdir()
        yield at
    finally:
        subprocess.run(["umount", str(at)], check=True)


@contextmanager
def frozen(at: Path) -> Iterator[None]:
    """Whoever writes to it waits until the block is left."""
    subprocess.run(["fsfreeze", "--freeze", str(at)], check=True)
    try:
        yield
    finally:
        subprocess.run(["fsfreeze", "--unfreeze", str(at)], check=True)


@pytest.fixture
def stalling(tmp_path: Path) -> Iterator[tuple[LocalFleet, Path]]:
    """Three brokers that tell their counters, and where one of them has its disk."""
    fleet = LocalFleet(tmp_path / "fleet", (ClusterSpec("stalling", exporters=True),))
    with disk(tmp_path, tmp_path / f"fleet/brokers/stalling-{SICK}/data") as at, fleet:
        yield fleet, at


def test_a_frozen_disk_is_named_as_such_until_it_thaws(
    stalling: tuple[LocalFleet, Path], local_fleet: LocalFleet, tmp_path: Path
) -> None:
    local, at = stalling
    measured, telemetry = fleet_of(local, ["stalling"], carried_by=local_fleet)
    (told,) = load(local.fleet_file).clusters
    cluster = measured.clusters[0].model_copy(update={"metrics": told.metrics})
    agent = Agent(measured.model_copy(update={"clusters": (cluster,)}), telemetry, tmp_path / "spool")
    with agent.running(), ExitStack() as freezing:
        findings, thawed = [], False
        for finding in _found(telemetry, lambda: freezing.enter_context(frozen(at))):
            findings.append(finding)
            if finding.to_phase is Phase.STORAGE_STALLED:
                freezing.close()
                thawed = True
            if thawed and finding.clears:
                break
    assert {one.event.broker_id for one in findings} == {SICK}
    phases = [one.to_phase for one in findings if one.to_phase is not Phase.SUSPECT]
    assert phases == [Phase.BROKER_DOWN, Phase.STORAGE_STALLED, Phase.HEALTHY]
    (sight,) = json.loads(findings[-2].event.evidence)["vantages"].values()
    assert sight["stalled_ms"] >= DEFAULT_THRESHOLDS.stalled_ms


def _found(telemetry: Telemetry, freeze: Callable[[], object]) -> Iterator[Finding]:
    """What the pulses say, one after the other; once all is well and told, it freezes."""
    state, is_frozen = FleetState(), False
    for pulse in pulses(telemetry, LISTENED_S):
        state, found = judge(state, pulse)
        yield from found
        if not is_frozen and len(pulse.brokers) == 3 and all(_is_well(one) for one in pulse.brokers):
            freeze()
            is_frozen = True


def _is_well(broker: BrokerPulse) -> bool:
    return broker.stalled_ms is not None and len(broker.legs) == 2 and broker.leads
