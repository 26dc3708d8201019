"""Injects a fault each minute into a running fleet with all services; its tables stay those of the oracle.

    python -m tests.chaos soak --minutes 60 --seed 1

Brokers of the measured clusters and of the telemetry cluster hang and are killed; processes are killed and
suspended; topics of Fleetgauge are deleted, or no client may use them for a while; the lake's disk is full;
files of the lake are damaged; records arrive that no agent has measured; another command wants to write to
the lake. A supervisor starts every service again that has ended. After every tenth minute, and at the end,
everything has to be received again, silver and gold have to be what the oracle computes from bronze, the
records that are missing in bronze have to be those that are stored as lost, and no service may have printed
a traceback.

Finished minutes and comparisons are kept in a file. The same command continues on a fresh fleet after the
last comparison. Prints one JSON value. Exits with 0 iff every comparison was right. Only root may mount the
small disk that becomes full; for others that fault is left out.
"""

import json
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from functools import partial
from os import posix_fallocate
from pathlib import Path
from random import Random
from shutil import disk_usage
from typing import Any

import click
from confluent_kafka import Producer
from confluent_kafka.admin import AclOperation

from fleetgauge_core.tables import (
    BROKER_MINUTES,
    CLUSTER_MINUTES,
    CLUSTER_WEEKS,
    FLEET_WEEKS,
    PROBE_MINUTES,
)
from fleetgauge_local.layout import TELEMETRY
from tests import damage
from tests.chaos._faults import stop_processes
from tests.chaos._losses import compare_losses
from tests.chaos._own_topics import delete_topic, list_own_topics
from tests.chaos._results import Results, results_option
from tests.chaos._running_fleet import Scene, running_scene
from tests.chaos._streaming import FLEETGAUGE, log_progress, rows
from tests.chaos._supervised import SupervisedCommand
from tests.kafka.acls import DENY, AclRight, add_right, remove_all_rights
from tests.kafka.strict import CLIENT, adding_authorizer, find_broker_listener
from tests.oracle.compare import find_differences
from tests.oracle.evaluate_run import read_operations, read_records
from tests.oracle.oracle import drop_lone_beginnings, evaluate, read_settings
from tests.probe_minutes import CLIENT as VALID_RECORD
from tests.waiting import let_pass, wait_until

EVERY_S = 60
FAULT_S = 25
COMPARE_EVERY = 10
READY_S = 300
SETTLED_S = 300
#: Parts of a comparison that have to be empty or zero.
WRONG = ("not_received", "differences", "forged_records", "unexplained", "dead", "tracebacks")
#: Twelve records a minute, until the stream reads the next topic.
LOST_BY_A_DELETION = 36
#: A lake of an hour has less than a tenth of it.
DISK = "1g"
FORGER = "soak"


def hang_broker(scene: Scene, rng: Random) -> str:
    cluster, broker = draw_broker(scene, rng)
    started_s = time.monotonic()
    scene.local.fault("hang", cluster, broker, for_s=FAULT_S)
    let_pass(started_s + FAULT_S)
    return f"{cluster}/{broker}"


def kill_broker(scene: Scene, rng: Random) -> str:
    cluster, broker = draw_broker(scene, rng)
    with killed_broker(scene, cluster, broker):
        let_pass(time.monotonic() + FAULT_S)
    return f"{cluster}/{broker}"


def kill_one_broker_and_hang_another(scene: Scene, rng: Random) -> str:
    cluster, broker = draw_broker(scene, rng)
    other = rng.choice([each for each in list_brokers(scene, cluster) if each != broker])
    with killed_broker(scene, cluster, broker):
        let_pass(time.monotonic() + FAULT_S / 3)
        scene.local.fault("hang", cluster, other, for_s=FAULT_S / 3)
        let_pass(time.monotonic() + 2 * FAULT_S / 3)
    return f"{cluster}/{broker}, {other}"


def flap(scene: Scene, rng: Random) -> str:
    cluster, broker = draw_broker(scene, rng)
    for _ in range(3):
        started_s = time.monotonic()
        scene.local.fault("hang", cluster, broker, for_s=FAULT_S / 5)
        let_pass(started_s + 2 * FAULT_S / 5)
    return f"{cluster}/{broker}"


def hang_telemetry(scene: Scene, _: Random) -> str:
    started_s = time.monotonic()
    scene.local.fault("hang", TELEMETRY, 1, for_s=FAULT_S)
    let_pass(started_s + FAULT_S)
    return ""


def restart_telemetry(scene: Scene, _: Random) -> str:
    with killed_broker(scene, TELEMETRY, 1):
        pass
    return ""


def kill_service(scene: Scene, rng: Random) -> str:
    """Kill a service, with its children or alone as the kernel does that runs out of memory."""
    name, service = rng.choice(sorted(scene.services.items()))
    if rng.random() < 0.5:
        with service.killed():
            return name
    for process in service.tree()[:1]:
        process.kill()
    return f"{name} without its children"


def suspend_service(scene: Scene, rng: Random) -> str:
    name, service = rng.choice(sorted(scene.services.items()))
    with stop_processes(service.tree()):
        let_pass(time.monotonic() + FAULT_S)
    return name


def delete_a_topic(scene: Scene, rng: Random) -> str:
    topic = rng.choice(list_own_topics(scene))
    delete_topic(scene.local.bootstrap(topic.cluster), topic.name)
    return topic.label


def deny_a_topic(scene: Scene, rng: Random) -> str:
    """Deny all clients a topic: with one rule of its own, nothing but what rules allow is allowed."""
    topic = rng.choice(list_own_topics(scene))
    listener = find_broker_listener(scene.local, topic.cluster)
    add_right(listener, AclRight(AclOperation.WRITE, topic.name), CLIENT, DENY)
    try:
        let_pass(time.monotonic() + FAULT_S)
    finally:
        remove_all_rights(listener, CLIENT)
    return topic.label


def fill_disk(scene: Scene, _: Random) -> str:
    filler = scene.lake / "filler"
    # The stream may take some of the free space first.
    with filler.open("wb") as file, suppress(OSError):
        posix_fallocate(file.fileno(), 0, disk_usage(scene.lake).free - 4096)
    let_pass(time.monotonic() + FAULT_S)
    filler.unlink()
    return ""


def damage_files(scene: Scene, rng: Random) -> str:
    """Damage files of which no loss comes, as a power failure does, while the stream is down."""
    damages = (damage.empty, damage.cut, damage.fill_with_zeros, damage.remove)
    with scene.services["stream"].killed():
        candidates = {
            "checkpoint": [
                file
                for folder in (scene.lake / "_checkpoints").glob("stream*")
                for file in folder.rglob("*")
                if file.is_file()
            ],
            "hint": list(scene.lake.rglob("_delta_log/_last_checkpoint")),
            "newest version": [file for file in (scene.lake / "_versions").rglob("*.json") if file.is_file()],
        }
        done = []
        for what, files in candidates.items():
            if files:
                file, make = rng.choice(sorted(files)), rng.choice(damages)
                make(file)
                done.append(f"{what} {file.relative_to(scene.lake)}: {make.__name__}")
    return "; ".join(done)


def send_bad_records(scene: Scene, _: Random) -> str:
    """Send what is no record, and records that no agent can have measured."""
    now = datetime.now(UTC).replace(second=0, microsecond=0)
    cluster = scene.fleet.clusters[0].id
    record = replace(
        VALID_RECORD, agent_id=FORGER, run_id=FORGER, cluster_id=cluster, minute=now, emitted_at=now
    )
    forged = (
        replace(record, attempted=10**6),
        replace(record, sequence=1, minute=now + timedelta(hours=1)),
        replace(record, sequence=2, minute=now - timedelta(days=99)),
        replace(record, sequence=3, kafka_cluster_uuid="another"),
        replace(record, sequence=4, cluster_id="unheard-of"),
    )
    producer = Producer({"bootstrap.servers": scene.telemetry.bootstrap})
    for value in (b"", bytes(2000), *(each.encode() for each in forged)):
        producer.produce(scene.telemetry.topics.probe_minutes.name, value, key=cluster)
    producer.flush(FAULT_S)
    return ""


def start_another_writer(scene: Scene, _: Random) -> str:
    """Start a command that writes to the lake, which has to refuse, or wait for nothing."""
    command = (*FLEETGAUGE, "lake", "compact", "--config", str(scene.config))
    result = subprocess.run(command, capture_output=True, text=True, timeout=READY_S, check=False)
    if result.returncode not in (0, 2) or "Traceback" in result.stderr:
        raise AssertionError(f"lake compact ended with {result.returncode}: {result.stderr}")
    return (result.stderr or result.stdout).strip().rpartition("\n")[2]


Inject = Callable[[Scene, Random], str]
FAULTS: tuple[Inject, ...] = (
    hang_broker,
    kill_broker,
    kill_one_broker_and_hang_another,
    flap,
    hang_telemetry,
    restart_telemetry,
    kill_service,
    kill_service,
    suspend_service,
    delete_a_topic,
    deny_a_topic,
    damage_files,
    send_bad_records,
    start_another_writer,
)


@contextmanager
def killed_broker(scene: Scene, cluster: str, broker: int) -> Iterator[None]:
    scene.local.fault("kill", cluster, broker)
    try:
        yield
    finally:
        scene.local.fault("heal", cluster, broker)


def draw_broker(scene: Scene, rng: Random) -> tuple[str, int]:
    cluster = rng.choice([cluster.id for cluster in scene.fleet.clusters])
    return cluster, rng.choice(list_brokers(scene, cluster))


def list_brokers(scene: Scene, cluster: str) -> list[int]:
    (status,) = (status for status in scene.local.status().clusters if status.cluster == cluster)
    return [broker.broker for broker in status.brokers]


def plan_faults(minutes: int, seed: int, faults: Sequence[Inject]) -> list[Inject]:
    """Return a fault for each minute: all of them in a random order, again and again."""
    rng, plan = Random(seed), list[Inject]()
    while len(plan) < minutes:
        plan += rng.sample(faults, len(faults))
    return plan[:minutes]


def run_minute(scene: Scene, number: int, inject: Inject, seed: int) -> dict[str, Any]:
    """Inject a fault, wait for the minute's end, and return what was injected and which services ended."""
    started_s = time.monotonic()
    before = {name: len(service.exits) for name, service in scene.services.items()}
    detail = inject(scene, Random(f"{seed}/{number}"))
    let_pass(started_s + EVERY_S)
    result = {
        "seed": seed,
        "minute": number,
        "fault": inject.__name__,
        "detail": detail,
        "exits": {
            name: service.exits[before[name] :]
            for name, service in scene.services.items()
            if service.exits[before[name] :]
        },
    }
    log_progress(json.dumps(result))
    return result


def compare(scene: Scene, minutes: Sequence[int], deletions: int, seed: int) -> dict[str, Any]:
    """Wait until everything is received again and the tables are the oracle's, and return what is not.

    ``deletions``: how often the topic of minutes was deleted, which alone may lose records.
    """
    started_s = time.monotonic()
    scene.local.wait_ready()
    since = datetime.now(UTC)
    missing = []
    for topic in list_own_topics(scene):
        try:
            wait_until(partial(topic.is_received, scene, since), READY_S, topic.label, every_s=1)
        except TimeoutError:
            missing.append(topic.label)
    differences: dict[str, list[str]] = {}

    def is_equal() -> bool:
        nonlocal differences
        differences = find_table_differences(scene)
        return not any(differences.values())

    try:
        wait_until(is_equal, SETTLED_S, "the tables to be the oracle's", every_s=5)
    except TimeoutError as error:
        log_progress(str(error))
    losses = compare_losses(scene, Counter())
    forged = sum(row["agent_id"] == FORGER for row in rows(scene.lake, PROBE_MINUTES, ["agent_id"]))
    result = {
        "seed": seed,
        "compared": list(minutes),
        "not_received": missing,
        "differences": {path: lines[:5] for path, lines in differences.items() if lines},
        "records": len(rows(scene.lake, PROBE_MINUTES, ["sequence"])),
        "forged_records": forged,
        "losses": losses,
        "deletions": deletions,
        "unexplained": max(0, losses["missing"] - deletions * LOST_BY_A_DELETION),
        "dead": find_dead(scene),
        "tracebacks": [name for name in scene.services if "Traceback" in read_log(scene, name)],
        "seconds": round(time.monotonic() - started_s),
    }
    result["right"] = losses["is_equal"] and not any(result[key] for key in WRONG)
    log_progress(json.dumps(result))
    return result


def find_dead(scene: Scene) -> list[str]:
    """Return the services that the supervisor does not start again within a few seconds."""
    with suppress(TimeoutError):
        wait_until(lambda: all(service.is_alive for service in scene.services.values()), 10, "the services")
    return [name for name, service in scene.services.items() if not service.is_alive]


def read_log(scene: Scene, service: str) -> str:
    """Return all that a service has printed, before its restarts too."""
    return (scene.config.parent / f"{service}.log").read_text(encoding="utf-8", errors="replace")


def find_table_differences(scene: Scene) -> dict[str, list[str]]:
    clock, settings = datetime.now(UTC), read_settings(scene.fleet)
    records = drop_lone_beginnings(read_records(scene.lake), settings, clock)
    wanted = evaluate(records, settings, clock, read_operations(scene.lake))
    pairs = (
        (BROKER_MINUTES, wanted.broker_minutes),
        (CLUSTER_MINUTES, wanted.cluster_minutes),
        (CLUSTER_WEEKS, wanted.cluster_weeks),
        (FLEET_WEEKS, wanted.fleet_weeks),
    )
    return {
        table.path: [str(each) for each in find_differences(table, expected, rows(scene.lake, table))]
        for table, expected in pairs
    }


@contextmanager
def small_disk(folder: Path) -> Iterator[bool]:
    """Mount a small disk, and return whether this user may do so."""
    folder.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", f"size={DISK}", "tmpfs", str(folder)]
    if subprocess.run(mount, capture_output=True, check=False).returncode:
        yield False
        return
    try:
        yield True
    finally:
        subprocess.run(["umount", "--lazy", str(folder)], check=True)


def run_minutes(first: int, minutes: int, seed: int, results: Results) -> None:
    """Run minutes on a fresh fleet, and keep the result of each minute and comparison."""
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="fleetgauge-soak-")))
        may_mount = stack.enter_context(small_disk(folder / "lake"))
        faults = (*FAULTS, fill_disk) if may_mount else FAULTS
        open_to_all = {"allow.everyone.if.no.acl.found": "true"}
        stack.enter_context(adding_authorizer(folder / "classes", open_to_all))
        scene = stack.enter_context(running_scene(folder, command=SupervisedCommand))
        started = datetime.now(UTC)
        for topic in list_own_topics(scene):
            wait_until(partial(topic.is_received, scene, started), READY_S, topic.label, every_s=1)
        unchecked, deletions = [], 0
        minutes_topic = f"{TELEMETRY}/{scene.telemetry.topics.probe_minutes.name}"
        for number, inject in enumerate(plan_faults(minutes, seed, faults), start=1):
            if number < first:
                continue
            result = run_minute(scene, number, inject, seed)
            results.add(result)
            unchecked.append(number)
            deletions += (result["fault"], result["detail"]) == (delete_a_topic.__name__, minutes_topic)
            if number % COMPARE_EVERY == 0 or number == minutes:
                results.add(compare(scene, unchecked, deletions, seed))
                unchecked = []


@click.command()
@click.option("--minutes", default=60, show_default=True, type=click.IntRange(min=1))
@click.option("--seed", default=1, show_default=True)
@results_option("soak.jsonl")
@click.option("--json", "_as_json", is_flag=True, help="Accepted for uniformity: the result is JSON anyway.")
def main(minutes: int, seed: int, results: Results, _as_json: bool) -> None:
    """Inject a fault each minute, and compare the tables with the oracle's."""

    done = [line for line in results.read() if line["seed"] == seed]
    compared = {number for line in done for number in line.get("compared", ())}
    if len(compared) < minutes:
        run_minutes(max(compared, default=0) + 1, minutes, seed, results)
    lines = [line for line in results.read() if line["seed"] == seed]
    comparisons = [line for line in lines if "compared" in line]
    last = {line["minute"]: line for line in lines if "minute" in line}
    wrong = [line for line in comparisons if not line["right"]]
    report = {
        "minutes": len(last),
        "faults": dict(Counter(line["fault"] for line in last.values())),
        "comparisons": len(comparisons),
        "wrong": wrong,
        "lost_records": [line["losses"]["stored"] for line in comparisons],
        "table": [last[number] for number in sorted(last)],
    }
    print(json.dumps(report, indent=2))
    sys.exit(bool(wrong))


if __name__ == "__main__":
    main()
