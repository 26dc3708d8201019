"""Hangs each measured broker of a demo for 30 s: it alone is reported within 20 s, and cleared afterwards."""

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
from fleetgauge_core.runtime.shutdown import ShutdownFlag
from fleetgauge_local.demo import RunningDemo, running_demo
from fleetgauge_local.ports import find_free_ports

DOWN, HEALTHY = "BROKER_DOWN", "HEALTHY"


def log_progress(text: str) -> None:
    sys.stderr.write(f"{time.strftime('%H:%M:%S')} {text}\n")


class HealthEventReader:
    """Reads the health events of the run."""

    def __init__(self, running: RunningDemo) -> None:
        topic = running.telemetry.topics.health_events.name
        self._reader = TopicReader(running.telemetry.access, topic, "fleetgauge-chaos")
        self._reader.start()
        self._reader.assign(self._reader.wait_for_partitions(), from_beginning=True)
        self.events: list[HealthEvent] = []

    def wait(
        self, cluster: str, broker: int, state: str, since: datetime, deadline_s: float
    ) -> datetime | None:
        until = time.monotonic() + deadline_s
        while time.monotonic() < until:
            for event in self.events:
                observed = (event.cluster_id, event.broker_id, event.kind, event.to_state)
                if observed == (cluster, broker, DOWN, state) and event.at >= since:
                    return event.at
            record = self._reader.poll(0.5)
            if record:
                self.events.append(HealthEvent.decode(record.value))
        return None

    def list_named(self, since: datetime) -> list[tuple[str, int | None]]:
        return [
            (event.cluster_id, event.broker_id)
            for event in self.events
            if event.to_state == DOWN and event.at >= since
        ]


def hang(
    running: RunningDemo, events: HealthEventReader, cluster: str, broker: int, seconds: float
) -> dict[str, Any]:
    fault = running.local.fault("hang", cluster, broker, for_s=seconds)
    at = datetime.fromisoformat(fault.at)
    log_progress(f"hang {cluster} {broker}")
    named_at = events.wait(cluster, broker, DOWN, at, seconds)
    cleared_at = events.wait(cluster, broker, HEALTHY, named_at or at, seconds + 60)
    running.local.wait_ready()
    others = [key for key in events.list_named(at) if key != (cluster, broker)]
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
        running_demo(
            Path(folder),
            find_free_ports(1, random.Random())[0],
            log_progress,
            time.monotonic(),
            ShutdownFlag(),
        ) as running,
    ):
        events = HealthEventReader(running)
        # The first minutes have the largest batches, which makes the test harder than on a warm fleet.
        brokers = [
            (status.cluster, broker.broker)
            for status in running.local.status().clusters
            for broker in status.brokers
            if status.cluster in {cluster.id for cluster in running.fleet.clusters}
        ]
        results = [hang(running, events, cluster, broker, seconds) for cluster, broker in brokers]
    good = all(
        result["named_after_s"] is not None
        and result["named_after_s"] <= 20
        and result["cleared_after_return_s"] is not None
        and not result["others_named"]
        for result in results
    )
    print(json.dumps({"good": good, "hangs": results}, indent=1))
    sys.exit(0 if good else 1)


if __name__ == "__main__":
    main()
