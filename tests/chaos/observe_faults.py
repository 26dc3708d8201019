"""An hour of faults in which nothing changes: an observer records leaderships and fencing, and nothing else.

    python -m tests.chaos.observe_faults --minutes 60 --seed 1
    python -m tests.chaos.observe_faults --minutes 30 --idle

Runs what the demo runs, and hangs, slows down and cuts off brokers in turn. No process of a broker ends, no
setting is altered and no partition is moved; so only fencing, leaderships and the controller change, and only
of brokers that have a fault. With --idle there is no fault, and no stream and no page run: nothing may be
recorded but the restart of a broker at the end. Prints one JSON value; exits with 0 iff that is so.
"""

import json
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from random import Random
from typing import Any

import click

from fleetgauge_core.contract import ClusterChange
from fleetgauge_local.runner_protocol import FaultKind
from fleetgauge_operations.changes.change_topic import read_change_records
from tests.chaos._running_fleet import ALL_SERVICES, Scene, running_scene
from tests.chaos._streaming import Command, log_progress
from tests.waiting import let_pass, wait_until

CLUSTERS, BROKERS = ("orders", "payments"), (1, 2, 3)
WARM_UP_S, FAULT_S, REST_S = 90, 40, 50
SLOW_MS = 200
#: A fault shows this long after its end at the latest: the next look, and a minute of moved leaderships.
SHOWN_WITHIN = timedelta(seconds=120)
#: Kafka looks for leaders that are not the preferred ones every five minutes.
BALANCED_WITHIN = timedelta(minutes=7)


@dataclass(frozen=True, slots=True)
class Fault:
    """A fault of a broker, from when until when it may show."""

    kind: FaultKind
    cluster: str
    broker: int
    starts: datetime
    ends: datetime


def inject(scene: Scene, kind: FaultKind, cluster: str, broker: int) -> Fault:
    starts, started_s = datetime.now(UTC), time.monotonic()
    log_progress(f"{kind} of {cluster} {broker}")
    if kind == "hang":
        scene.local.fault(kind, cluster, broker, for_s=FAULT_S)
        let_pass(started_s + FAULT_S)
    else:
        scene.local.fault(kind, cluster, broker, delay_ms=SLOW_MS if kind == "slow" else None)
        let_pass(started_s + FAULT_S)
        scene.local.fault("heal", cluster, broker)
    scene.local.wait_ready()
    return Fault(kind, cluster, broker, starts, datetime.now(UTC) + SHOWN_WITHIN)


def is_true(record: ClusterChange, faults: Sequence[Fault]) -> bool:
    """Return whether a record is what a fault of a broker does just then, or what follows from its end."""
    faulty, healed = (
        {
            fault.broker
            for fault in faults
            if fault.cluster == record.cluster_id and fault.starts <= record.at <= fault.ends + longer
        }
        for longer in (timedelta(0), BALANCED_WITHIN)
    )
    before, evidence = (json.loads(text or "{}") for text in (record.before, record.evidence))
    match record.kind:
        case "broker_fenced" | "broker_unfenced":
            return record.broker_id in faulty
        case "controller_moved":
            return before["controller"] in faulty
        case "leadership_moved" if evidence.get("failed_over"):
            return any(str(broker) in evidence["lost"] for broker in faulty)
        case "leadership_moved":
            return set(evidence["gained"]) <= {str(broker) for broker in healed}
    return False


def describe(records: Sequence[ClusterChange], faults: Sequence[Fault]) -> dict[str, Any]:
    return {
        "faults": dict(Counter(fault.kind for fault in faults)),
        "recorded": dict(Counter(record.kind for record in records)),
        "untrue": [_to_json(record) for record in records if not is_true(record, faults)],
        "records": [_to_json(record) for record in records],
        "injected": [
            f"{fault.starts:%H:%M:%S} {fault.kind} of {fault.cluster} {fault.broker}" for fault in faults
        ],
    }


def _to_json(record: ClusterChange) -> dict[str, Any]:
    return {
        "kind": record.kind,
        "cluster": record.cluster_id,
        "broker": record.broker_id,
        "topic": record.topic,
        "at": record.at.isoformat(timespec="seconds"),
        "before": record.before,
        "after": record.after,
        "evidence": record.evidence,
    }


@click.command()
@click.option("--minutes", default=60, show_default=True, type=click.IntRange(min=1))
@click.option("--seed", default=1, show_default=True, help="Seed of the faults.")
@click.option("--idle", is_flag=True, help="Inject no fault.")
@click.option("--json", "_", is_flag=True, help="Has no effect: the result is always JSON.")
def main(minutes: int, seed: int, idle: bool, _: bool) -> None:
    services = ("probe", "watch") if idle else ALL_SERVICES
    with tempfile.TemporaryDirectory(prefix="fleetgauge-observe-") as name:
        folder = Path(name)
        with (
            running_scene(folder, services=services) as scene,
            Command(folder / "observe.log", "observe", "--config", str(scene.config)) as observer,
        ):
            let_pass(time.monotonic() + WARM_UP_S)
            report = stay_idle(scene, minutes) if idle else inject_faults(scene, minutes, Random(seed))
            assert observer.is_alive, observer.output[-3000:]
    print(json.dumps(report, indent=2))
    sys.exit(0 if report["observed"] and not report["untrue"] else 1)


def stay_idle(scene: Scene, minutes: int) -> dict[str, Any]:
    """Let nothing happen; a restart at the end shows that the observer was looking."""
    since = datetime.now(UTC)
    let_pass(time.monotonic() + 60 * minutes)
    records = read_since(scene, since)
    scene.local.restart(CLUSTERS[0], BROKERS[0])
    wait_until(lambda: "broker_restarted" in list_kinds(scene, since), 60, "the record of the restart")
    return describe(records, ()) | {"minutes": minutes, "observed": True}


def inject_faults(scene: Scene, minutes: int, random: Random) -> dict[str, Any]:
    kinds: tuple[FaultKind, ...] = ("hang", "slow", "blackhole")
    faults: list[Fault] = []
    since, end_s = datetime.now(UTC), time.monotonic() + 60 * minutes
    while time.monotonic() < end_s:
        kind = kinds[len(faults) % len(kinds)]
        faults.append(inject(scene, kind, random.choice(CLUSTERS), random.choice(BROKERS)))
        let_pass(time.monotonic() + REST_S)
    let_pass(time.monotonic() + SHOWN_WITHIN.total_seconds())
    records = read_since(scene, since)
    return describe(records, faults) | {"observed": "broker_fenced" in list_kinds(scene, since)}


def read_since(scene: Scene, since: datetime) -> list[ClusterChange]:
    return [record for record in read_change_records(scene.telemetry) if record.at >= since]


def list_kinds(scene: Scene, since: datetime) -> set[str]:
    return {record.kind for record in read_since(scene, since)}


if __name__ == "__main__":
    main()
