"""Kills the aggregate cluster that a consumer group reads, fails the group over, and fails it back.

    python -m tests.chaos.lose_region --json

Records are produced to both regions all the time, in the second round to one of them only; `recover run`
syncs offsets every second; the aggregate's only broker is killed while the group reads. Prints one JSON
value: whether every acknowledged record was read, how many were read twice compared with a drill's
forecast, the time from the kill to the first record that had not been read (RTO), and the failback; then
the verdict on a mirror that is stopped for 60 s with a limit of 30 s. Exits with 0 iff nothing was lost,
replicated in a loop, or read more often than forecast, and the stopped mirror was rejected.
"""

import json
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from typing import Any

import click
from confluent_kafka import Consumer, Producer

from fleetgauge_local.fleet import LocalFleet
from fleetgauge_local.layout import REGIONS
from tests.regions import (
    DEADLINE_S,
    client_settings,
    consume,
    create_replicated_topic,
    plan_partition,
    produce,
    read_committed_offset,
    read_end_offset,
    run_recover,
    running_controller,
    wait_for_records,
    wait_for_verdict,
    write_fleet_file,
)
from tests.waiting import wait_until

EACH = 60
EVERY_S = 0.02
READS_S = 10
STANDS_S = 60
LIMIT_S = 30
FORECAST_EVERY = 100


class Producing:
    """Every 20 ms a record into each of some regions. ``sent``: what they have acknowledged."""

    def __init__(self, fleet: LocalFleet, regions: list[str], topic: str) -> None:
        self.sent: set[str] = set()
        self._topic = topic
        self._producers = {one: Producer({**client_settings(fleet, one), "acks": "all"}) for one in regions}
        self._done = threading.Event()
        self._thread = threading.Thread(target=self._produce)

    def __enter__(self) -> "Producing":
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._done.set()
        self._thread.join()

    def _produce(self) -> None:
        for number in count():
            if self._done.wait(EVERY_S):
                break
            for region, producer in self._producers.items():
                value = f"{region} later {number}"
                producer.produce(
                    self._topic,
                    value.encode(),
                    partition=0,
                    on_delivery=lambda error, _, value=value: error is None and self.sent.add(value),
                )
                producer.poll(0)
        for producer in self._producers.values():
            producer.flush(DEADLINE_S)


@dataclass(frozen=True)
class Group:
    """A group of one topic, that reads as applications do: subscribed, from where it has committed."""

    fleet: LocalFleet
    name: str
    topic: str

    @contextmanager
    def reading(self, cluster: str) -> Iterator[Iterator[str | None]]:
        """What it reads there, one by one, each committed before the next; None: nothing for a while."""
        consumer = Consumer(
            {
                **client_settings(self.fleet, cluster),
                "group.id": self.name,
                "enable.auto.commit": False,
                "auto.offset.reset": "earliest",
            }
        )
        consumer.subscribe([self.topic])

        def records() -> Iterator[str | None]:
            while True:
                message = consumer.poll(0.1)
                if message is None or message.error():
                    yield None
                    continue
                consumer.commit(message, asynchronous=False)
                yield (message.value() or b"").decode()

        try:
            yield records()
        finally:
            consumer.close()

    def rest(self, cluster: str, wanted: set[str]) -> list[str]:
        """What it reads there until all that is wanted has come."""
        read: list[str] = []
        missing = set(wanted)
        until = time.monotonic() + DEADLINE_S
        with self.reading(cluster) as records:
            while missing and time.monotonic() < until:
                value = next(records)
                if value is not None:
                    read.append(value)
                    missing.discard(value)
        return read


@dataclass(frozen=True)
class Forecast:
    """What a drill said when so many records had been read: how many are read twice."""

    read: int
    resume: int
    likely: int
    at_most: int


def forecast(config: Path, group: Group, way: tuple[str, str], read: int) -> Forecast | None:
    done = run_recover(config, "drill", "--from", way[0], "--to", way[1], "--group", group.name, "--json")
    (found,) = json.loads(done.stdout)["groups"]
    if found["replay_at_most"] is None:
        return None
    resume = found["partitions"][0]["resume"]
    return Forecast(read, resume, found["replay_forecast"], found["replay_at_most"])


def lose(fleet: LocalFleet, folder: Path, idle: str | None) -> dict[str, Any]:
    """Kill north-all as the group reads there; go on in south-all, and come back."""
    group = Group(fleet, f"readers-{idle}", f"lost-{idle}")
    there = {"groups": group.name, "active": "north-all", "passive": "south-all"}
    config = write_fleet_file(fleet, folder, [there])
    create_replicated_topic(fleet, group.topic, EACH)
    at_first = {f"{region} {number}" for region in ("north", "south") for number in range(EACH)}
    sources = [one for one in ("north", "south") if one != idle]
    with running_controller(config, "--execute"):
        read = group.rest("north-all", at_first)
        wait_for_verdict(config, group.name, group.topic, "unchanged")
        with Producing(fleet, sources, group.topic) as producing:
            more, said, killed = _until_killed(config, group, len(read))
            read += more
            goes_on_at = read_committed_offset(fleet, "south-all", group.name, group.topic) or 0
            rest = _until_new(group, set(read))
            rto_s = time.monotonic() - killed
    sent = at_first | producing.sent
    rest += group.rest("south-all", sent - {*read, *rest})
    seen = set(read)
    lost = {
        "idle": idle,
        "acknowledged": len(sent),
        "read_before": len(read),
        "read_after": len(rest),
        "lost": len(sent - {*read, *rest}),
        "read_twice": sum(value in seen for value in rest),
        "forecast": said.likely,
        "forecast_at_most": said.at_most,
        # Both are read again as well.
        "read_since": len(read) - said.read,
        "not_yet_written": max(0, said.resume - goes_on_at),
        "rto_s": round(rto_s, 2),
    }
    fleet.fault("heal", "north-all", 1)
    fleet.wait_ready()
    return lost | {"back": come_back(fleet, folder, group, sources, sent)}


def _until_killed(config: Path, group: Group, before: int) -> tuple[list[str], Forecast, float]:
    """What the group reads in north-all until that dies, the last forecast of it, and when it died.

    What its consumer takes to give up is a part of the RTO.
    """
    read: list[str] = []
    said: Forecast | None = None
    until = time.monotonic() + READS_S
    with group.reading("north-all") as records:
        while time.monotonic() < until or said is None:
            value = next(records)
            read += [] if value is None else [value]
            if value is not None and len(read) % FORECAST_EVERY == 0:
                said = forecast(config, group, ("north-all", "south-all"), before + len(read)) or said
        killed = time.monotonic()
        group.fleet.fault("kill", "north-all", 1)
    return read, said, killed


def _until_new(group: Group, seen: set[str]) -> list[str]:
    """What the group reads in south-all, up to the first record that it had not read."""
    rest: list[str] = []
    until = time.monotonic() + DEADLINE_S
    with group.reading("south-all") as records:
        while (not rest or rest[-1] in seen) and time.monotonic() < until:
            value = next(records)
            rest += [] if value is None else [value]
    return rest


def come_back(
    fleet: LocalFleet, folder: Path, group: Group, sources: list[str], sent: set[str]
) -> dict[str, Any]:
    """The group reads in north-all again, while records go on coming; nothing is lost, and nothing loops."""
    there = {"groups": group.name, "active": "south-all", "passive": "north-all"}
    config = write_fleet_file(fleet, folder, [there])
    wait_for_records(fleet, "north-all", group.topic, len(sent))
    wait_for_verdict(config, group.name, group.topic, "write")
    said = forecast(config, group, ("south-all", "north-all"), 0)
    assert said is not None
    done = run_recover(config, "sync", "--group", group.name, "--execute", "--json")
    after = [f"{region} after all {number}" for region in sources for number in range(EACH)]
    for region in sources:
        produce(fleet, region, group.topic, [one for one in after if one.startswith(region)])
    rest = group.rest("north-all", set(after))
    everything = len(sent) + len(after)
    for aggregate in ("north-all", "south-all"):
        wait_for_records(fleet, aggregate, group.topic, everything)
    return {
        "exit_code": done.exit_code,
        "lost": len(set(after) - set(rest)),
        "read_twice": sum(value in sent for value in rest),
        "forecast": said.likely,
        "forecast_at_most": said.at_most,
        "records": {
            one: read_end_offset(fleet, one, group.topic)
            for one in ("north", "south", "north-all", "south-all")
        },
    }


def stand_still(fleet: LocalFleet, folder: Path) -> dict[str, Any]:
    """The mirror into south-all stands still for a minute, with a limit of half of that."""
    config = write_fleet_file(fleet, folder, stale_s=LIMIT_S)
    create_replicated_topic(fleet, "stood-still", EACH)
    consume(fleet, "north-all", "readers-still", "stood-still", count=100)

    def is_stale() -> bool:
        return bool(plan_partition(config, "readers-still", "stood-still")["verdict"] == "stale")

    with running_controller(config):
        wait_for_verdict(config, "readers-still", "stood-still", "write")
        fleet.fault_mirror("hang", "south-all")
        hung = time.monotonic()
        produce(fleet, "north", "stood-still", ["while it stands still"])
        wait_until(is_stale, STANDS_S, "it to be stale")
        stale_after_s = time.monotonic() - hung
        done = run_recover(config, "sync", "--group", "readers-still", "--execute", "--json")
        written = read_committed_offset(fleet, "south-all", "readers-still", "stood-still")
        wait_until(lambda: time.monotonic() > hung + STANDS_S, 2 * STANDS_S, "a minute to be over")
        was_stale = is_stale()
        fleet.fault_mirror("heal", "south-all")
        healed = time.monotonic()
        wait_for_verdict(config, "readers-still", "stood-still", "write")
    return {
        "stale_after_s": round(stale_after_s, 1),
        "stale_at_its_end": was_stale,
        "exit_code": done.exit_code,
        "written": written,
        "well_after_s": round(time.monotonic() - healed, 1),
    }


def held(lost: dict[str, Any]) -> bool:
    """Whether nothing was lost, read more often than was forecast, or went round."""
    back = lost["back"]
    records = back["records"]
    return (
        lost["lost"] == back["lost"] == back["exit_code"] == 0
        and lost["read_twice"] <= lost["forecast_at_most"] + lost["read_since"] + lost["not_yet_written"]
        and back["read_twice"] <= back["forecast_at_most"]
        # A mirror whose target died may copy its last records twice; what loops would be in all of them.
        and records["south-all"] == records["north"] + records["south"]
    )


@click.command()
@click.option("--json", "as_json", is_flag=True, help="Which it prints anyway.")
def main(as_json: bool) -> None:
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder)
        with LocalFleet(root / "fleet", REGIONS.clusters, mirrors=REGIONS.mirrors) as fleet:
            lost = [lose(fleet, root, idle) for idle in (None, "south")]
            stood = stand_still(fleet, root)
    click.echo(json.dumps({"lost": lost, "stood_still": stood}, indent=2))
    refused = stood["stale_at_its_end"] and stood["exit_code"] == 1 and stood["written"] is None
    sys.exit(0 if refused and all(map(held, lost)) else 1)


if __name__ == "__main__":
    main()
