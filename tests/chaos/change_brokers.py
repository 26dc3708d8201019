"""Rolls, wipes, adds, swaps and retires brokers under an agent: its partitions follow, nobody is blamed.

    python -m tests.chaos.change_brokers

A cluster of four brokers (three of them controllers) and a spare. In turn: every broker is restarted,
and while the second one is away somebody moves the fourth one's partition; the third is killed and comes
back with an empty disk; the spare joins; the fourth and the fifth swap ids, and once more; the fourth goes
for good. Prints one JSON value; exit 0 iff after each change every broker leads a partition of its own with
three replicas in sync within a minute, no leader-leg probe of a broker that was left alone failed, and the
agent lived through it all.
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
from pathlib import Path
from typing import Any

import click
import psutil

from fleetgauge_core.fleet import Access, Telemetry, load
from fleetgauge_core.kafka import (
    Admin,
    KafkaUnavailableError,
    ensure_topics,
    reassign,
)
from fleetgauge_local.distribution import prepare
from fleetgauge_local.fleet import LocalFleet
from fleetgauge_local.folder import Folder, read
from fleetgauge_local.layout import TELEMETRY, ClusterSpec, Layout
from fleetgauge_local.storage import format_storage
from fleetgauge_pipelines.io.cache import default_cache
from fleetgauge_probes.agent.topic_plan import TOPIC
from tests.chaos._agent import MINUTE, PATIENCE_S, attempts, on_the_topic, so_far
from tests.chaos._streaming import Command, Row, say
from tests.waiting import wait_until

CLUSTER = "orders"
RIGHT_WITHIN_S = 60
SWAPPED = ("listeners", "advertised.listeners")
UNREGISTER_BROKER = 64


@dataclass(frozen=True, slots=True)
class Change:
    """What was done to which broker, from when to when it was right again, and how long that took."""

    what: str
    brokers: tuple[int, ...]
    since: datetime
    right: datetime
    right_after_s: float


@dataclass
class Scene:
    """A fleet, and what has been done to it."""

    local: LocalFleet
    folder: Path
    admin: Admin
    changes: list[Change] = field(default_factory=list)

    def is_right(self, brokers: Sequence[int]) -> bool:
        """Whether each leads a partition of its own, in sync on as many brokers as there should be."""
        try:
            view = self.admin.topic(TOPIC)
        except KafkaUnavailableError:
            return False
        partitions = view.partitions.values() if view else ()
        leading = {one.leader for one in partitions if one.replicas and one.leader == one.replicas[0]}
        return leading == set(brokers) and all(
            len(one.replicas) == 3 and set(one.replicas) == one.in_sync <= set(brokers) for one in partitions
        )

    def change(
        self, what: str, touched: Sequence[int], present: Sequence[int], do: Callable[[], None]
    ) -> None:
        """``do`` it and wait until the topic is right; the clock runs from when ``do`` is done."""
        since = datetime.now(UTC)
        do()
        done_s = time.monotonic()
        wait_until(lambda: self.is_right(present), PATIENCE_S, f"the topic after: {what}")
        took_s = round(time.monotonic() - done_s, 1)
        say(f"{what}: right after {took_s:g} s")
        self.changes.append(Change(what, tuple(touched), since, datetime.now(UTC), took_s))

    def end(self, broker: int, number: signal.Signals) -> None:
        """Signal its process and wait until it is gone."""
        (found,) = (one for one in self._status() if one.broker == broker)
        process = psutil.Process(found.pid)
        process.send_signal(number)
        wait_until(lambda: not process.is_running(), PATIENCE_S, f"broker {broker} to end")
        wait_until(lambda: self._state(broker) == "dead", PATIENCE_S, f"broker {broker} to be dead")

    def begin(self, *brokers: int) -> None:
        """Start them and wait until they serve."""
        for broker in brokers:
            self.local.fault("heal", CLUSTER, broker)
        wait_until(
            lambda: all(self._state(one) == "up" for one in brokers), PATIENCE_S, f"{brokers} to be up"
        )

    def _status(self) -> Sequence[Any]:
        return next(one.brokers for one in self.local.status().clusters if one.cluster == CLUSTER)

    def _state(self, broker: int) -> str:
        return next(one.state for one in self._status() if one.broker == broker)


# --- What is done to brokers -------------------------------------------------


def restart(scene: Scene, broker: int, meanwhile: Callable[[], None]) -> None:
    scene.end(broker, signal.SIGTERM)
    meanwhile()
    scene.begin(broker)


def move(scene: Scene, broker: int) -> None:
    """Somebody gives the broker's partition another home."""
    view = scene.admin.topic(TOPIC)
    assert view is not None
    number, replicas = next(
        (n, one.replicas) for n, one in view.partitions.items() if one.replicas[0] == broker
    )
    assert reassign(Access(scene.local.bootstrap(CLUSTER)), TOPIC, {number: (*replicas[1:], broker)})


def wipe(scene: Scene, broker: int) -> None:
    scene.end(broker, signal.SIGKILL)
    layout = read(Folder(scene.folder).layout, Layout)
    assert layout is not None
    data = _own(scene, broker) / "data"
    shutil.rmtree(data)
    format_storage(data, layout.kafka_uuids[CLUSTER], broker, prepare(default_cache(), say))
    scene.begin(broker)


def swap(scene: Scene, one: int, other: int) -> None:
    """Each goes on at the address of the other: what was called one is called other."""
    for broker in (one, other):
        scene.end(broker, signal.SIGKILL)
    paths = [_own(scene, broker) / "server.properties" for broker in (one, other)]
    files = [dict(line.split("=", 1) for line in path.read_text().splitlines()) for path in paths]
    for path, own, others in zip(paths, files, reversed(files), strict=True):
        swapped = own | {key: others[key] for key in SWAPPED}
        path.write_text("".join(f"{key}={value}\n" for key, value in swapped.items()))
    scene.begin(one, other)


def retire(scene: Scene, broker: int) -> None:
    scene.end(broker, signal.SIGKILL)
    unregister(scene.local.bootstrap(CLUSTER), broker)


def unregister(bootstrap: str, broker: int) -> None:
    """UnregisterBroker, version 0: no client at hand speaks it."""
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


def _own(scene: Scene, broker: int) -> Path:
    return Folder(scene.folder).brokers / f"{CLUSTER}-{broker}"


# --- The demonstration -------------------------------------------------------


def live(folder: Path) -> tuple[Sequence[Change], Sequence[Row]]:
    clusters = (ClusterSpec(CLUSTER, brokers=4, spares=1), ClusterSpec(TELEMETRY, brokers=1))
    with LocalFleet(folder, clusters, progress=say) as local, ExitStack() as stack:
        fleet = load(local.fleet_file)
        assert fleet.telemetry is not None
        ensure_topics(fleet.telemetry)
        admin = Admin(Access(local.bootstrap(CLUSTER)))
        admin.start()
        scene = Scene(local, folder, admin)
        arguments = ("probe", "--config", str(local.fleet_file), "--json")
        agent = stack.enter_context(Command(folder / "probe.log", *arguments))
        wait_until(lambda: scene.is_right((1, 2, 3, 4)), PATIENCE_S, "the topic")
        wait_for_a_minute(fleet.telemetry, 4)
        four, five = (1, 2, 3, 4), (1, 2, 3, 4, 5)
        for broker in four:

            def meanwhile(broker: int = broker) -> None:
                if broker == 2:
                    move(scene, 4)

            touched = (2, 4) if broker == 2 else (broker,)
            scene.change(
                f"{broker} restarted", touched, four, lambda b=broker, m=meanwhile: restart(scene, b, m)
            )
        scene.change("3 wiped", (3,), four, lambda: wipe(scene, 3))
        scene.change("5 joined", (5,), five, lambda: scene.begin(5))
        scene.change("4 and 5 swapped", (4, 5), five, lambda: swap(scene, 4, 5))
        # The proxies stand for places, so who goes must go from its own.
        scene.change("4 and 5 swapped back", (4, 5), five, lambda: swap(scene, 4, 5))
        scene.change("4 retired", (4,), (1, 2, 3, 5), lambda: retire(scene, 4))
        wait_for_a_minute(fleet.telemetry, 4)
        assert agent.end() == 0, agent.words
        return scene.changes, on_the_topic(fleet.telemetry)


def wait_for_a_minute(telemetry: Telemetry, brokers: int) -> None:
    """Until so many brokers have a record of both legs for a minute that began from now on."""
    now = datetime.now(UTC)

    def has_come() -> bool:
        found = attempts(so_far(telemetry))
        return sum(max(minutes) >= now for minutes in found.values()) >= 2 * brokers

    wait_until(has_come, PATIENCE_S, "a full minute")


def left_alone(record: Row, changes: Sequence[Change]) -> bool:
    """Whether nothing was done to its broker in its minute."""
    begins, ends = record["minute"], record["minute"] + MINUTE
    return not any(
        record["broker_id"] in one.brokers and one.since < ends and begins < one.right + timedelta(seconds=5)
        for one in changes
    )


def judge(changes: Sequence[Change], records: Sequence[Row]) -> dict[str, Any]:
    leader = [one for one in records if one["leg"] == "leader"]
    alone = [one for one in leader if left_alone(one, changes)]
    blamed = [
        f"{one['broker_id']} {one['minute']:%H:%M} {one['produce_failures']}"
        for one in alone
        if one["produce_failures"]
    ]
    names = [(one["run_id"], one["broker_id"], one["leg"], one["minute"]) for one in records]
    report = {
        "changes": {one.what: one.right_after_s for one in changes},
        "broker_minutes_left_alone": len(alone),
        "blamed_though_left_alone": blamed,
        "failures_of_those_that_were_changed": sum(
            sum(one["produce_failures"].values()) for one in leader if not left_alone(one, changes)
        ),
        "runs": len({one["run_id"] for one in records}),
        "minutes_twice": len(names) - len(set(names)),
    }
    passed = (
        all(one.right_after_s <= RIGHT_WITHIN_S for one in changes)
        and len(alone) > 0
        and not blamed
        and (report["runs"], report["minutes_twice"]) == (1, 0)
    )
    return report | {"passed": passed}


@click.command()
@click.option("--dir", "folder", type=click.Path(path_type=Path), help="Keep logs and brokers there.")
def main(folder: Path | None) -> None:
    with tempfile.TemporaryDirectory(prefix="fleetgauge-change-brokers-") as passing:
        report = judge(*live((folder or Path(passing)).resolve()))
    print(json.dumps(report, indent=2))
    sys.exit(0 if report["passed"] else 1)


if __name__ == "__main__":
    main()
