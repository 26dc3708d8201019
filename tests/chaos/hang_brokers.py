"""Hangs each measured broker of a demo in turn for 30 s: named within 20 s, none other, each cleared."""

import json
import random
import sys
import tempfile
import time
from datetime import datetime
from pathlib import Path
from typing import Any

import click

from fleetgauge_core.contract import HealthEvent
from fleetgauge_core.kafka import TopicReader
from fleetgauge_local.demo import Running, running_demo
from fleetgauge_local.ports import free_ports

DOWN, HEALTHY = "BROKER_DOWN", "HEALTHY"


def say(text: str) -> None:
    sys.stderr.write(f"{time.strftime('%H:%M:%S')} {text}\n")


class Events:
    """The health events of the run so far."""

    def __init__(self, running: Running) -> None:
        topic = running.telemetry.topics.health_events.name
        self._reader = TopicReader(running.telemetry.access, topic, "fleetgauge-chaos")
        self._reader.start()
        self._reader.add(self._reader.partitions(), from_beginning=True)
        self.seen: list[HealthEvent] = []

    def wait(
        self, cluster: str, broker: int, state: str, since: datetime, deadline_s: float
    ) -> datetime | None:
        until = time.monotonic() + deadline_s
        while time.monotonic() < until:
            for event in self.seen:
                found = (event.cluster_id, event.broker_id, event.kind, event.to_state)
                if found == (cluster, broker, DOWN, state) and event.at >= since:
                    return event.at
            record = self._reader.poll(0.5)
            if record:
                self.seen.append(HealthEvent.decode(record.value))
        return None

    def named(self, since: datetime) -> list[tuple[str, int | None]]:
        return [(e.cluster_id, e.broker_id) for e in self.seen if e.to_state == DOWN and e.at >= since]


def hang(running: Running, events: Events, cluster: str, broker: int, seconds: float) -> dict[str, Any]:
    fault = running.local.fault("hang", cluster, broker, for_s=seconds)
    at = datetime.fromisoformat(fault.at)
    say(f"hang {cluster} {broker}")
    named_at = events.wait(cluster, broker, DOWN, at, seconds)
    cleared_at = events.wait(cluster, broker, HEALTHY, named_at or at, seconds + 60)
    running.local.wait_ready()
    others = [key for key in events.named(at) if key != (cluster, broker)]
    return {
        "cluster": cluster,
        "broker": broker,
        "named_after_s": round((named_at - at).total_seconds(), 1) if named_at else None,
        "cleared_after_return_s": round((cleared_at - at).total_seconds() - seconds, 1)
        if cleared_at
        else None,
        "others_named": others,
    }


@click.command()
@click.option("--for", "seconds", default=30.0, show_default=True)
def main(seconds: float) -> None:
    with (
        tempfile.TemporaryDirectory() as folder,
        running_demo(Path(folder), free_ports(1, random.Random())[0], say, time.monotonic()) as running,
    ):
        events = Events(running)
        # The batches of the first minutes are the heaviest: a harder test than a warm fleet.
        brokers = [
            (one.cluster, broker.broker)
            for one in running.local.status().clusters
            for broker in one.brokers
            if one.cluster in {cluster.id for cluster in running.fleet.clusters}
        ]
        results = [hang(running, events, cluster, broker, seconds) for cluster, broker in brokers]
    good = all(
        r["named_after_s"] is not None
        and r["named_after_s"] <= 20
        and r["cleared_after_return_s"] is not None
        and not r["others_named"]
        for r in results
    )
    print(json.dumps({"good": good, "hangs": results}, indent=1))
    sys.exit(0 if good else 1)


if __name__ == "__main__":
    main()
