"""Injects faults into real brokers, clusters, the agent and the watch, and records the pages that result.

    python -m tests.chaos --faults 24 --seed 1

Two clusters of three brokers, an agent, and two watches that page a webhook; the result is what the webhook
received. For a broker that is cut off from one vantage only, a second agent measures through listeners of its
own meanwhile. Faults that do not affect each other are injected into both clusters at once.
Finished faults are kept in a file, and the same command continues after them. Prints one JSON value: {faults,
named_right, named_wrong, missed, pages_doubled, pages_unresolved, detect_s: {kind: {median, max}}, table}.
Exits with 0 iff every fault and nothing else was paged for, each once, and every page was resolved. Pages for
an error budget identify no broker and last as long as its windows, so they are ignored.
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

from fleetgauge_core.detection import BURN_CONDITIONS, DEFAULT_THRESHOLDS
from fleetgauge_core.fleet import load_fleet
from fleetgauge_core.kafka import ensure_telemetry_topics
from fleetgauge_local.fleet import LocalFleet
from fleetgauge_local.layout import TELEMETRY, ClusterSpec
from fleetgauge_local.runner_protocol import FaultKind
from fleetgauge_operations.replay import SUFFIX
from fleetgauge_operations.replay.stored_records import read_incident
from tests.chaos._faults import slow_down, stop_processes
from tests.chaos._results import Results
from tests.chaos._second_listener import SecondListeners, create_second_listeners
from tests.chaos._streaming import Command, log_progress
from tests.receiver import Post, Receiver
from tests.waiting import let_pass, wait_until

CLUSTERS = ("orders", "payments")
BROKERS = (1, 2, 3)
#: Until the agent has warmed up and the watch has received pulses of every broker.
WARM_UP_S = 60
HANG_S = 30
SLOW_S = 120
#: 5% of requests are delayed by at least what counts as slow, until it is paged for or missed. Six windows
#: detect it after 90 s or more, depending on chance: 0.6% take more than four minutes, 0.01% more than six.
TAIL, TAIL_TIMEOUT_S, TAIL_MS = 0.05, 360, 150
CUT_OFF_S = 50
AWAY_S = 50
#: The watch that took over must have detected the end by then.
EXTRA_STOP_S = 30
FLAPS, FLAP_S, BETWEEN_FLAPS_S = 4, 9, 11
#: After a fault, findings end within 30 s of the recovery, those of flapping brokers after two minutes, and
#: those of a broker that is slow again soon after five.
ENDS_WITHIN_S = DEFAULT_THRESHOLDS.recurrence_well.total_seconds() + 120
#: The time before a fault that is kept in its incident file.
INCIDENT_LEAD = timedelta(minutes=2)
#: Until the broker is in sync and leads again, and its effects on other brokers are over.
RECOVERY_S = 15


Pages = Sequence[Post]


def is_firing(page: Post) -> bool:
    return bool(page.body["status"] == "firing")


def find_unresolved(pages: Pages) -> set[str]:
    """Return the fingerprints of pages that are not resolved."""
    last = {page.body["fingerprint"]: is_firing(page) for page in pages}
    return {fingerprint for fingerprint, is_open in last.items() if is_open}


def find_active_controller(bootstrap: str) -> int:
    """Return the leader of the controller quorum."""
    admin = KafkaAdminClient(bootstrap_servers=bootstrap.split(","))
    try:
        (topic,) = admin.describe_metadata_quorum()["topics"]
    finally:
        admin.close()
    (partition,) = topic["partitions"]
    return int(partition["leader_id"])


def count_duplicates(pages: Pages) -> int:
    """Return how often a page was repeated while it was open and had the same kind."""
    last_kinds: dict[str, str | None] = {}
    duplicates = 0
    for page in pages:
        kind = page.body["kind"] if is_firing(page) else None
        duplicates += kind is not None and last_kinds.get(page.body["fingerprint"]) == kind
        last_kinds[page.body["fingerprint"]] = kind
    return duplicates


class Scene:
    """The system under test: a local fleet, and the agent and two watches as processes."""

    def __init__(
        self, folder: Path, local: LocalFleet, pager: Receiver, second_listeners: SecondListeners
    ) -> None:
        self.local = local
        self.second_listeners = second_listeners
        self._pager = pager
        self._folder = folder
        self._agent: Command | None = None
        self._watches: list[Command] = []

    @property
    def config(self) -> Path:
        return self._folder / "fleet.yaml"

    @property
    def pages(self) -> Pages:
        return [page for page in list(self._pager.posts) if page.body["kind"] not in BURN_CONDITIONS]

    @contextmanager
    def running(self) -> Iterator[None]:
        """Run the agent and the watches while the block runs."""
        try:
            for _ in range(2):
                self.start_watch()
            self.start_agent()
            let_pass(time.monotonic() + WARM_UP_S)
            yield
        finally:
            self.kill_agent()
            for watch in self._watches:
                watch.kill()

    @contextmanager
    def second_vantage(self) -> Iterator[None]:
        """Run an agent at a second vantage while the block runs."""
        document = yaml.safe_load(self.config.read_text(encoding="utf-8"))
        for cluster in document["clusters"]:
            cluster["bootstrap"] = self.second_listeners.bootstrap(cluster["id"])
        config = self._folder / "second" / "fleet.yaml"
        config.parent.mkdir(exist_ok=True)
        config.write_text(yaml.safe_dump(document | {"vantage": "second"}), encoding="utf-8")
        with Command(config.parent / "probe.log", "probe", "--config", str(config)):
            let_pass(time.monotonic() + WARM_UP_S)
            yield

    def start_agent(self) -> None:
        self._agent = self._start("probe")

    def kill_agent(self) -> None:
        if self._agent:
            self._agent.kill()

    def start_watch(self) -> None:
        self._watches.append(self._start("watch"))

    def active_watch(self) -> Command:
        """Return the watch that is the leader: it logs when it becomes the leader and when it stops."""
        (active,) = (watch for watch in self._watches if watch.output.count("the leader") % 2)
        return active

    def kill_active_watch(self) -> None:
        """Kill the watch that is the leader."""
        watch = self.active_watch()
        watch.kill()
        self._watches.remove(watch)

    def stop_active_watch(self, for_s: float) -> None:
        """Stop the leader for a while; when it continues, it still believes that it leads."""
        with stop_processes(self.active_watch().tree()):
            let_pass(time.monotonic() + for_s)

    def _start(self, command: str) -> Command:
        log = self._folder / f"{command}-{time.monotonic_ns()}.log"
        return Command(log, command, "--config", str(self.config)).__enter__()

    def process(self, cluster: str, broker: int) -> psutil.Process:
        (status,) = (status for status in self.local.status().clusters if status.cluster == cluster)
        (pid,) = (process.pid for process in status.brokers if process.broker == broker)
        return psutil.Process(pid)


@dataclass(frozen=True, slots=True)
class Fault:
    """A fault of brokers, or of the network path to a broker, and the finding kinds that report it."""

    kind: str
    cluster: str
    brokers: tuple[int, ...]
    finding_kinds: frozenset[str]
    #: The delay, if the fault is one.
    ms: float
    inject: Callable[[Scene, "Fault"], None]

    @property
    def broker(self) -> int | None:
        """The affected broker; None if the fault affects the whole cluster."""
        return self.brokers[0] if len(self.brokers) == 1 else None

    def is_reported_by(self, page: Post) -> bool:
        kind = page.body["kind"]
        subject = page.body["evidence"] if kind in PATH_FINDING else page.body
        return (
            is_firing(page)
            and (page.body["cluster"], subject["broker"]) == (self.cluster, self.broker)
            and kind in self.finding_kinds
        )

    def is_consequence(self, page: Post) -> bool:
        """Return whether a page about another broker or cluster is an expected effect of this fault."""
        if self.kind == "cluster":
            return bool(page.body["cluster"] == self.cluster)
        return self.finding_kinds == SILENT and page.body["kind"] in SILENT


def hang(scene: Scene, fault: Fault, for_s: float = HANG_S) -> None:
    started_s = time.monotonic()
    for broker in fault.brokers:
        scene.local.fault("hang", fault.cluster, broker, for_s=for_s)
    let_pass(started_s + for_s)


def hang_and_kill_watch(scene: Scene, fault: Fault) -> None:
    """Hang a broker and kill the leading watch: the other watch takes over and must report the fault."""
    (broker,) = fault.brokers
    started_s = time.monotonic()
    scene.local.fault("hang", fault.cluster, broker, for_s=HANG_S)
    scene.kill_active_watch()
    scene.start_watch()
    let_pass(started_s + HANG_S)


def hang_and_stop_watch(scene: Scene, fault: Fault) -> None:
    """Stop the leading watch once it has paged: neither watch may page again."""
    (broker,) = fault.brokers
    started_s = time.monotonic()
    scene.local.fault("hang", fault.cluster, broker, for_s=HANG_S)
    let_pass(started_s + HANG_S / 2)
    scene.stop_active_watch(HANG_S / 2 + EXTRA_STOP_S)


def flap(scene: Scene, fault: Fault) -> None:
    for _ in range(FLAPS):
        hang(scene, fault, FLAP_S)
        let_pass(time.monotonic() + BETWEEN_FLAPS_S)


def slow_down_process(scene: Scene, fault: Fault) -> None:
    (broker,) = fault.brokers
    with slow_down(scene.process(fault.cluster, broker)):
        let_pass(time.monotonic() + SLOW_S)


def fault_until_healed(kind: FaultKind, seconds: float) -> Callable[[Scene, Fault], None]:
    """Return an injection of a local fleet's fault that is healed after so many seconds."""

    def inject(scene: Scene, fault: Fault) -> None:
        (broker,) = fault.brokers
        delay_ms = fault.ms if kind == "slow" else None
        scene.local.fault(kind, fault.cluster, broker, delay_ms=delay_ms)
        let_pass(time.monotonic() + seconds)
        scene.local.fault("heal", fault.cluster, broker)

    return inject


def slow_tail_until_paged(scene: Scene, fault: Fault) -> None:
    (broker,) = fault.brokers
    started_s = time.monotonic()
    scene.local.fault("slow", fault.cluster, broker, delay_ms=fault.ms, share=TAIL)
    with suppress(TimeoutError):
        wait_until(
            lambda: any(page.at_s >= started_s and fault.is_reported_by(page) for page in scene.pages),
            TAIL_TIMEOUT_S,
            "the page",
        )
    scene.local.fault("heal", fault.cluster, broker)


def cut_off_from_second_vantage(scene: Scene, fault: Fault) -> None:
    (broker,) = fault.brokers
    with scene.second_listeners.cut_off(fault.cluster, broker):
        let_pass(time.monotonic() + CUT_OFF_S)


def kill_agent(scene: Scene, _: Fault) -> None:
    scene.kill_agent()
    let_pass(time.monotonic() + AWAY_S)
    scene.start_agent()


def hang_telemetry(scene: Scene, _: Fault) -> None:
    """Hang the telemetry cluster, which also stops the election of the leading watch."""
    scene.local.fault("hang", TELEMETRY, 1, for_s=AWAY_S)
    let_pass(time.monotonic() + AWAY_S)


GONE, SLOW, SILENT = frozenset({"BROKER_DOWN"}), frozenset({"DEGRADED"}), frozenset({"NO_DATA"})
#: A finding about a network path; the broker is in its evidence.
PATH_FINDING = frozenset({"PATH"})
KINDS: Mapping[str, tuple[frozenset[str], Callable[[Scene, Fault], None]]] = {
    "hang": (GONE, hang),
    "slow": (SLOW, fault_until_healed("slow", SLOW_S)),
    "kill": (GONE, fault_until_healed("kill", HANG_S)),
    "tail": (SLOW, slow_tail_until_paged),
    "stop": (SLOW, slow_down_process),
    "cut_off": (GONE | {"NETWORK_UNAVAILABLE"}, fault_until_healed("blackhole", CUT_OFF_S)),
    "path": (PATH_FINDING, cut_off_from_second_vantage),
    "cluster": (frozenset({"CLUSTER_DOWN"}), hang),
    "watch_killed": (GONE, hang_and_kill_watch),
    "watch_stopped": (GONE, hang_and_stop_watch),
    "flap": (GONE, flap),
    "agent": (SILENT, kill_agent),
    "telemetry": (SILENT, hang_telemetry),
}
BROKERS_OF_CLUSTER_FAULTS = {"cluster": BROKERS, "agent": (), "telemetry": ()}
#: These faults affect both clusters, or the processes that measure and page for both.
EXCLUSIVE = frozenset({"path", "watch_killed", "watch_stopped", "agent", "telemetry"})

#: Faults that are injected at the same time: one, or one in each cluster.
Round = tuple[Fault, ...]


def plan_rounds(kinds: Sequence[str], faults: int, seed: int) -> list[Round]:
    """Return rounds with the kinds in turn, on random brokers of both clusters."""
    random, rounds = Random(seed), list[Round]()
    waiting: Fault | None = None
    for number in range(faults):
        kind = kinds[number % len(kinds)]
        beside = None if kind in EXCLUSIVE else waiting
        cluster = random.choice([name for name in CLUSTERS if beside is None or name != beside.cluster])
        broker, ms = random.choice(BROKERS), random.uniform(50, 300)
        ms = max(ms, TAIL_MS) if kind == "tail" else ms
        finding_kinds, inject = KINDS[kind]
        fault = Fault(
            kind, cluster, BROKERS_OF_CLUSTER_FAULTS.get(kind, (broker,)), finding_kinds, ms, inject
        )
        if kind in EXCLUSIVE:
            rounds.append((fault,))
        elif waiting:
            rounds.append((waiting, fault))
            waiting = None
        else:
            waiting = fault
    return [*rounds, (waiting,)] if waiting else rounds


def run_round(scene: Scene, faults: Round) -> list[dict[str, Any]]:
    """Inject faults, wait until their pages are resolved, and return the result of each."""
    controllers = {
        fault.cluster: find_active_controller(scene.local.bootstrap(fault.cluster)) for fault in faults
    }
    needs_second_vantage = any(fault.finding_kinds == PATH_FINDING for fault in faults)
    with scene.second_vantage() if needs_second_vantage else nullcontext(), ThreadPoolExecutor() as pool:
        at_s = time.monotonic()
        log_progress(", ".join(f"{fault.kind} of {fault.cluster} {fault.broker or ''}" for fault in faults))
        for injection in [pool.submit(fault.inject, scene, fault) for fault in faults]:
            injection.result()

        def select_pages(fault: Fault) -> Pages:
            return [
                page
                for page in scene.pages
                if page.at_s >= at_s and (len(faults) == 1 or page.body["cluster"] == fault.cluster)
            ]

        try:
            wait_until(
                lambda: all(map(select_pages, faults)) and not find_unresolved(scene.pages),
                ENDS_WITHIN_S,
                "the pages to be resolved",
            )
        except TimeoutError as error:
            log_progress(str(error))
        let_pass(time.monotonic() + RECOVERY_S)
    return [
        describe_result(fault, select_pages(fault), at_s, controllers[fault.cluster] in fault.brokers)
        for fault in faults
    ]


def describe_result(fault: Fault, pages: Pages, at_s: float, controller: bool) -> dict[str, Any]:
    """Return the result of a fault by the pages since its injection."""
    right = [page for page in pages if fault.is_reported_by(page)]
    wrong = [
        page for page in pages if is_firing(page) and page not in right and not fault.is_consequence(page)
    ]
    result = {
        "kind": fault.kind,
        "cluster": fault.cluster,
        "broker": fault.broker,
        "controller": controller,
        "ms": round(fault.ms) if fault.kind in ("slow", "tail") else None,
        "named_after_s": round(right[0].at_s - at_s, 1) if right else None,
        "pages": len(right),
        "wrong": [page.body["summary"] for page in wrong],
        "doubled": count_duplicates(pages),
        "unresolved": len(find_unresolved(pages)),
    }
    log_progress(json.dumps(result))
    return result


def keep_incident(scene: Scene, fault: Fault, since: datetime, folder: Path) -> None:
    """Write the incident as a file for `fleetgauge replay run`, without this machine's name."""
    telemetry = load_fleet(scene.config).telemetry
    assert telemetry is not None
    incident = read_incident(
        telemetry,
        fault.cluster,
        since,
        datetime.now(UTC),
        INCIDENT_LEAD,
        f"{fault.kind} {fault.broker or ''}",
    )
    pulses = tuple(replace(pulse, agent_id=f"agent/{pulse.vantage}") for pulse in incident.pulses)
    replace(incident, pulses=pulses).write(folder / f"{fault.kind}-{since:%H%M%S}{SUFFIX}")


def summarize(rows: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
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
        "detect_s": {
            kind: {"median": round(median(times_s), 1), "max": max(times_s)}
            for kind, times_s in detected.items()
        },
        "table": list(rows),
    }


@click.command()
@click.option("--faults", default=24, show_default=True, type=click.IntRange(min=1))
@click.option("--seed", default=1, show_default=True, help="Seed of the brokers and of the delays.")
@click.option(
    "--only",
    "kinds",
    multiple=True,
    type=click.Choice(list(KINDS)),
    help="Inject only faults of this kind; may be repeated.",
)
@click.option("--again", is_flag=True, help="Start over instead of continuing an earlier run.")
@click.option(
    "--incidents",
    type=click.Path(path_type=Path, file_okay=False),
    help="Folder that keeps an incident file for each fault.",
)
@click.option("--json", "_", is_flag=True, help="Has no effect: the result is always JSON.")
def main(
    faults: int, seed: int, kinds: tuple[str, ...], again: bool, incidents: Path | None, _: bool
) -> None:
    file = Path(tempfile.gettempdir(), f"fleetgauge-faults-{faults}-{seed}-{'-'.join(kinds) or 'all'}.jsonl")
    done = Results(file)
    if again:
        done.delete()
    if incidents:
        incidents.mkdir(parents=True, exist_ok=True)
    rows = done.read()
    if rows:
        log_progress(f"{len(rows)} of {faults} are finished: {file}")
    rounds = plan_rounds(kinds or list(KINDS), faults, seed)
    finished = list(accumulate(map(len, rounds)))
    left = [round_ for round_, number in zip(rounds, finished, strict=True) if number > len(rows)]
    if left:
        run_rounds(left, done, incidents)
    report = summarize(done.read())
    done.delete()
    print(json.dumps(report, indent=2))
    is_exact = report["named_right"] == report["faults"] and not report["named_wrong"]
    sys.exit(0 if is_exact and not report["pages_doubled"] and not report["pages_unresolved"] else 1)


def run_rounds(rounds: Sequence[Round], done: Results, incidents: Path | None) -> None:
    """Run rounds, and add the result of each fault to ``done``."""
    clusters = (*(ClusterSpec(name) for name in CLUSTERS), ClusterSpec(TELEMETRY, brokers=1))
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="fleetgauge-name-")))
        second_listeners = stack.enter_context(create_second_listeners())
        local = stack.enter_context(LocalFleet(folder / "fleet", clusters, progress=log_progress))
        pager = stack.enter_context(Receiver().listening())
        scene = Scene(folder, local, pager, second_listeners)
        notifiers = {"notifiers": [{"kind": "webhook", "url": pager.url}]}
        scene.config.write_text(yaml.safe_dump(yaml.safe_load(local.fleet_file.read_text()) | notifiers))
        fleet = load_fleet(scene.config)
        assert fleet.telemetry is not None
        ensure_telemetry_topics(fleet.telemetry)
        stack.enter_context(scene.running())
        for faults in rounds:
            since = datetime.now(UTC)
            results = run_round(scene, faults)
            if incidents:
                for fault in faults:
                    keep_incident(scene, fault, since, incidents)
            done.add(*results)


if __name__ == "__main__":
    main()
