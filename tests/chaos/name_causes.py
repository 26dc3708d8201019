"""Faults, rolls, reassignments and throttles on real brokers: does each bad minute get the right cause?

    python -m tests.chaos.name_causes --faults 24 --changes 6 --seed 1

Two clusters of three brokers, an agent, a watch, an observer and a stream. Rolls, reassignments and throttles
are real. Most of them come with what they may cost: all brokers of the cluster are slowed down at once, which
is a fault of none of them. Events of the two clusters run side by side, and each cluster rests between two.
Finished rounds are kept in a file, and the same command continues after them. Prints one JSON value. Exits
with 0 iff every bad minute around an event has its cause, and each kind of change cost minutes three times.
"""

import json
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from itertools import zip_longest
from pathlib import Path
from random import Random
from typing import Any

import click

from fleetgauge_core.kafka import ClusterAdmin, RecordProducer, TopicSpec
from fleetgauge_core.metadata import TopicPartition
from fleetgauge_core.tables import BROKER_MINUTES, CLUSTER_MINUTES
from tests.chaos._results import Results, results_option
from tests.chaos._running_fleet import Scene, running_scene
from tests.chaos._streaming import Command, log_progress, rows
from tests.observed import reassign
from tests.waiting import let_pass, wait_until

CLUSTERS = ("orders", "payments")
BROKERS = (1, 2, 3)
TOPIC, RECORDS, RECORD_BYTES = "moved", 400, 50_000
PLACED_ON, MOVED_TO = (1, 2), (3, 1)
WARM_UP_S = 120
#: Between two events of a cluster: findings have cleared, and leaders are back.
REST_S = 150
FAULT_S, SLOW_S, CHANGE_S = 40, 100, 75
SLOW_MS, COST_MS = 200, 150
READY_WITHIN_S = 60
#: By then the minute of an event's end is in silver.
STORED_WITHIN_S = 300
MINUTE = timedelta(minutes=1)
#: Clients recover, and leaders return, within a minute after an event.
RECOVERY = timedelta(minutes=1)
OBJECTIVE_US = 100_000
#: A change of each kind must cost minutes so many times.
LEAST_COSTING = 3


@dataclass(frozen=True, slots=True)
class EventOnCluster:
    """A fault or a change: what it is, where, and the causes that its minutes may have."""

    kind: str
    cluster: str
    broker: int
    causes: frozenset[str]
    costs: bool
    run: Callable[[Scene, "EventOnCluster"], None]


def hang(scene: Scene, event: EventOnCluster) -> None:
    scene.local.fault("hang", event.cluster, event.broker, for_s=FAULT_S)
    let_pass(time.monotonic() + FAULT_S)


def kill(scene: Scene, event: EventOnCluster) -> None:
    scene.local.fault("kill", event.cluster, event.broker)
    let_pass(time.monotonic() + FAULT_S)
    scene.local.fault("heal", event.cluster, event.broker)


def slow(scene: Scene, event: EventOnCluster) -> None:
    scene.local.fault("slow", event.cluster, event.broker, delay_ms=SLOW_MS)
    let_pass(time.monotonic() + SLOW_S)
    scene.local.fault("heal", event.cluster, event.broker)


def cut_off(scene: Scene, event: EventOnCluster) -> None:
    scene.local.fault("blackhole", event.cluster, event.broker)
    let_pass(time.monotonic() + FAULT_S)
    scene.local.fault("heal", event.cluster, event.broker)


def roll(scene: Scene, event: EventOnCluster) -> None:
    for broker in BROKERS:
        scene.local.restart(event.cluster, broker)
        wait_until(lambda: all_brokers_are_up(scene, event.cluster), READY_WITHIN_S, "the restarted broker")
        # The delays of a broker end with its process.
        with costing(scene, event):
            let_pass(time.monotonic() + CHANGE_S / 3)


def all_brokers_are_up(scene: Scene, cluster_id: str) -> bool:
    # A broker of the other cluster may have been killed meanwhile.
    return all(
        broker.state == "up"
        for cluster in scene.local.status().clusters
        if cluster.cluster == cluster_id
        for broker in cluster.brokers
    )


def move(scene: Scene, event: EventOnCluster) -> None:
    """Move a replica of a topic to another broker, slowly, and back at the end."""
    access, admin = scene.fleet.cluster(event.cluster).access, start_admin(scene, event)
    with throttled(admin, "200000"), costing(scene, event):
        reassign(access, {TopicPartition(TOPIC, 0): MOVED_TO})
        let_pass(time.monotonic() + CHANGE_S)
    reassign(access, {TopicPartition(TOPIC, 0): PLACED_ON})


def throttle(scene: Scene, event: EventOnCluster) -> None:
    with throttled(start_admin(scene, event), "1000000"), costing(scene, event):
        let_pass(time.monotonic() + CHANGE_S)


@contextmanager
def throttled(admin: ClusterAdmin, rate: str) -> Iterator[None]:
    """Limit the bandwidth of replication while the block runs."""

    def set_all(replicas: str | None, value: str | None) -> None:
        for side in ("leader", "follower"):
            admin.set_topic_setting(TOPIC, f"{side}.replication.throttled.replicas", replicas)
            for broker in BROKERS:
                admin.set_broker_setting(broker, f"{side}.replication.throttled.rate", value)

    set_all("*", rate)
    try:
        yield
    finally:
        set_all(None, None)


@contextmanager
def costing(scene: Scene, event: EventOnCluster) -> Iterator[None]:
    """Slow down all brokers of the cluster while the block runs, if the change is to cost something."""
    brokers = BROKERS if event.costs else ()
    for broker in brokers:
        scene.local.fault("slow", event.cluster, broker, delay_ms=COST_MS)
    try:
        yield
    finally:
        for broker in brokers:
            scene.local.fault("heal", event.cluster, broker)


def start_admin(scene: Scene, event: EventOnCluster) -> ClusterAdmin:
    admin = ClusterAdmin(scene.fleet.cluster(event.cluster).access)
    admin.start()
    return admin


FAULTS: Mapping[str, tuple[frozenset[str], Callable[[Scene, EventOnCluster], None]]] = {
    "hang": (frozenset({"BROKER_DOWN"}), hang),
    "slow": (frozenset({"DEGRADED"}), slow),
    "kill": (frozenset({"BROKER_DOWN"}), kill),
    "cut_off": (frozenset({"BROKER_DOWN", "NETWORK_UNAVAILABLE"}), cut_off),
}
CHANGES: Mapping[str, Callable[[Scene, EventOnCluster], None]] = {
    "roll": roll,
    "reassignment": move,
    "throttle": throttle,
}


def plan_events(faults: int, changes: int, seed: int) -> list[tuple[EventOnCluster, ...]]:
    """Return rounds of up to two events, of one cluster each, in an order that the seed gives."""
    random = Random(seed)
    kinds = [list(FAULTS)[number % len(FAULTS)] for number in range(faults)]
    kinds += [kind for kind in CHANGES for _ in range(changes)]
    random.shuffle(kinds)
    counts: Counter[str] = Counter()
    by_cluster: dict[str, list[EventOnCluster]] = {cluster: [] for cluster in CLUSTERS}
    for number, kind in enumerate(kinds):
        cluster = CLUSTERS[number % len(CLUSTERS)]
        counts[kind] += 1
        # Two of three changes cost something.
        costs = kind in CHANGES and counts[kind] % 3 != 0
        causes, run = (frozenset({kind}), CHANGES[kind]) if kind in CHANGES else FAULTS[kind]
        by_cluster[cluster].append(EventOnCluster(kind, cluster, random.choice(BROKERS), causes, costs, run))
    return [
        tuple(event for event in events if event is not None) for events in zip_longest(*by_cluster.values())
    ]


def run_round(scene: Scene, events: Sequence[EventOnCluster]) -> list[dict[str, Any]]:
    """Let events happen side by side, and return the causes of the minutes around each."""
    log_progress(", ".join(f"{event.kind} of {event.cluster} {event.broker}" for event in events))
    with ThreadPoolExecutor() as pool:
        spans = list(pool.map(lambda event: run_event(scene, event), events))
    scene.local.wait_ready()
    let_pass(time.monotonic() + REST_S)
    last = max(end for _, end in spans) + RECOVERY + MINUTE
    wait_until(lambda: is_stored(scene, last), STORED_WITHIN_S, f"the minutes until {last:%H:%M}", every_s=5)
    results = [describe(scene, event, *span) for event, span in zip(events, spans, strict=True)]
    for result in results:
        log_progress(json.dumps(result))
    return results


def run_event(scene: Scene, event: EventOnCluster) -> tuple[datetime, datetime]:
    started = datetime.now(UTC)
    event.run(scene, event)
    return started, datetime.now(UTC)


def is_stored(scene: Scene, last: datetime) -> bool:
    newest = {cluster: datetime.min.replace(tzinfo=UTC) for cluster in CLUSTERS}
    for row in rows(scene.lake, CLUSTER_MINUTES):
        if row["brokers_measured"]:
            newest[row["cluster_id"]] = max(newest[row["cluster_id"]], row["minute"])
    return all(minute + MINUTE >= last for minute in newest.values())


def describe(scene: Scene, event: EventOnCluster, start: datetime, end: datetime) -> dict[str, Any]:
    minutes = [
        row
        for row in rows(scene.lake, CLUSTER_MINUTES)
        if row["cluster_id"] == event.cluster
        and row["minute"] + MINUTE > start
        and row["minute"] < end + RECOVERY
        and row["cause"] is not None
    ]
    wrong = [row for row in minutes if row["cause"] not in event.causes]
    slowest = [
        (row["minute"].strftime("%H:%M"), row["broker_id"], row["latency_p99_censored_us"] // 1000)
        for row in rows(scene.lake, BROKER_MINUTES)
        if row["cluster_id"] == event.cluster
        and row["leg"] == "client"
        and row["minute"] in {each["minute"] for each in wrong}
        and (row["latency_p99_censored_us"] or 0) > OBJECTIVE_US
    ]
    return {
        "kind": event.kind,
        "cluster": event.cluster,
        "broker": event.broker,
        "start": start.isoformat(timespec="seconds"),
        "end": end.isoformat(timespec="seconds"),
        "causes": dict(Counter(row["cause"] for row in minutes)),
        "wrong": [(row["minute"].strftime("%H:%M"), row["cause"]) for row in wrong],
        "slow_in_wrong_ms": slowest,
    }


def summarize(table: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    costing_changes = Counter(row["kind"] for row in table if row["kind"] in CHANGES and row["causes"])
    of_faults = [row for row in table if row["kind"] in FAULTS]
    return {
        "events": len(table),
        "bad_minutes": sum(sum(row["causes"].values()) for row in table),
        "wrong_minutes": sum(len(row["wrong"]) for row in table),
        "minutes_of_faults_that_went_to_a_change": sum(
            cause in CHANGES or cause == "change" for row in of_faults for _, cause in row["wrong"]
        ),
        "changes_that_cost_minutes": dict(costing_changes),
        "table": list(table),
    }


def prepare(scene: Scene) -> None:
    """Create the topic that is moved, with data."""
    for cluster in CLUSTERS:
        access = scene.fleet.cluster(cluster).access
        admin = ClusterAdmin(access)
        admin.start()
        admin.create_topic(TopicSpec(TOPIC, assignment=(PLACED_ON,)))
        producer = RecordProducer(access, "chaos")
        producer.start()
        producer.send_all(TOPIC, (("", bytes(RECORD_BYTES)) for _ in range(RECORDS)))
        assert not producer.stop(60)


@click.command()
@click.option("--faults", default=24, show_default=True, type=click.IntRange(min=0))
@click.option("--changes", default=6, show_default=True, type=click.IntRange(min=0), help="Of each kind.")
@click.option("--seed", default=1, show_default=True, help="Seed of the order and of the brokers.")
@results_option(".venv/causes.jsonl")
@click.option("--json", "_", is_flag=True, help="Has no effect: the result is always JSON.")
def main(faults: int, changes: int, seed: int, results: Results, _: bool) -> None:
    rounds, done = plan_events(faults, changes, seed), len(results.read())
    left, finished = [], 0
    for events in rounds:
        finished += len(events)
        left += [events] if finished > done else []
    if left:
        with tempfile.TemporaryDirectory(prefix="fleetgauge-causes-") as folder:
            run_rounds(Path(folder), left, results)
    report = summarize(results.read())
    print(json.dumps(report, indent=2))
    is_costly = all(
        report["changes_that_cost_minutes"].get(kind, 0) >= min(LEAST_COSTING, changes) for kind in CHANGES
    )
    sys.exit(0 if is_costly and not report["wrong_minutes"] else 1)


def run_rounds(folder: Path, rounds: Sequence[Sequence[EventOnCluster]], results: Results) -> None:
    with (
        running_scene(folder) as scene,
        Command(folder / "observe.log", "observe", "--config", str(scene.config)),
    ):
        prepare(scene)
        let_pass(time.monotonic() + WARM_UP_S)
        for number, events in enumerate(rounds, 1):
            log_progress(f"round {number} of {len(rounds)}")
            results.add(*run_round(scene, events))


if __name__ == "__main__":
    main()
