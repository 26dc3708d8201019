"""What `watch` and `mitigate` say and do in a cluster of 3,000 topics of which many cannot be helped.

    python -m tests.chaos many_topics --topics 3000 --json

Four brokers with two log directories each. A third of the topics has one replica, one topic is below
min.insync.replicas for good, 200 consumer groups have committed offsets. An agent and a watch run, and an
operator asks for and applies actions in four situations: nothing is wrong; a broker is demoted and the
demotion undone; a broker has died, and a reassignment waits for it; a log directory of a broker is offline.
Prints one JSON value with what each command answered and how long it took. Exits with 0 iff every answer was
as expected.
"""

import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any

import click
import yaml
from confluent_kafka import Consumer, KafkaException, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

from fleetgauge_core.detection import BURN_CONDITIONS
from fleetgauge_core.fleet import ClusterAccess, Fleet, load_fleet
from fleetgauge_core.kafka import ensure_telemetry_topics, read_cluster_metadata, reassign_topic
from fleetgauge_core.metadata import ClusterMetadata
from fleetgauge_core.tables import ACTIONS, CORRECTIONS
from fleetgauge_local.fleet import LocalFleet
from fleetgauge_local.layout import TELEMETRY, ClusterSpec
from tests.browser.lake import put
from tests.chaos._streaming import FLEETGAUGE, Command, log_progress
from tests.log_directories import lose_directory, two_log_directories
from tests.receiver import Post, Receiver
from tests.topic_values import read_values
from tests.waiting import let_pass, wait_until

CLUSTER = "mitigated"
BROKERS = (1, 2, 3, 4)
GROUPS = 200
LOT = 100
DEADLINE_S = 300
#: BROKER_DOWN warrants a restart after two minutes.
DOWN_S = 130
OFFLINE_S = 150


@dataclass
class Situation:
    """A situation, what the commands answered in it, and what was not as expected."""

    name: str
    answers: list[dict[str, Any]] = field(default_factory=list)
    wrong: list[str] = field(default_factory=list)

    def expect(self, is_right: bool, what: str) -> None:
        if not is_right:
            self.wrong.append(what)

    def document(self) -> dict[str, Any]:
        return {"situation": self.name, "answers": self.answers, "wrong": self.wrong}


@dataclass(frozen=True)
class BigCluster:
    local: LocalFleet
    config: Path
    fleet: Fleet
    pager: Receiver
    watch: Command
    situations: list[Situation]

    @property
    def access(self) -> ClusterAccess:
        return self.fleet.cluster(CLUSTER).access

    @property
    def lake(self) -> Path:
        return self.config.with_name(f"lake-{len(self.situations)}")

    @property
    def firing(self) -> dict[str, Post]:
        """The last page of each finding that is open, without error budgets."""
        last = {
            post.body["fingerprint"]: post
            for post in list(self.pager.posts)
            if post.body["kind"] not in BURN_CONDITIONS
        }
        return {key: post for key, post in last.items() if post.body["status"] == "firing"}

    def describe(self) -> ClusterMetadata:
        return read_cluster_metadata(self.access)

    def begin(self, name: str) -> Situation:
        """Begin a situation with an audit log of its own, so that earlier actions forbid none."""
        log_progress(name)
        self.situations.append(Situation(name))
        for table in (ACTIONS, CORRECTIONS):
            put(self.lake, table, [])
        return self.situations[-1]

    def run(self, *arguments: str) -> dict[str, Any]:
        """Run `fleetgauge mitigate`, and keep its answer, shortened, in the present situation."""
        started_s = time.monotonic()
        where = ("--config", str(self.config), "--lake", str(self.lake))
        command = (*FLEETGAUGE, "mitigate", *arguments, *where, "--json")
        result = subprocess.run(command, capture_output=True, text=True, timeout=DEADLINE_S, check=False)
        took_s = round(time.monotonic() - started_s, 1)
        situation = self.situations[-1]
        situation.expect("Traceback" not in result.stderr, f"a traceback of {arguments}")
        answer = json.loads(result.stdout) if result.stdout else {}
        situation.answers.append(
            {
                "command": " ".join(arguments),
                "exit": result.returncode,
                "seconds": took_s,
                "characters": len(result.stdout),
                "answer": shorten(answer),
                "error": result.stderr.strip()[-500:],
            }
        )
        log_progress(json.dumps(situation.answers[-1]))
        return {"exit": result.returncode, "answer": answer}

    def keep_pages(self) -> None:
        """Keep what is paged now in the present situation."""
        pages = [post.body["summary"] for post in self.firing.values()]
        self.situations[-1].answers.append({"pages": pages})
        log_progress(json.dumps(pages))


def shorten(value: Any) -> Any:
    """Return a JSON value with long lists cut to their first three entries and their number."""
    if isinstance(value, Mapping):
        return {key: shorten(each) for key, each in value.items()}
    if isinstance(value, list):
        more = [f"... {len(value)} in all"] if len(value) > 5 else []
        return [*map(shorten, value[: 3 if more else 5]), *more]
    return value


def create_topics(admin: AdminClient, count: int) -> None:
    """Create topics with three replicas, every third with one, and one that is below its minimum for good."""
    assignments = [
        [[BROKERS[(number + shift) % 4] for shift in range(1 if number % 3 == 0 else 3)]]
        for number in range(count)
    ]
    topics = [
        NewTopic(
            f"orders-{number:04}",
            num_partitions=1,
            replica_assignment=assignment,
            config={"min.insync.replicas": "2" if number == 3 or len(assignment[0]) > 1 else "1"},
        )
        for number, assignment in enumerate(assignments)
    ]
    for first in range(0, count, LOT):
        for created in admin.create_topics(topics[first : first + LOT], request_timeout=DEADLINE_S).values():
            created.result(DEADLINE_S)
        log_progress(f"{min(first + LOT, count)} of {count} topics")


def create_groups(bootstrap: str) -> None:
    """Commit an offset for each group, once the brokers have created their logs."""
    for number in range(GROUPS):
        settings = {"bootstrap.servers": bootstrap, "group.id": f"billing-{number:03}"}
        group = Consumer(settings)
        offset = TopicPartition(f"orders-{number:04}", 0, 0)
        wait_until(partial(has_committed, group, offset), DEADLINE_S, f"the commit of group {number}")
        group.close()
    log_progress(f"{GROUPS} groups")


def has_committed(group: Consumer, offset: TopicPartition) -> bool:
    try:
        group.commit(offsets=[offset], asynchronous=False)
    except KafkaException:
        return False
    return True


@contextmanager
def running_scene(folder: Path) -> Iterator[BigCluster]:
    with ExitStack() as stack:
        stack.enter_context(two_log_directories())
        clusters = (
            ClusterSpec(CLUSTER, brokers=len(BROKERS), exporters=True),
            ClusterSpec(TELEMETRY, brokers=1),
        )
        local = stack.enter_context(LocalFleet(folder / "fleet", clusters, progress=log_progress))
        pager = stack.enter_context(Receiver().listening())
        config = folder / "fleet.yaml"
        document = yaml.safe_load(local.fleet_file.read_text())
        document |= {"notifiers": [{"kind": "webhook", "url": pager.url}], "lake": str(folder / "lake")}
        document["clusters"][0]["restart"] = build_start_command(local)
        config.write_text(yaml.safe_dump(document))
        fleet = load_fleet(config)
        assert fleet.telemetry is not None
        ensure_telemetry_topics(fleet.telemetry)
        yield BigCluster(
            local, config, fleet, pager, Command(folder / "watch.log", "watch", "--config", str(config)), []
        )


def build_start_command(local: LocalFleet) -> list[str]:
    """Return a restart command that starts a broker that is dead."""
    script = (
        "import sys; from pathlib import Path; from fleetgauge_local.fleet import LocalFleet; "
        f"LocalFleet(Path(sys.argv[1])).fault('heal', '{CLUSTER}', int(sys.argv[2]))"
    )
    return [sys.executable, "-c", script, str(local.status().directory), "{broker}"]


def wait_for_pages(scene: BigCluster, is_reached: Callable[[], bool], what: str) -> None:
    try:
        wait_until(is_reached, DEADLINE_S, what)
    except TimeoutError as error:
        scene.situations[-1].wrong.append(str(error))


def pages_of(scene: BigCluster, broker: int) -> list[str]:
    return [post.body["kind"] for post in scene.firing.values() if post.body["broker"] == broker]


def is_single(replicas: tuple[int, ...]) -> bool:
    return len(replicas) == 1


def plan_when_nothing_is_wrong(scene: BigCluster) -> None:
    situation = scene.begin("nothing is wrong")
    result = scene.run("plan")
    situation.expect(result["exit"] == 0, "plan ends with 0")
    situation.expect(not scene.firing, "no page")
    scene.keep_pages()
    refused = scene.run("apply", "--cluster", CLUSTER, "--broker", "2")
    reasons = [refusal["why"] for refusal in refused["answer"].get("refusals", ())]
    situation.expect(reasons == ["no_finding"], f"no finding is the only refusal, but {reasons}")
    for action in ("restart", "quarantine_restart"):
        refused = scene.run(
            "apply", "--cluster", CLUSTER, "--broker", "2", "--action", action, "--reason", "maintenance"
        )
        reasons = [refusal["why"] for refusal in refused["answer"].get("refusals", ())]
        situation.expect("only_replica" in reasons, f"{action} is refused for single replicas, but {reasons}")


def demote_and_undo(scene: BigCluster) -> None:
    situation = scene.begin("a broker is demoted, and the demotion undone")
    before = scene.describe()
    by_reason = ("--cluster", CLUSTER, "--broker", "2", "--reason", "slow disk")
    dry_run = scene.run("apply", *by_reason)
    situation.expect(dry_run["exit"] == 0, "the dry run is not refused")
    case = scene.run("apply", *by_reason, "--execute")
    situation.expect(case["answer"].get("outcome") == "done", "the demotion is done")
    led = scene.describe().led_by(2)
    singles = {
        partition
        for partition, metadata in before.partitions.items()
        if is_single(metadata.replicas) and metadata.replicas == (2,)
    }
    situation.expect(led == singles, f"it leads its single replicas alone, but {len(led ^ singles)} differ")
    undone = scene.run("undo", str(case["answer"].get("case")), "--reason", "disk replaced", "--execute")
    situation.expect(undone["answer"].get("outcome") == "undone", "the demotion is undone")
    after = scene.describe()
    changed = [
        partition
        for partition, metadata in before.partitions.items()
        if after.partitions[partition].replicas != metadata.replicas
    ]
    situation.expect(not changed, f"all orders are restored, but {changed[:3]}")
    situation.expect(after.led_by(2) == before.led_by(2), "it leads what it led before")
    situation.expect(not scene.firing, "no page")
    scene.keep_pages()


def restart_a_dead_broker(scene: BigCluster) -> None:
    situation = scene.begin("a broker has died, and a reassignment waits for it")
    killed_s = time.monotonic()
    scene.local.fault("kill", CLUSTER, 4)
    wait_for_pages(scene, lambda: "BROKER_DOWN" in pages_of(scene, 4), "broker 4 to be reported")
    situation.answers.append({"reported_after_s": round(time.monotonic() - killed_s, 1)})
    assert reassign_topic(scene.access, "orders-0004", {0: (1, 2, 4)})
    let_pass(killed_s + DOWN_S)
    scene.keep_pages()
    others = {broker: pages_of(scene, broker) for broker in (1, 2, 3) if pages_of(scene, broker)}
    situation.expect(not others, f"no other broker is reported, but {others}")
    scene.run("plan")
    moving = [
        refusal["why"]
        for refusal in scene.run("apply", "--cluster", CLUSTER, "--broker", "2", "--reason", "slow disk")[
            "answer"
        ].get("refusals", ())
    ]
    situation.expect("moving" in moving, f"a demotion waits for the reassignment, but {moving}")
    restart = scene.run("apply", "--cluster", CLUSTER, "--broker", "4", "--action", "restart", "--execute")
    situation.expect(restart["answer"].get("outcome") == "done", "the restart is done")
    wait_for_pages(scene, lambda: not scene.describe().reassigning, "the reassignment to end")
    wait_for_pages(scene, lambda: not scene.firing, "the page to be resolved")


def lose_a_log_directory(scene: BigCluster) -> None:
    situation = scene.begin("a log directory of a broker is offline")
    (status,) = (status for status in scene.local.status().clusters if status.cluster == CLUSTER)
    second = Path(scene.local.status().directory) / "brokers" / f"{CLUSTER}-3" / "second"
    before = scene.describe()
    lost_s = time.monotonic()
    lose_directory(second)
    wait_until(
        lambda: len(find_without_leader(scene.describe())) > 0, DEADLINE_S, "partitions without a leader"
    )
    let_pass(lost_s + OFFLINE_S)
    scene.keep_pages()
    offline = find_without_leader(scene.describe())
    situation.answers.append({"partitions_without_leader": len(offline), "brokers": len(status.brokers)})
    situation.expect(
        all(is_single(before.partitions[partition].replicas) for partition in offline),
        "only single replicas have no leader",
    )
    situation.expect(pages_of(scene, 3) == ["STORAGE_STALLED"], f"a page, but {pages_of(scene, 3)}")
    (proposed,) = scene.run("plan")["answer"] or [{}]
    reasons = [refusal["why"] for refusal in proposed.get("refusals", ())]
    situation.expect("only_replica" in reasons, f"a restart is refused for single replicas, but {reasons}")
    demotion = scene.run("apply", "--cluster", CLUSTER, "--broker", "3", "--reason", "disk", "--execute")
    situation.expect(demotion["answer"].get("outcome") == "done", "the demotion is done")
    scene.run("apply", "--cluster", CLUSTER, "--broker", "3", "--action", "restart", "--reason", "disk")
    situation.expect(scene.watch.is_alive, "the watch runs")


def find_without_leader(metadata: ClusterMetadata) -> list[Any]:
    return [partition for partition, each in metadata.partitions.items() if each.leader is None]


@click.command()
@click.option("--topics", default=3000, show_default=True, type=click.IntRange(min=GROUPS))
@click.option("--json", "_as_json", is_flag=True, help="Accepted for uniformity: the result is JSON anyway.")
def main(topics: int, _as_json: bool) -> None:
    """Apply actions in a cluster of many topics, many of which cannot be helped."""
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="fleetgauge-topics-")))
        scene = stack.enter_context(running_scene(folder))
        admin = AdminClient({"bootstrap.servers": scene.local.bootstrap(CLUSTER)})
        create_topics(admin, topics)
        create_groups(scene.local.bootstrap(CLUSTER))
        stack.enter_context(scene.watch)
        stack.enter_context(Command(folder / "probe.log", "probe", "--config", str(scene.config)))
        telemetry = scene.fleet.telemetry
        assert telemetry is not None
        started = datetime.now(UTC)
        wait_until(
            lambda: len(read_values(telemetry.access, telemetry.topics.probe_pulse.name)) > 3,
            DEADLINE_S,
            f"pulses after {started}",
        )
        let_pass(time.monotonic() + 60)
        for run in (plan_when_nothing_is_wrong, demote_and_undo, restart_a_dead_broker, lose_a_log_directory):
            run(scene)
        log_progress(scene.watch.output[-2000:])
    wrong = {each.name: each.wrong for each in scene.situations if each.wrong}
    report = {"topics": topics, "wrong": wrong, "table": [each.document() for each in scene.situations]}
    print(json.dumps(report, indent=2))
    sys.exit(bool(wrong))


if __name__ == "__main__":
    main()
