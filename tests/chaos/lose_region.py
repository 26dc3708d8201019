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

RECORDS_PER_REGION = 60
PRODUCE_EVERY_S = 0.02
CONSUME_S = 10
STALL_S = 60
STALE_LIMIT_S = 30
FORECAST_EVERY = 100


class BackgroundProducer:
    """Produces a record to each of the regions every 20 ms; ``sent`` are the acknowledged records."""

    def __init__(self, fleet: LocalFleet, regions: list[str], topic: str) -> None:
        self.sent: set[str] = set()
        self._topic = topic
        self._producers = {
            region: Producer({**client_settings(fleet, region), "acks": "all"}) for region in regions
        }
        self._done = threading.Event()
        self._thread = threading.Thread(target=self._produce)

    def __enter__(self) -> "BackgroundProducer":
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._done.set()
        self._thread.join()

    def _produce(self) -> None:
        for number in count():
            if self._done.wait(PRODUCE_EVERY_S):
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
    """A consumer group of one topic, which subscribes and resumes at its committed offset."""

    fleet: LocalFleet
    name: str
    topic: str

    @contextmanager
    def consuming(self, cluster: str) -> Iterator[Iterator[str | None]]:
        """Yield an iterator over the values, each committed before the next; None if a poll returns none."""
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

    def consume_until(self, cluster: str, expected: set[str]) -> list[str]:
        """Consume until all expected values have been read; return all values that were read."""
        read: list[str] = []
        missing = set(expected)
        until = time.monotonic() + DEADLINE_S
        with self.consuming(cluster) as records:
            while missing and time.monotonic() < until:
                value = next(records)
                if value is not None:
                    read.append(value)
                    missing.discard(value)
        return read


@dataclass(frozen=True)
class Forecast:
    """A drill's forecast of records that are read twice, once ``read`` records had been read."""

    read: int
    resume: int
    expected: int
    maximum: int


def run_drill(config: Path, group: Group, clusters: tuple[str, str], read: int) -> Forecast | None:
    """Return the forecast of a failover between two clusters; None if the drill has none yet."""
    route = ("--from", clusters[0], "--to", clusters[1])
    result = run_recover(config, "drill", *route, "--group", group.name, "--json")
    (drill,) = json.loads(result.stdout)["groups"]
    if drill["replay_at_most"] is None:
        return None
    resume = drill["partitions"][0]["resume"]
    return Forecast(read, resume, drill["replay_forecast"], drill["replay_at_most"])


def lose_region(fleet: LocalFleet, folder: Path, idle: str | None) -> dict[str, Any]:
    """Kill north-all while the group reads there; fail the group over to south-all, and back."""
    group = Group(fleet, f"readers-{idle}", f"lost-{idle}")
    route = {"groups": group.name, "active": "north-all", "passive": "south-all"}
    config = write_fleet_file(fleet, folder, [route])
    create_replicated_topic(fleet, group.topic, RECORDS_PER_REGION)
    initial = {f"{region} {number}" for region in ("north", "south") for number in range(RECORDS_PER_REGION)}
    sources = [region for region in ("north", "south") if region != idle]
    with running_controller(config, "--execute"):
        read = group.consume_until("north-all", initial)
        wait_for_verdict(config, group.name, group.topic, "unchanged")
        with BackgroundProducer(fleet, sources, group.topic) as producer:
            read_meanwhile, forecast, killed = _consume_until_killed(config, group, len(read))
            read += read_meanwhile
            resumed_at = read_committed_offset(fleet, "south-all", group.name, group.topic) or 0
            rest = _consume_until_new(group, set(read))
            rto_s = time.monotonic() - killed
    sent = initial | producer.sent
    rest += group.consume_until("south-all", sent - {*read, *rest})
    seen = set(read)
    result = {
        "idle": idle,
        "acknowledged": len(sent),
        "read_before": len(read),
        "read_after": len(rest),
        "lost": len(sent - {*read, *rest}),
        "read_twice": sum(value in seen for value in rest),
        "forecast": forecast.expected,
        "forecast_at_most": forecast.maximum,
        # Records of both kinds are read again as well.
        "read_since": len(read) - forecast.read,
        "not_yet_written": max(0, forecast.resume - resumed_at),
        "rto_s": round(rto_s, 2),
    }
    fleet.fault("heal", "north-all", 1)
    fleet.wait_ready()
    return result | {"back": fail_back(fleet, folder, group, sources, sent)}


def _consume_until_killed(config: Path, group: Group, before: int) -> tuple[list[str], Forecast, float]:
    """Consume in north-all and kill it; return the values, the last forecast, and the time of the kill.

    The time until its consumer is closed is a part of the RTO.
    """
    read: list[str] = []
    forecast: Forecast | None = None
    until = time.monotonic() + CONSUME_S
    with group.consuming("north-all") as records:
        while time.monotonic() < until or forecast is None:
            value = next(records)
            read += [] if value is None else [value]
            if value is not None and len(read) % FORECAST_EVERY == 0:
                clusters = ("north-all", "south-all")
                forecast = run_drill(config, group, clusters, before + len(read)) or forecast
        killed = time.monotonic()
        group.fleet.fault("kill", "north-all", 1)
    return read, forecast, killed


def _consume_until_new(group: Group, seen: set[str]) -> list[str]:
    """Consume in south-all up to the first record that the group had not read."""
    rest: list[str] = []
    until = time.monotonic() + DEADLINE_S
    with group.consuming("south-all") as records:
        while (not rest or rest[-1] in seen) and time.monotonic() < until:
            value = next(records)
            rest += [] if value is None else [value]
    return rest


def fail_back(
    fleet: LocalFleet, folder: Path, group: Group, sources: list[str], sent: set[str]
) -> dict[str, Any]:
    """Fail the group back to north-all while records are produced, and return what was lost or repeated."""
    route = {"groups": group.name, "active": "south-all", "passive": "north-all"}
    config = write_fleet_file(fleet, folder, [route])
    wait_for_records(fleet, "north-all", group.topic, len(sent))
    wait_for_verdict(config, group.name, group.topic, "write")
    forecast = run_drill(config, group, ("south-all", "north-all"), 0)
    assert forecast is not None
    sync = run_recover(config, "sync", "--group", group.name, "--execute", "--json")
    after = [f"{region} after all {number}" for region in sources for number in range(RECORDS_PER_REGION)]
    for region in sources:
        produce(fleet, region, group.topic, [value for value in after if value.startswith(region)])
    rest = group.consume_until("north-all", set(after))
    record_count = len(sent) + len(after)
    for aggregate in ("north-all", "south-all"):
        wait_for_records(fleet, aggregate, group.topic, record_count)
    return {
        "exit_code": sync.exit_code,
        "lost": len(set(after) - set(rest)),
        "read_twice": sum(value in sent for value in rest),
        "forecast": forecast.expected,
        "forecast_at_most": forecast.maximum,
        "records": {
            cluster: read_end_offset(fleet, cluster, group.topic)
            for cluster in ("north", "south", "north-all", "south-all")
        },
    }


def stall_mirror(fleet: LocalFleet, folder: Path) -> dict[str, Any]:
    """Suspend the mirror into south-all for a minute, with a limit of half of that."""
    config = write_fleet_file(fleet, folder, stale_s=STALE_LIMIT_S)
    create_replicated_topic(fleet, "stalled", RECORDS_PER_REGION)
    consume(fleet, "north-all", "stalled-readers", "stalled", count=100)

    def is_stale() -> bool:
        return bool(plan_partition(config, "stalled-readers", "stalled")["verdict"] == "stale")

    with running_controller(config):
        wait_for_verdict(config, "stalled-readers", "stalled", "write")
        fleet.fault_mirror("hang", "south-all")
        hung = time.monotonic()
        produce(fleet, "north", "stalled", ["during the stall"])
        wait_until(is_stale, STALL_S, "the verdict stale")
        stale_after_s = time.monotonic() - hung
        sync = run_recover(config, "sync", "--group", "stalled-readers", "--execute", "--json")
        written = read_committed_offset(fleet, "south-all", "stalled-readers", "stalled")
        wait_until(lambda: time.monotonic() > hung + STALL_S, 2 * STALL_S, "the end of the stall")
        was_stale = is_stale()
        fleet.fault_mirror("heal", "south-all")
        healed = time.monotonic()
        wait_for_verdict(config, "stalled-readers", "stalled", "write")
    return {
        "stale_after_s": round(stale_after_s, 1),
        "stale_at_its_end": was_stale,
        "exit_code": sync.exit_code,
        "written": written,
        "well_after_s": round(time.monotonic() - healed, 1),
    }


def is_as_forecast(lost: dict[str, Any]) -> bool:
    """Return whether nothing was lost, read more often than forecast, or replicated in a loop."""
    back = lost["back"]
    records = back["records"]
    return (
        lost["lost"] == back["lost"] == back["exit_code"] == 0
        and lost["read_twice"] <= lost["forecast_at_most"] + lost["read_since"] + lost["not_yet_written"]
        and back["read_twice"] <= back["forecast_at_most"]
        # A mirror whose target died may copy its last records twice; a loop would affect all clusters.
        and records["south-all"] == records["north"] + records["south"]
    )


@click.command()
@click.option("--json", "as_json", is_flag=True, help="Has no effect: the result is always JSON.")
def main(as_json: bool) -> None:
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder)
        with LocalFleet(root / "fleet", REGIONS.clusters, mirrors=REGIONS.mirrors) as fleet:
            lost = [lose_region(fleet, root, idle) for idle in (None, "south")]
            stalled = stall_mirror(fleet, root)
    click.echo(json.dumps({"lost": lost, "stood_still": stalled}, indent=2))
    refused = stalled["stale_at_its_end"] and stalled["exit_code"] == 1 and stalled["written"] is None
    sys.exit(0 if refused and all(map(is_as_forecast, lost)) else 1)


if __name__ == "__main__":
    main()
