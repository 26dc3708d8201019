"""Makes real brokers, clusters, the agent and the watch ill in turn: who is paged for, how soon, until when.

    python -m tests.chaos --faults 24 --seed 1

Two clusters of three brokers, one agent, two watches that page a webhook; what counts is what that got. Where
a broker is cut off from one vantage alone, a second agent measures by a way of its own for that long. Faults
that do not mix happen in both clusters at once.
What has happened is kept in a file: the same command goes on after it. Prints one JSON value: {faults,
named_right, named_wrong, missed, pages_doubled, pages_unresolved, detect_s: {kind: {median, max}}, table}.
Exit 0 iff every fault was named and nothing else, each once, and every page was resolved. Pages for a budget
name nobody and last as long as its windows: they are left out.
"""

import json
import sys
import tempfile
import time
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager, nullcontext, suppress
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from itertools import accumulate
from pathlib import Path
from random import Random
from statistics import median
from typing import Any

import click
import psutil
import yaml
from kafka import KafkaAdminClient

from fleetgauge_core.detection import BURNS
from fleetgauge_core.fleet import load
from fleetgauge_core.kafka import ensure_topics
from fleetgauge_local.fleet import LocalFleet
from fleetgauge_local.layout import TELEMETRY, ClusterSpec
from fleetgauge_local.messages import Kind
from fleetgauge_operations.replay.incident import SUFFIX
from fleetgauge_operations.replay.kept import kept
from tests.chaos._faults import slowed, stopped
from tests.chaos._second_way import SecondWay, second_way
from tests.chaos._streaming import Command, say
from tests.receiver import Post, Receiver
from tests.waiting import let_pass, wait_until

CLUSTERS = ("orders", "payments")
BROKERS = (1, 2, 3)
#: Until the agent has warmed up and the watch has heard of everybody.
WARM_UP_S = 60
HANG_S = 30
SLOW_S = 120
#: 5% of requests, by at least what counts as slow, until that is named or is missed. Six windows show it
#: after 90 s and more, when depends on chance: 0.6% pass four minutes unnamed, 0.01% six.
TAIL, TAIL_AT_MOST_S, TAIL_MS = 0.05, 360, 150
CUT_OFF_S = 50
AWAY_S = 50
#: The one that took over is to have seen the end by then.
STOPPED_LONGER_S = 30
FLAPS, FLAP_S, BETWEEN_FLAPS_S = 4, 9, 11
#: After a fault: brokers come back, findings end 30 s later, of flapping ones after two minutes of calm.
ENDS_WITHIN_S = 240
#: What is kept of the time before a fault.
LEARNT_FROM = timedelta(minutes=2)
#: A broker is in sync and leads again, and what it did to others is over.
QUIET_S = 15


Pages = Sequence[Post]


def fires(page: Post) -> bool:
    return bool(page.body["status"] == "firing")


def unresolved(pages: Pages) -> set[str]:
    """The fingerprints of what was paged for and has not ended."""
    last = {page.body["fingerprint"]: fires(page) for page in pages}
    return {fingerprint for fingerprint, holds in last.items() if holds}


def active_controller(bootstrap: str) -> int:
    """The broker that leads the quorum."""
    admin = KafkaAdminClient(bootstrap_servers=bootstrap.split(","))
    try:
        (topic,) = admin.describe_metadata_quorum()["topics"]
    finally:
        admin.close()
    (partition,) = topic["partitions"]
    return int(partition["leader_id"])


def doubled(pages: Pages) -> int:
    """How often somebody was paged again for what still held and was called the same."""
    last: dict[str, str | None] = {}
    times = 0
    for page in pages:
        called = page.body["kind"] if fires(page) else None
        times += called is not None and last.get(page.body["fingerprint"]) == called
        last[page.body["fingerprint"]] = called
    return times


class Scene:
    """What there is to be made ill: a local fleet, and the agent and two watches as processes."""

    def __init__(self, folder: Path, local: LocalFleet, pager: Receiver, second_way: SecondWay) -> None:
        self.local = local
        self.second_way = second_way
        self._pager = pager
        self._folder = folder
        self._agent: Command | None = None
        self._watches: list[Command] = []

    @property
    def config(self) -> Path:
        return self._folder / "fleet.yaml"

    @property
    def pages(self) -> Pages:
        return [page for page in list(self._pager.posts) if page.body["kind"] not in BURNS]

    @contextmanager
    def working(self) -> Iterator[None]:
        """Whoever runs when the block is left is ended."""
        try:
            for _ in range(2):
                self.start_a_watch()
            self.start_the_agent()
            let_pass(time.monotonic() + WARM_UP_S)
            yield
        finally:
            self.kill_the_agent()
            for watch in self._watches:
                watch.kill()

    @contextmanager
    def a_second_vantage(self) -> Iterator[None]:
        """Measures, and is heard of, while the block runs."""
        document = yaml.safe_load(self.config.read_text(encoding="utf-8"))
        for cluster in document["clusters"]:
            cluster["bootstrap"] = self.second_way.bootstrap(cluster["id"])
        config = self._folder / "second" / "fleet.yaml"
        config.parent.mkdir(exist_ok=True)
        config.write_text(yaml.safe_dump(document | {"vantage": "second"}), encoding="utf-8")
        with Command(config.parent / "probe.log", "probe", "--config", str(config)):
            let_pass(time.monotonic() + WARM_UP_S)
            yield

    def start_the_agent(self) -> None:
        self._agent = self._started("probe")

    def kill_the_agent(self) -> None:
        if self._agent:
            self._agent.kill()

    def start_a_watch(self) -> None:
        self._watches.append(self._started("watch"))

    def watch_at_work(self) -> Command:
        """It says when it begins and when it ends."""
        (found,) = (one for one in self._watches if one.words.count("at work") % 2)
        return found

    def kill_the_watch(self) -> None:
        """The one at work."""
        watch = self.watch_at_work()
        watch.kill()
        self._watches.remove(watch)

    def stop_the_watch(self, for_s: float) -> None:
        """The one at work stands still, and goes on as one that thinks that it is."""
        with stopped(self.watch_at_work().tree()):
            let_pass(time.monotonic() + for_s)

    def _started(self, command: str) -> Command:
        log = self._folder / f"{command}-{time.monotonic_ns()}.log"
        return Command(log, command, "--config", str(self.config)).__enter__()

    def process(self, cluster: str, broker: int) -> psutil.Process:
        (of,) = (one for one in self.local.status().clusters if one.cluster == cluster)
        (pid,) = (one.pid for one in of.brokers if one.broker == broker)
        return psutil.Process(pid)


@dataclass(frozen=True, slots=True)
class Fault:
    """One thing that goes wrong with brokers of a cluster, or the way to one, and as what it may be named."""

    kind: str
    cluster: str
    brokers: tuple[int, ...]
    as_kinds: frozenset[str]
    #: How slow, where it is that.
    ms: float
    happen: Callable[[Scene, "Fault"], None]

    @property
    def broker(self) -> int | None:
        """The one that it befalls, or the way to it; None where it is the cluster."""
        return self.brokers[0] if len(self.brokers) == 1 else None

    def is_named_by(self, page: Post) -> bool:
        kind, of = page.body["kind"], page.body["evidence"] if page.body["kind"] in OF_A_WAY else page.body
        whom = (page.body["cluster"], of["broker"])
        return fires(page) and whom == (self.cluster, self.broker) and kind in self.as_kinds

    def is_consequence(self, page: Post) -> bool:
        """True of all brokers of a cluster that is ill, and of all clusters while none is heard of."""
        if self.kind == "cluster":
            return bool(page.body["cluster"] == self.cluster)
        return self.as_kinds == SILENT and page.body["kind"] in SILENT


def hang(scene: Scene, fault: Fault, for_s: float = HANG_S) -> None:
    began_s = time.monotonic()
    for broker in fault.brokers:
        scene.local.fault("hang", fault.cluster, broker, for_s=for_s)
    let_pass(began_s + for_s)


def hang_and_kill_the_watch(scene: Scene, fault: Fault) -> None:
    """As it begins: the other one takes over, names it and sees its end."""
    (broker,) = fault.brokers
    began_s = time.monotonic()
    scene.local.fault("hang", fault.cluster, broker, for_s=HANG_S)
    scene.kill_the_watch()
    scene.start_a_watch()
    let_pass(began_s + HANG_S)


def hang_and_stop_the_watch(scene: Scene, fault: Fault) -> None:
    """Once it is named: the other one takes over, and neither it nor the one that goes on says it again."""
    (broker,) = fault.brokers
    began_s = time.monotonic()
    scene.local.fault("hang", fault.cluster, broker, for_s=HANG_S)
    let_pass(began_s + HANG_S / 2)
    scene.stop_the_watch(HANG_S / 2 + STOPPED_LONGER_S)


def flap(scene: Scene, fault: Fault) -> None:
    for _ in range(FLAPS):
        hang(scene, fault, FLAP_S)
        let_pass(time.monotonic() + BETWEEN_FLAPS_S)


def stop_most_of_the_time(scene: Scene, fault: Fault) -> None:
    (broker,) = fault.brokers
    with slowed(scene.process(fault.cluster, broker)):
        let_pass(time.monotonic() + SLOW_S)


def until_healed(kind: Kind, seconds: float) -> Callable[[Scene, Fault], None]:
    """What a local fleet does to a broker until it is told to stop."""

    def happen(scene: Scene, fault: Fault) -> None:
        (broker,) = fault.brokers
        delay_ms = fault.ms if kind == "slow" else None
        scene.local.fault(kind, fault.cluster, broker, delay_ms=delay_ms)
        let_pass(time.monotonic() + seconds)
        scene.local.fault("heal", fault.cluster, broker)

    return happen


def slow_some_until_named(scene: Scene, fault: Fault) -> None:
    (broker,) = fault.brokers
    began_s = time.monotonic()
    scene.local.fault("slow", fault.cluster, broker, delay_ms=fault.ms, share=TAIL)
    with suppress(TimeoutError):
        wait_until(
            lambda: any(page.at_s >= began_s and fault.is_named_by(page) for page in scene.pages),
            TAIL_AT_MOST_S,
            "the page",
        )
    scene.local.fault("heal", fault.cluster, broker)


def cut_off_from_the_second(scene: Scene, fault: Fault) -> None:
    (broker,) = fault.brokers
    with scene.second_way.cut_off(fault.cluster, broker):
        let_pass(time.monotonic() + CUT_OFF_S)


def kill_the_agent(scene: Scene, _: Fault) -> None:
    scene.kill_the_agent()
    let_pass(time.monotonic() + AWAY_S)
    scene.start_the_agent()


def hang_telemetry(scene: Scene, _: Fault) -> None:
    """Nobody says any more whose turn it is either."""
    scene.local.fault("hang", TELEMETRY, 1, for_s=AWAY_S)
    let_pass(time.monotonic() + AWAY_S)


GONE, SLOW, SILENT = frozenset({"BROKER_DOWN"}), frozenset({"DEGRADED"}), frozenset({"NO_DATA"})
#: Its evidence names the broker: the finding itself is of the way.
OF_A_WAY = frozenset({"PATH"})
KINDS: Mapping[str, tuple[frozenset[str], Callable[[Scene, Fault], None]]] = {
    "hang": (GONE, hang),
    "slow": (SLOW, until_healed("slow", SLOW_S)),
    "kill": (GONE, until_healed("kill", HANG_S)),
    "tail": (SLOW, slow_some_until_named),
    "stop": (SLOW, stop_most_of_the_time),
    "cut_off": (GONE | {"NETWORK_UNAVAILABLE"}, until_healed("blackhole", CUT_OFF_S)),
    "path": (OF_A_WAY, cut_off_from_the_second),
    "cluster": (frozenset({"CLUSTER_DOWN"}), hang),
    "watch_killed": (GONE, hang_and_kill_the_watch),
    "watch_stopped": (GONE, hang_and_stop_the_watch),
    "flap": (GONE, flap),
    "agent": (SILENT, kill_the_agent),
    "telemetry": (SILENT, hang_telemetry),
}
OF_CLUSTERS = {"cluster": BROKERS, "agent": (), "telemetry": ()}
#: What happens to one of these meets both clusters, or who measures and pages for both.
ALONE = frozenset({"path", "watch_killed", "watch_stopped", "agent", "telemetry"})

#: What happens at the same time: one fault, or one of each cluster.
Round = tuple[Fault, ...]


def planned(kinds: Sequence[str], faults: int, seed: int) -> list[Round]:
    """The kinds in turn, on brokers of both clusters by chance."""
    random, rounds = Random(seed), list[Round]()
    waiting: Fault | None = None
    for number in range(faults):
        kind = kinds[number % len(kinds)]
        beside = None if kind in ALONE else waiting
        cluster = random.choice([one for one in CLUSTERS if beside is None or one != beside.cluster])
        one, ms = random.choice(BROKERS), random.uniform(50, 300)
        ms = max(ms, TAIL_MS) if kind == "tail" else ms
        as_kinds, happen = KINDS[kind]
        fault = Fault(kind, cluster, OF_CLUSTERS.get(kind, (one,)), as_kinds, ms, happen)
        if kind in ALONE:
            rounds.append((fault,))
        elif waiting:
            rounds.append((waiting, fault))
            waiting = None
        else:
            waiting = fault
    return [*rounds, (waiting,)] if waiting else rounds


def told(scene: Scene, faults: Round) -> list[dict[str, Any]]:
    """Let them happen, wait for the end of what was paged for them, and say what came of each."""
    controllers = {one.cluster: active_controller(scene.local.bootstrap(one.cluster)) for one in faults}
    second = any(one.as_kinds == OF_A_WAY for one in faults)
    with scene.a_second_vantage() if second else nullcontext(), ThreadPoolExecutor() as lanes:
        at_s = time.monotonic()
        say(", ".join(f"{one.kind} of {one.cluster} {one.broker or ''}" for one in faults))
        for happening in [lanes.submit(one.happen, scene, one) for one in faults]:
            happening.result()

        def pages(fault: Fault) -> Pages:
            return [
                page
                for page in scene.pages
                if page.at_s >= at_s and (len(faults) == 1 or page.body["cluster"] == fault.cluster)
            ]

        try:
            wait_until(
                lambda: all(map(pages, faults)) and not unresolved(scene.pages), ENDS_WITHIN_S, "the end"
            )
        except TimeoutError as error:
            say(str(error))
        let_pass(time.monotonic() + QUIET_S)
    return [row(one, pages(one), at_s, controllers[one.cluster] in one.brokers) for one in faults]


def row(fault: Fault, pages: Pages, at_s: float, controller: bool) -> dict[str, Any]:
    """What came of it, by all that was said since."""
    right = [page for page in pages if fault.is_named_by(page)]
    wrong = [page for page in pages if fires(page) and page not in right and not fault.is_consequence(page)]
    found = {
        "kind": fault.kind,
        "cluster": fault.cluster,
        "broker": fault.broker,
        "controller": controller,
        "ms": round(fault.ms) if fault.kind in ("slow", "tail") else None,
        "named_after_s": round(right[0].at_s - at_s, 1) if right else None,
        "pages": len(right),
        "wrong": [page.body["summary"] for page in wrong],
        "doubled": doubled(pages),
        "unresolved": len(unresolved(pages)),
    }
    say(json.dumps(found))
    return found


def keep_incident(scene: Scene, fault: Fault, since: datetime, folder: Path) -> None:
    """As a file for `fleetgauge replay run`, which names no machine."""
    telemetry = load(scene.config).telemetry
    assert telemetry is not None
    incident = kept(
        telemetry, fault.cluster, since, datetime.now(UTC), LEARNT_FROM, f"{fault.kind} {fault.broker or ''}"
    )
    pulses = tuple(replace(one, agent_id=f"agent/{one.vantage}") for one in incident.pulses)
    replace(incident, pulses=pulses).write(folder / f"{fault.kind}-{since:%H%M%S}{SUFFIX}")


def verdict(rows: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    detected = defaultdict(list)
    for row in rows:
        if row["named_after_s"] is not None:
            detected[row["kind"]].append(row["named_after_s"])
    return {
        "faults": len(rows),
        "named_right": sum(row["named_after_s"] is not None for row in rows),
        "named_wrong": sum(len(row["wrong"]) for row in rows),
        "missed": sum(row["named_after_s"] is None for row in rows),
        "pages_doubled": sum(row["doubled"] for row in rows),
        "pages_unresolved": sum(row["unresolved"] for row in rows),
        "detect_s": {kind: {"median": round(median(of), 1), "max": max(of)} for kind, of in detected.items()},
        "table": list(rows),
    }


@click.command()
@click.option("--faults", default=24, show_default=True, type=click.IntRange(min=1))
@click.option("--seed", default=1, show_default=True, help="Of the brokers, and of how slow.")
@click.option("--only", "kinds", multiple=True, type=click.Choice(list(KINDS)), help="May be repeated.")
@click.option("--again", is_flag=True, help="From the beginning, whatever an earlier run has done.")
@click.option(
    "--incidents", type=click.Path(path_type=Path, file_okay=False), help="Keep each as a file there."
)
@click.option("--json", "_", is_flag=True, help="For who asks for it: the answer is always JSON.")
def main(
    faults: int, seed: int, kinds: tuple[str, ...], again: bool, incidents: Path | None, _: bool
) -> None:
    done = Path(tempfile.gettempdir(), f"fleetgauge-faults-{faults}-{seed}-{'-'.join(kinds) or 'all'}.jsonl")
    if again:
        done.unlink(missing_ok=True)
    if incidents:
        incidents.mkdir(parents=True, exist_ok=True)
    rows = done.read_text(encoding="utf-8").splitlines() if done.exists() else []
    if rows:
        say(f"{len(rows)} of {faults} have happened: {done}")
    rounds = planned(kinds or list(KINDS), faults, seed)
    happened = list(accumulate(map(len, rounds)))
    left = [one for one, by_then in zip(rounds, happened, strict=True) if by_then > len(rows)]
    if left:
        watched(left, done, incidents)
    found = verdict([json.loads(line) for line in done.read_text(encoding="utf-8").splitlines()])
    done.unlink()
    print(json.dumps(found, indent=2))
    good = found["named_right"] == found["faults"] and not found["named_wrong"] and not found["pages_doubled"]
    sys.exit(0 if good and not found["pages_unresolved"] else 1)


def watched(rounds: Sequence[Round], done: Path, incidents: Path | None) -> None:
    """Each of them, with a line in that file for what came of each fault."""
    clusters = (*(ClusterSpec(one) for one in CLUSTERS), ClusterSpec(TELEMETRY, brokers=1))
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="fleetgauge-name-")))
        way = stack.enter_context(second_way())
        local = stack.enter_context(LocalFleet(folder / "fleet", clusters, progress=say))
        pager = stack.enter_context(Receiver().listening())
        scene = Scene(folder, local, pager, way)
        notifiers = {"notifiers": [{"kind": "webhook", "url": pager.url}]}
        scene.config.write_text(yaml.safe_dump(yaml.safe_load(local.fleet_file.read_text()) | notifiers))
        fleet = load(scene.config)
        assert fleet.telemetry is not None
        ensure_topics(fleet.telemetry)
        stack.enter_context(scene.working())
        for faults in rounds:
            since = datetime.now(UTC)
            found = told(scene, faults)
            if incidents:
                for fault in faults:
                    keep_incident(scene, fault, since, incidents)
            with done.open("a", encoding="utf-8") as rows:
                rows.write("".join(f"{json.dumps(one)}\n" for one in found))


if __name__ == "__main__":
    main()
