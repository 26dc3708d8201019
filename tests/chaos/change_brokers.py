"""Restarts, wipes, adds, swaps and retires brokers under an agent: the probe topic follows, none is blamed.

    python -m tests.chaos.change_brokers

The cluster has four brokers (three of them controllers) and a spare. In turn: every broker is restarted,
and while broker 2 is down, broker 4's partition is reassigned; broker 3 is killed and restarted with an empty
disk; the spare joins; brokers 4 and 5 swap ids, and swap back; broker 4 is unregistered. Prints one JSON
value. Exits with 0 iff within a minute after each change every broker leads a partition of its own with three
replicas in sync, no leader-leg probe of an undisturbed broker failed, and the agent ran all the time.
"""

import json
import shutil
import signal
import socket
import struct
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path
from typing import Any

import click
import psutil

from fleetgauge_core.fleet import ClusterAccess, Telemetry, load_fleet
from fleetgauge_core.kafka import (
    ClusterAdmin,
    KafkaUnavailableError,
    ensure_telemetry_topics,
    reassign_topic,
)
from fleetgauge_local.distribution import prepare_kafka
from fleetgauge_local.fleet import LocalFleet
from fleetgauge_local.fleet_folder import FleetFolder, read_json
from fleetgauge_local.layout import TELEMETRY, ClusterSpec, FleetLayout
from fleetgauge_local.provisioning import format_storage
from fleetgauge_pipelines.io.cache import default_cache_folder
from fleetgauge_probes.agent.topic_plan import TOPIC
from tests.chaos._agent import DEADLINE_S, MINUTE, count_attempts, read_available_records, read_records
from tests.chaos._streaming import Command, Row, log_progress
from tests.waiting import wait_until

CLUSTER = "orders"
RECONCILED_WITHIN_S = 60
SWAPPED_PROPERTIES = ("listeners", "advertised.listeners")
UNREGISTER_BROKER = 64


@dataclass(frozen=True, slots=True)
class BrokerChange:
    """A change of brokers, and when and how fast the probe topic was reconciled afterwards."""

    description: str
    brokers: tuple[int, ...]
    started_at: datetime
    reconciled_at: datetime
    reconciled_after_s: float


@dataclass
class Scene:
    """A fleet, and the changes made to it so far."""

    local: LocalFleet
    folder: Path
    admin: ClusterAdmin
    changes: list[BrokerChange] = field(default_factory=list)

    def is_reconciled(self, brokers: Sequence[int]) -> bool:
        """Return whether each broker leads a partition of its own, with three replicas in sync."""
        try:
            topic = self.admin.describe_topic(TOPIC)
        except KafkaUnavailableError:
            return False
        partitions = topic.partitions.values() if topic else ()
        leading = {
            partition.leader
            for partition in partitions
            if partition.replicas and partition.leader == partition.replicas[0]
        }
        return leading == set(brokers) and all(
            len(partition.replicas) == 3 and set(partition.replicas) == partition.in_sync <= set(brokers)
            for partition in partitions
        )

    def apply_change(
        self,
        description: str,
        touched: Sequence[int],
        present: Sequence[int],
        apply: Callable[[], None],
    ) -> None:
        """Apply a change and wait until the topic is reconciled; the time is measured from its end."""
        started_at = datetime.now(UTC)
        apply()
        applied_s = time.monotonic()
        wait_until(lambda: self.is_reconciled(present), DEADLINE_S, f"the topic after: {description}")
        duration_s = round(time.monotonic() - applied_s, 1)
        log_progress(f"{description}: reconciled after {duration_s:g} s")
        self.changes.append(
            BrokerChange(description, tuple(touched), started_at, datetime.now(UTC), duration_s)
        )

    def stop_broker(self, broker: int, number: signal.Signals) -> None:
        """Signal a broker's process and wait until it has ended."""
        (status,) = (status for status in self._status() if status.broker == broker)
        process = psutil.Process(status.pid)
        process.send_signal(number)
        wait_until(lambda: not process.is_running(), DEADLINE_S, f"broker {broker} to end")
        wait_until(lambda: self._state(broker) == "dead", DEADLINE_S, f"broker {broker} to be dead")

    def start_brokers(self, *brokers: int) -> None:
        """Start brokers and wait until they are up."""
        for broker in brokers:
            self.local.fault("heal", CLUSTER, broker)
        wait_until(
            lambda: all(self._state(broker) == "up" for broker in brokers), DEADLINE_S, f"{brokers} to be up"
        )

    def _status(self) -> Sequence[Any]:
        return next(cluster.brokers for cluster in self.local.status().clusters if cluster.cluster == CLUSTER)

    def _state(self, broker: int) -> str:
        return next(status.state for status in self._status() if status.broker == broker)


# --- Changes -----------------------------------------------------------------


def restart(scene: Scene, broker: int, meanwhile: Callable[[], None]) -> None:
    scene.stop_broker(broker, signal.SIGTERM)
    meanwhile()
    scene.start_brokers(broker)


def reassign_home(scene: Scene, broker: int) -> None:
    """Reassign a broker's home partition so that another broker is its first replica."""
    topic = scene.admin.describe_topic(TOPIC)
    assert topic is not None
    number, replicas = next(
        (number, partition.replicas)
        for number, partition in topic.partitions.items()
        if partition.replicas[0] == broker
    )
    assert reassign_topic(
        ClusterAccess(scene.local.bootstrap(CLUSTER)), TOPIC, {number: (*replicas[1:], broker)}
    )


def wipe_disk(scene: Scene, broker: int) -> None:
    scene.stop_broker(broker, signal.SIGKILL)
    layout = read_json(FleetFolder(scene.folder).layout, FleetLayout)
    assert layout is not None
    data = _broker_folder(scene, broker) / "data"
    shutil.rmtree(data)
    format_storage(
        data, layout.kafka_uuids[CLUSTER], broker, prepare_kafka(default_cache_folder(), log_progress)
    )
    scene.start_brokers(broker)


def swap_ids(scene: Scene, first: int, second: int) -> None:
    """Exchange the ids of two brokers: each continues at the address of the other."""
    for broker in (first, second):
        scene.stop_broker(broker, signal.SIGKILL)
    paths = [_broker_folder(scene, broker) / "server.properties" for broker in (first, second)]
    files = [dict(line.split("=", 1) for line in path.read_text().splitlines()) for path in paths]
    for path, own, other in zip(paths, files, reversed(files), strict=True):
        swapped = own | {key: other[key] for key in SWAPPED_PROPERTIES}
        path.write_text("".join(f"{key}={value}\n" for key, value in swapped.items()))
    scene.start_brokers(first, second)


def retire(scene: Scene, broker: int) -> None:
    scene.stop_broker(broker, signal.SIGKILL)
    unregister(scene.local.bootstrap(CLUSTER), broker)


def unregister(bootstrap: str, broker: int) -> None:
    """Send UnregisterBroker version 0, which neither Kafka client implements."""
    client = b"fleetgauge-chaos"
    header = struct.pack(f">hhih{len(client)}sb", UNREGISTER_BROKER, 0, 1, len(client), client, 0)
    request = header + struct.pack(">ib", broker, 0)
    host, port = bootstrap.split(",")[0].split(":")
    with socket.create_connection((host, int(port)), 10) as connection:
        connection.sendall(struct.pack(">i", len(request)) + request)
        with connection.makefile("rb") as answers:
            (size,) = struct.unpack(">i", answers.read(4))
            answer = answers.read(size)
    _, _, _, error = struct.unpack(">ibih", answer[:11])
    assert error == 0, f"UnregisterBroker: error {error}"


def _broker_folder(scene: Scene, broker: int) -> Path:
    return FleetFolder(scene.folder).brokers / f"{CLUSTER}-{broker}"


# --- The demonstration -------------------------------------------------------


def run_scenario(folder: Path) -> tuple[Sequence[BrokerChange], Sequence[Row]]:
    clusters = (ClusterSpec(CLUSTER, brokers=4, spares=1), ClusterSpec(TELEMETRY, brokers=1))
    with LocalFleet(folder, clusters, progress=log_progress) as local, ExitStack() as stack:
        fleet = load_fleet(local.fleet_file)
        assert fleet.telemetry is not None
        ensure_telemetry_topics(fleet.telemetry)
        admin = ClusterAdmin(ClusterAccess(local.bootstrap(CLUSTER)))
        admin.start()
        scene = Scene(local, folder, admin)
        arguments = ("probe", "--config", str(local.fleet_file), "--json")
        agent = stack.enter_context(Command(folder / "probe.log", *arguments))
        wait_until(lambda: scene.is_reconciled((1, 2, 3, 4)), DEADLINE_S, "the topic")
        wait_for_full_minute(fleet.telemetry, 4)
        four, five = (1, 2, 3, 4), (1, 2, 3, 4, 5)
        for broker in four:

            def reassign_meanwhile(broker: int = broker) -> None:
                if broker == 2:
                    reassign_home(scene, 4)

            touched = (2, 4) if broker == 2 else (broker,)
            scene.apply_change(
                f"{broker} restarted", touched, four, partial(restart, scene, broker, reassign_meanwhile)
            )
        scene.apply_change("3 wiped", (3,), four, lambda: wipe_disk(scene, 3))
        scene.apply_change("5 joined", (5,), five, lambda: scene.start_brokers(5))
        scene.apply_change("4 and 5 swapped", (4, 5), five, lambda: swap_ids(scene, 4, 5))
        # A proxy belongs to an address, so a broker must be retired at its own address.
        scene.apply_change("4 and 5 swapped back", (4, 5), five, lambda: swap_ids(scene, 4, 5))
        scene.apply_change("4 retired", (4,), (1, 2, 3, 5), lambda: retire(scene, 4))
        wait_for_full_minute(fleet.telemetry, 4)
        assert agent.end() == 0, agent.output
        return scene.changes, read_records(fleet.telemetry)


def wait_for_full_minute(telemetry: Telemetry, brokers: int) -> None:
    """Wait until so many brokers have a record of both legs for a minute that began from now on."""
    now = datetime.now(UTC)

    def is_complete() -> bool:
        minutes_by_leg = count_attempts(read_available_records(telemetry))
        return sum(max(minutes) >= now for minutes in minutes_by_leg.values()) >= 2 * brokers

    wait_until(is_complete, DEADLINE_S, "a full minute")


def is_undisturbed(record: Row, changes: Sequence[BrokerChange]) -> bool:
    """Return whether the record's broker was not changed during its minute."""
    begins, ends = record["minute"], record["minute"] + MINUTE
    return not any(
        record["broker_id"] in change.brokers
        and change.started_at < ends
        and begins < change.reconciled_at + timedelta(seconds=5)
        for change in changes
    )


def judge(changes: Sequence[BrokerChange], records: Sequence[Row]) -> dict[str, Any]:
    leader_records = [record for record in records if record["leg"] == "leader"]
    undisturbed = [record for record in leader_records if is_undisturbed(record, changes)]
    blamed = [
        f"{record['broker_id']} {record['minute']:%H:%M} {record['produce_failures']}"
        for record in undisturbed
        if record["produce_failures"]
    ]
    keys = [(record["run_id"], record["broker_id"], record["leg"], record["minute"]) for record in records]
    report = {
        "changes": {change.description: change.reconciled_after_s for change in changes},
        "broker_minutes_left_alone": len(undisturbed),
        "blamed_though_left_alone": blamed,
        "failures_of_those_that_were_changed": sum(
            sum(record["produce_failures"].values())
            for record in leader_records
            if not is_undisturbed(record, changes)
        ),
        "runs": len({record["run_id"] for record in records}),
        "minutes_twice": len(keys) - len(set(keys)),
    }
    passed = (
        all(change.reconciled_after_s <= RECONCILED_WITHIN_S for change in changes)
        and len(undisturbed) > 0
        and not blamed
        and (report["runs"], report["minutes_twice"]) == (1, 0)
    )
    return report | {"passed": passed}


@click.command()
@click.option("--dir", "folder", type=click.Path(path_type=Path), help="Folder that keeps logs and brokers.")
def main(folder: Path | None) -> None:
    with tempfile.TemporaryDirectory(prefix="fleetgauge-change-brokers-") as temporary:
        report = judge(*run_scenario((folder or Path(temporary)).resolve()))
    print(json.dumps(report, indent=2))
    sys.exit(0 if report["passed"] else 1)


if __name__ == "__main__":
    main()
