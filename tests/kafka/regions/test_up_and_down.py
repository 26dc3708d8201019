"""A fleet with mirrors is stopped and started again; the last test leaves it stopped."""

import json
import os
import signal

import psutil
import pytest

from fleetgauge_local.fleet import LocalFleet
from tests.regions import create_replicated_topic, run_fleet_command, wait_for_records

TOPIC = "stored"


@pytest.fixture(scope="module", autouse=True)
def topic(regions: LocalFleet) -> None:
    create_replicated_topic(regions, TOPIC)


def list_processes(fleet: LocalFleet) -> list[psutil.Process]:
    status = fleet.status()
    brokers = [broker.pid for cluster in status.clusters for broker in cluster.brokers]
    return [psutil.Process(pid) for pid in (*brokers, *(mirror.pid for mirror in status.mirrors)) if pid]


def is_alive(process: psutil.Process) -> bool:
    try:
        return process.status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False


def test_stop_ends_the_brokers_and_mirrors_of_a_killed_runner(regions: LocalFleet) -> None:
    orphans = list_processes(regions)
    assert len(orphans) == 7
    os.kill(regions.status().runner_pid, signal.SIGKILL)
    assert regions.stop() == 7
    assert not any(map(is_alive, orphans))


def test_the_command_restarts_the_fleet_of_a_folder_and_stops_all_its_processes(regions: LocalFleet) -> None:
    folder = ("--dir", str(regions.fleet_file.parent))
    rejected = run_fleet_command("up", *folder)
    assert rejected.returncode == 2
    assert "holds a fleet with other clusters: give their topology" in rejected.stderr
    started = json.loads(run_fleet_command("up", "--topology", "regions", *folder, "--json").stdout)
    assert started["ready"]
    assert [mirror["state"] for mirror in started["mirrors"]] == ["up", "up"]
    wait_for_records(regions, "north-all", TOPIC, 120)
    started_processes = list_processes(regions)
    assert json.loads(run_fleet_command("down", *folder, "--json").stdout) == {"ended": 7}
    assert not any(map(is_alive, started_processes))
