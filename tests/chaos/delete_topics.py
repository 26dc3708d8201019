"""Deletes every topic of Fleetgauge again and again under a running fleet with all services.

    python -m tests.chaos delete_topics --rounds 5 [--regions]

In each round the telemetry cluster's broker restarts first, so that leader epochs are higher than those of
the topics to come. Then the topics are deleted, in odd rounds one after another and in even rounds all at
once, and each has to be received again by its reader: a complete pulse of each cluster, the watch's time of
the last pulse, a minute in the lake, the watch's state, a demotion mark, tracers of each mirror. Then a
broker hangs, which the watch has to report and the stream has to store. At last, the records that are missing
in the lake have to be those that the stream has stored as lost.

Finished rounds are kept in a file, and the same command continues after them on a fresh fleet. Prints one
JSON value: {rounds, right, received_s: {topic: {median, max}}, table}. Exits with 0 iff in each round
everything was received in time, the broker that hung and no other was reported, no service had ended, and
every loss was stored.
"""

import json
import sys
import tempfile
import time
from collections import defaultdict
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from statistics import median
from typing import Any

import click

from fleetgauge_core.tables import HEALTH_EVENTS
from fleetgauge_local.layout import TELEMETRY
from tests.chaos._losses import compare_losses, read_losses
from tests.chaos._own_topics import OwnTopic, delete_topic, list_own_topics, watch_has_pulses
from tests.chaos._results import Results
from tests.chaos._running_fleet import Scene, running_scene
from tests.chaos._streaming import log_progress, rows
from tests.receiver import Post
from tests.waiting import wait_until

READY_S = 240
HANG_S = 30
GIVE_UP_S = 300


def delete(scene: Scene, topics: Sequence[OwnTopic]) -> dict[str, float | None]:
    """Delete topics at once, and return after how many seconds each was received again; None if never."""
    started_s = time.monotonic()
    for topic in topics:
        delete_topic(scene.local.bootstrap(topic.cluster), topic.name)
    since = datetime.now(UTC)
    received: dict[str, float | None] = {topic.label: None for topic in topics}

    def is_complete() -> bool:
        for topic in topics:
            if received[topic.label] is None and topic.is_received(scene, since):
                received[topic.label] = round(time.monotonic() - started_s, 1)
        return None not in received.values()

    try:
        wait_until(is_complete, GIVE_UP_S, "all topics to be received again", every_s=1)
    except TimeoutError as error:
        log_progress(str(error))
    log_progress(json.dumps(received))
    return received


def restart_telemetry(scene: Scene) -> None:
    """Restart the telemetry cluster's only broker, which is elected again with higher epochs."""
    scene.local.fault("kill", TELEMETRY, 1)
    scene.local.fault("heal", TELEMETRY, 1)
    scene.local.wait_ready()
    since = datetime.now(UTC)
    wait_until(lambda: watch_has_pulses(scene, since), READY_S, "pulses after the restart")


def hang_broker(scene: Scene, number: int) -> dict[str, Any]:
    """Hang a broker, and return after how long it was reported and stored."""
    cluster = scene.fleet.clusters[number % len(scene.fleet.clusters)].id
    (status,) = (status for status in scene.local.status().clusters if status.cluster == cluster)
    broker = status.brokers[number % len(status.brokers)].broker
    since, started_s = datetime.now(UTC), time.monotonic()
    scene.local.fault("hang", cluster, broker, for_s=HANG_S)

    def is_reported() -> bool:
        return any(
            page.at_s > started_s and page.body["status"] == "firing" and page.body["cluster"] == cluster
            for page in scene.pages
        )

    def is_stored() -> bool:
        events = rows(scene.lake, HEALTH_EVENTS)
        return any(event["at"] >= since and event["cluster_id"] == cluster for event in events)

    result: dict[str, Any] = {"cluster": cluster, "broker": broker}
    for outcome, is_reached in (("named_after_s", is_reported), ("stored_after_s", is_stored)):
        result[outcome] = None
        try:
            wait_until(is_reached, GIVE_UP_S, outcome)
            result[outcome] = round(time.monotonic() - started_s, 1)
        except TimeoutError as error:
            log_progress(str(error))
    wait_until(lambda: not find_firing(scene.pages), GIVE_UP_S, "the pages to be resolved")
    log_progress(json.dumps(result))
    return result


def find_firing(pages: Sequence[Post]) -> set[str]:
    last = {page.body["fingerprint"]: page.body["status"] for page in pages}
    return {fingerprint for fingerprint, status in last.items() if status == "firing"}


def run_round(scene: Scene, number: int) -> dict[str, Any]:
    """Delete all topics, hang a broker, and return what was received, reported and lost."""
    log_progress(f"round {number}")
    topics, first_page = list_own_topics(scene), len(scene.pages)
    _, losses_before = read_losses(scene)
    restart_telemetry(scene)
    received: dict[str, float | None] = {}
    for group in [topics] if number % 2 == 0 else [[topic] for topic in topics]:
        received |= delete(scene, group)
    hang = hang_broker(scene, number)
    limits_s = {topic.label: topic.within_s for topic in topics}
    result = {
        "round": number,
        "received_s": received,
        "late": [
            label for label, after_s in received.items() if after_s is None or after_s > limits_s[label]
        ],
        "hang": hang,
        "other_pages": [
            page.body["summary"]
            for page in scene.pages[first_page:]
            if page.body["status"] == "firing"
            and (page.body["cluster"], page.body["broker"]) != (hang["cluster"], hang["broker"])
        ],
        "losses": compare_losses(scene, losses_before),
        "dead_services": [name for name, service in scene.services.items() if not service.is_alive],
    }
    log_progress(json.dumps(result))
    return result


def is_right(result: Mapping[str, Any]) -> bool:
    return (
        not result["late"]
        and not result["other_pages"]
        and not result["dead_services"]
        and None not in result["hang"].values()
        and result["losses"]["is_equal"]
        # The topics of minutes and of findings, of which the stream tells each loss.
        and len(result["losses"]["losses_by_topic"]) == 2
    )


def summarize(table: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    received: dict[str, list[float]] = defaultdict(list)
    for result in table:
        for label, after_s in result["received_s"].items():
            received[label].append(GIVE_UP_S if after_s is None else after_s)
    return {
        "rounds": len(table),
        "right": sum(map(is_right, table)),
        "received_s": {
            label: {"median": median(times_s), "max": max(times_s)} for label, times_s in received.items()
        },
        "table": list(table),
    }


@click.command()
@click.option("--rounds", default=5, show_default=True, type=click.IntRange(min=1))
@click.option("--regions", is_flag=True, help="Run two regions with mirrors and tracers.")
@click.option("--again", is_flag=True, help="Start over instead of continuing an earlier run.")
@click.option("--json", "_", is_flag=True, help="Has no effect: the result is always JSON.")
def main(rounds: int, regions: bool, again: bool, _: bool) -> None:
    name = f"fleetgauge-topics-{rounds}-{'regions' if regions else 'clusters'}.jsonl"
    done = Results(Path(tempfile.gettempdir(), name))
    if again:
        done.delete()
    first = len(done.read()) + 1
    if first <= rounds:
        with (
            tempfile.TemporaryDirectory(prefix="fleetgauge-topics-") as folder,
            running_scene(Path(folder), regions) as scene,
        ):
            started = datetime.now(UTC)
            for topic in list_own_topics(scene):
                wait_until(partial(topic.is_received, scene, started), READY_S, topic.label, every_s=1)
            for number in range(first, rounds + 1):
                done.add(run_round(scene, number))
    summary = summarize(done.read())
    done.delete()
    print(json.dumps(summary, indent=2))
    sys.exit(0 if summary["right"] == rounds else 1)


if __name__ == "__main__":
    main()
