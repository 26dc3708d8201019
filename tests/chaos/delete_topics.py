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
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import partial
from itertools import pairwise
from pathlib import Path
from random import Random
from statistics import median
from typing import Any

import click
import urllib3
import yaml
from confluent_kafka.admin import AdminClient
from deltalake import DeltaTable

from fleetgauge_core.contract import Leg, LegPulse, ProbePulse
from fleetgauge_core.detection import BURN_CONDITIONS
from fleetgauge_core.fleet import ClusterAccess, Fleet, Telemetry, load_fleet
from fleetgauge_core.kafka import ClusterAdmin, KafkaUnavailableError, ensure_telemetry_topics
from fleetgauge_core.kafka.demotion_marks import read_demotion_marks, write_demotion_mark
from fleetgauge_core.tables import HEALTH_EVENTS, MIRROR_MINUTES, PROBE_MINUTES, QUALITY
from fleetgauge_local.fleet import LocalFleet
from fleetgauge_local.layout import HOST, TELEMETRY, TOPOLOGIES
from fleetgauge_local.ports import find_free_ports
from fleetgauge_local.traffic import build_traffic_service
from fleetgauge_probes.agent.topic_plan import TOPIC
from tests.chaos._streaming import Command, Row, log_progress, rows
from tests.exposition import samples
from tests.receiver import Post, Receiver
from tests.topic_values import read_values
from tests.waiting import wait_until

READY_S = 240
HANG_S = 30
#: From the deletion until a reader has a new record. A reader has to recognise the deletion within 30 s.
RECEIVED_WITHIN_S = 60
#: A minute is sent up to 73 s after its beginning, and a batch of three small clusters takes up to 12 s.
STORED_WITHIN_S = 150
#: The rows of a whole minute after the deletion are written up to half a minute after its end.
TRACERS_WITHIN_S = 180
GIVE_UP_S = 300
#: Gaps before a run's newest minutes may still be filled by records on their way.
SETTLED_S = 240
MINUTE = timedelta(minutes=1)


@dataclass(frozen=True)
class Scene:
    """A fleet, the addresses of its services' metrics, and the receiver of its pages."""

    local: LocalFleet
    fleet: Fleet
    telemetry: Telemetry
    ports: Mapping[str, int]
    services: Mapping[str, Command]
    pager: Receiver

    @property
    def lake(self) -> Path:
        return Path(self.fleet.lake)

    @property
    def pages(self) -> list[Post]:
        """What was sent, without error budgets: they burn for as long as their windows last."""
        return [post for post in list(self.pager.posts) if post.body["kind"] not in BURN_CONDITIONS]

    def read_metric(self, service: str, name: str) -> dict[tuple[str, ...], float]:
        try:
            response = urllib3.request("GET", f"http://{HOST}:{self.ports[service]}/metrics", timeout=5)
        except urllib3.exceptions.HTTPError:
            return {}
        return samples(response.data.decode(), name)

    def read_pulses(self) -> list[ProbePulse]:
        try:
            values = read_values(self.telemetry.access, self.telemetry.topics.probe_pulse.name)
        except KafkaUnavailableError:
            return []
        return [ProbePulse.decode(value) for value in values]


@dataclass(frozen=True)
class OwnTopic:
    """A topic of ours. ``is_received`` returns whether its reader has a record written after a time."""

    cluster: str
    name: str
    is_received: Callable[[Scene, datetime], bool]
    within_s: float = RECEIVED_WITHIN_S

    @property
    def label(self) -> str:
        return f"{self.cluster}/{self.name}"


def list_own_topics(scene: Scene) -> list[OwnTopic]:
    topics = scene.telemetry.topics
    tracers = scene.fleet.recovery.tracers if scene.fleet.recovery.mirrors else None
    return [
        *(OwnTopic(cluster.id, TOPIC, probes_of(cluster.id)) for cluster in scene.fleet.clusters),
        OwnTopic(TELEMETRY, topics.probe_pulse.name, watch_has_pulses),
        OwnTopic(TELEMETRY, topics.probe_minutes.name, lake_has_minutes, STORED_WITHIN_S),
        # Its reader gets a record when a broker hangs at the end of the round.
        OwnTopic(TELEMETRY, topics.health_events.name, lambda scene, _: has_events_topic(scene)),
        OwnTopic(TELEMETRY, topics.watch_state.name, watch_leads_with_state),
        OwnTopic(TELEMETRY, topics.demotions.name, demotions_are_stored),
        *(
            OwnTopic(source, tracers.topic, mirrors_bring_tracers(source), TRACERS_WITHIN_S)
            for source in sorted({mirror.source for mirror in scene.fleet.recovery.mirrors})
            if tracers
        ),
    ]


def probes_of(cluster: str) -> Callable[[Scene, datetime], bool]:
    """Return whether all brokers of a cluster had a successful probe on each leg after a time."""

    def is_received(scene: Scene, since: datetime) -> bool:
        return any(
            pulse.cluster_id == cluster
            and all(has_success_since(leg, pulse, since) for leg in list_legs(pulse))
            for pulse in scene.read_pulses()
            if pulse.emitted_at > since and pulse.brokers
        )

    return is_received


def list_legs(pulse: ProbePulse) -> list[LegPulse | None]:
    return [broker.leg_pulse(leg) for broker in pulse.brokers for leg in Leg]


def has_success_since(leg: LegPulse | None, pulse: ProbePulse, since: datetime) -> bool:
    if leg is None or leg.success_age_ms is None:
        return False
    return pulse.emitted_at - timedelta(milliseconds=leg.success_age_ms) > since


def watch_has_pulses(scene: Scene, since: datetime) -> bool:
    times = scene.read_metric("watch", "fleetgauge_watch_pulse_timestamp_seconds")
    return len(times) >= len(scene.fleet.clusters) and min(times.values()) > since.timestamp()


def lake_has_minutes(scene: Scene, since: datetime) -> bool:
    table = str(scene.lake / PROBE_MINUTES.path)
    if not DeltaTable.is_deltatable(table):
        return False
    # The minute of the deletion was partly measured before it, and its records are sent after it.
    minutes = DeltaTable(table).to_pyarrow_table(
        columns=["minute"], filters=[("minute", ">", since - MINUTE)]
    )
    return minutes.num_rows > 0


def has_events_topic(scene: Scene) -> bool:
    admin = AdminClient({"bootstrap.servers": scene.telemetry.bootstrap})
    return scene.telemetry.topics.health_events.name in admin.list_topics(timeout=10).topics


def watch_leads_with_state(scene: Scene, _: datetime) -> bool:
    if scene.read_metric("watch", "fleetgauge_watch_active") != {(): 1}:
        return False
    try:
        return bool(read_values(scene.telemetry.access, scene.telemetry.topics.watch_state.name))
    except KafkaUnavailableError:
        return False


def demotions_are_stored(scene: Scene, since: datetime) -> bool:
    """Mark a broker as not demoted, as the end of an action does, and read it as an agent does."""
    cluster = scene.fleet.clusters[0].id
    try:
        write_demotion_mark(scene.telemetry, cluster, 1, demoted=False, now=since)
        return read_demotion_marks(scene.telemetry, cluster) == {1: False}
    except KafkaUnavailableError:
        return False


def mirrors_bring_tracers(source: str) -> Callable[[Scene, datetime], bool]:
    """Return whether both mirrors of a source have brought tracers in a minute after a time."""

    def is_received(scene: Scene, since: datetime) -> bool:
        destinations = {
            mirror.destination for mirror in scene.fleet.recovery.mirrors if mirror.source == source
        }
        return destinations == {
            row["destination"]
            for row in rows(scene.lake, MIRROR_MINUTES, ["source", "destination", "minute", "tracers"])
            if row["source"] == source and row["minute"] > since and row["tracers"]
        }

    return is_received


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


def delete_topic(bootstrap: str, name: str) -> None:
    """Delete a topic, and wait until it is gone or made anew."""
    admin = ClusterAdmin(ClusterAccess(bootstrap))
    admin.start()
    before = admin.describe_topic(name)
    assert before is not None, name
    client = AdminClient({"bootstrap.servers": bootstrap})  # the future fails once the client is deleted
    client.delete_topics([name])[name].result()

    def is_gone() -> bool:
        topic = admin.describe_topic(name)
        return topic is None or topic.topic_id != before.topic_id

    wait_until(is_gone, READY_S, f"the deletion of {name}")


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


def find_missing(records: Sequence[Row]) -> dict[str, list[int]]:
    """Return by run the numbers that are missing between its first and its last record."""
    numbers: dict[str, set[int]] = defaultdict(set)
    for record in records:
        numbers[record["run_id"]].add(record["sequence"])
    missing = {
        run: [number for before, after in pairwise(sorted(sequences)) for number in range(before + 1, after)]
        for run, sequences in numbers.items()
    }
    return {run: sequences for run, sequences in missing.items() if sequences}


def read_losses(scene: Scene) -> tuple[dict[str, list[int]], Counter[str]]:
    """Return the numbers of the records that are stored as lost by run, and the stored losses by topic."""
    numbers: dict[str, set[int]] = defaultdict(set)
    losses = [row for row in rows(scene.lake, QUALITY) if row["suite"] == "topics"]
    for row in losses:
        for run, spans in json.loads(row["observed"]).get("sequences", {}).items():
            for span in spans:
                first, last = map(int, span.split("-"))
                numbers[run] |= set(range(first, last + 1))
    stored = {run: sorted(sequences) for run, sequences in numbers.items()}
    return stored, Counter(row["expectation"] for row in losses)


def compare_losses(scene: Scene, before: Counter[str]) -> dict[str, Any]:
    """Wait until what is missing in the lake is what the stream has stored, and return both counts.

    ``before``: the losses by topic that were stored before.
    """

    def read_both() -> tuple[dict[str, list[int]], dict[str, list[int]]]:
        return find_missing(rows(scene.lake, PROBE_MINUTES, ["run_id", "sequence"])), read_losses(scene)[0]

    def is_equal() -> bool:
        missing, stored = read_both()
        return missing == stored

    try:
        wait_until(is_equal, SETTLED_S, "the losses to be stored", every_s=5)
    except TimeoutError as error:
        log_progress(str(error))
    missing, stored = read_both()
    return {
        "missing": sum(map(len, missing.values())),
        "stored": sum(map(len, stored.values())),
        "is_equal": missing == stored,
        "losses_by_topic": dict(read_losses(scene)[1] - before),
    }


@contextmanager
def running_scene(regions: bool) -> Iterator[Scene]:
    topology = TOPOLOGIES["regions" if regions else "clusters"]
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="fleetgauge-topics-")))
        local = stack.enter_context(
            LocalFleet(folder / "fleet", topology.clusters, mirrors=topology.mirrors, progress=log_progress)
        )
        pager = stack.enter_context(Receiver().listening())
        config = folder / "fleet.yaml"
        changed = {"notifiers": [{"kind": "webhook", "url": pager.url}], "lake": str(folder / "lake")}
        config.write_text(yaml.safe_dump(yaml.safe_load(local.fleet_file.read_text()) | changed))
        fleet = load_fleet(config)
        assert fleet.telemetry is not None
        ensure_telemetry_topics(fleet.telemetry)
        commands = {name: (name,) for name in ("probe", "watch", "stream")}
        if regions:
            traffic = build_traffic_service(config)
            program = (sys.executable, "-m", traffic.module)
            stack.enter_context(Command(folder / "traffic.log", *traffic.arguments, program=program))
            commands["recover"] = ("recover", "run", "--execute")
        ports = dict(zip(commands, find_free_ports(len(commands), Random()), strict=True))
        services = {
            name: stack.enter_context(
                Command(
                    folder / f"{name}.log",
                    *arguments,
                    *("--config", str(config), "--listen", f"{HOST}:{ports[name]}"),
                )
            )
            for name, arguments in commands.items()
        }
        try:
            yield Scene(local, fleet, fleet.telemetry, ports, services, pager)
        except TimeoutError:
            for name, service in services.items():
                log_progress(f"{name}: {service.output[-3000:]}")
            raise


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
    kept = Path(
        tempfile.gettempdir(), f"fleetgauge-topics-{rounds}-{'regions' if regions else 'clusters'}.jsonl"
    )
    if again:
        kept.unlink(missing_ok=True)
    first = len(kept.read_text(encoding="utf-8").splitlines()) + 1 if kept.exists() else 1
    if first <= rounds:
        with running_scene(regions) as scene:
            started = datetime.now(UTC)
            for topic in list_own_topics(scene):
                wait_until(partial(topic.is_received, scene, started), READY_S, topic.label, every_s=1)
            for number in range(first, rounds + 1):
                result = run_round(scene, number)
                with kept.open("a", encoding="utf-8") as file:
                    file.write(f"{json.dumps(result)}\n")
    summary = summarize([json.loads(line) for line in kept.read_text(encoding="utf-8").splitlines()])
    kept.unlink()
    print(json.dumps(summary, indent=2))
    sys.exit(0 if summary["right"] == rounds else 1)


if __name__ == "__main__":
    main()
