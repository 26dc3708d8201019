"""`fleetgauge watch --observe`: an observer beside the watch, which ends with it."""

import json
import os
import signal
import uuid
from collections.abc import Callable
from pathlib import Path
from typing import Any

import psutil
import pytest

from fleetgauge_core.fleet import Fleet
from fleetgauge_core.kafka import ClusterAdmin, TopicSpec
from fleetgauge_local.fleet import LocalFleet
from fleetgauge_operations.changes.change_topic import read_change_records
from tests.waiting import wait_until
from tests.watch_process import Watch, run_watch

DEADLINE_S = 90


@pytest.fixture
def fleet_file(local_fleet: LocalFleet, tmp_path: Path) -> Path:
    suffix = uuid.uuid4().hex[:8]
    topics: dict[str, Any] = {
        name: {"name": f"{name}-{suffix}", "partitions": 1, "retention_hours": 1}
        for name in ("probe_minutes", "probe_pulse", "health_events", "changes")
    }
    topics["watch_state"] = {"name": f"watch-state-{suffix}"}
    document = {
        "clusters": [{"id": "orders", "bootstrap": local_fleet.bootstrap("orders")}],
        "telemetry": {"bootstrap": local_fleet.bootstrap("telemetry"), "topics": topics},
        "lake": str(tmp_path / "lake"),
    }
    path = tmp_path / "fleet.yaml"
    path.write_text(json.dumps(document))
    return path


def find_observers(watch: Watch) -> list[psutil.Process]:
    children: list[psutil.Process] = psutil.Process(watch.process.pid).children(recursive=True)
    return [child for child in children if _is_observer(child)]


def _is_observer(process: psutil.Process) -> bool:
    try:
        return "observe" in process.cmdline()
    except psutil.NoSuchProcess:
        return False


def create_topics_until_seen(fleet: Fleet) -> None:
    """Create topics, one at a time, until one of them was recorded as a change."""
    assert fleet.telemetry
    telemetry, admin = fleet.telemetry, ClusterAdmin(fleet.cluster("orders").access)
    admin.start()
    names: set[str | None] = set()

    def is_seen() -> bool:
        name = f"seen-{uuid.uuid4().hex[:8]}"
        admin.create_topic(TopicSpec(name, {"retention.ms": "60000"}, 1, 1))
        names.add(name)
        return any(record.topic in names for record in read_change_records(telemetry))

    wait_until(is_seen, DEADLINE_S, "a topic that was created", every_s=5)


def test_the_observer_is_started_again_and_ends_with_the_watch(fleet_file: Path) -> None:
    fleet = Fleet.model_validate(json.loads(fleet_file.read_text()))
    with run_watch(fleet_file, "watch", "--observe") as watch:
        create_topics_until_seen(fleet)
        (observer,) = find_observers(watch)
        os.kill(observer.pid, signal.SIGKILL)
        wait_until(lambda: find_observers(watch) not in ([], [observer]), DEADLINE_S, "another observer")
        assert "the observer ended with exit code -9" in watch.log.read_text()
        create_topics_until_seen(fleet)
        (observer,) = find_observers(watch)
    assert not observer.is_running()


@pytest.mark.parametrize("end", [signal.SIGKILL, signal.SIGINT])
def test_an_observer_does_not_outlive_its_watch(fleet_file: Path, end: signal.Signals) -> None:
    with run_watch(fleet_file, "watch", "--observe") as watch:
        wait_until(lambda: bool(find_observers(watch)), DEADLINE_S, "the observer")
        observers = find_observers(watch)
        watch.process.send_signal(end)
        watch.process.wait(DEADLINE_S)
        wait_until(_have_ended(observers), DEADLINE_S, "the end of the observer")


def _have_ended(processes: list[psutil.Process]) -> Callable[[], bool]:
    return lambda: not any(process.is_running() for process in processes)
