"""Makes real brokers, clusters, the agent and the watch ill in turn: who is paged for, how soon, until when.

    python -m tests.chaos.name_faults --faults 24 --seed 1

Two clusters of three brokers, one agent, one watch that pages a webhook; what counts is what that got.
Prints one JSON value: {faults, named_right, named_wrong, missed, pages_doubled, pages_unresolved,
detect_s: {kind: {median, max}}, table}. Exit 0 iff every fault was named and nothing else, each once, and
every page was resolved.
"""

import json
import sys
import tempfile
import threading
import time
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from random import Random
from statistics import median
from typing import Any

import click
import psutil
import yaml

from fleetgauge_local.fleet import LocalFleet
from fleetgauge_local.layout import HOST, TELEMETRY, ClusterSpec
from fleetgauge_probes.fleet import load
from fleetgauge_probes.kafka import ensure_topics
from tests.chaos._faults import slowed
from tests.chaos._streaming import Command, say
from tests.waiting import let_pass, wait_until

CLUSTERS = ("orders", "payments")
BROKERS = (1, 2, 3)
#: Until the agent has warmed up and the watch has heard of everybody.
WARM_UP_S = 60
HANG_S = 30
SLOW_S = 120
CUT_OFF_S = 50
AGENT_AWAY_S = 50
FLAPS, FLAP_S, BETWEEN_FLAPS_S = 4, 9, 11
#: After a fault: brokers come back, findings end 30 s later, of flapping ones after two minutes of calm.
ENDS_WITHIN_S = 240
#: A broker is in sync and leads again, and what it did to others is over.
QUIET_S = 15


@dataclass(frozen=True, slots=True)
class Page:
    """One POST that the webhook took."""

    at_s: float
    body: Mapping[str, Any]

    @property
    def fires(self) -> bool:
        return self.body["status"] == "firing"

    @property
    def whom(self) -> tuple[str, int | None]:
        return self.body["cluster"], self.body["broker"]


class Pager:
    """A webhook that keeps what it is told."""

    def __init__(self) -> None:
        self.pages: list[Page] = []
        pages = self.pages

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
                pages.append(Page(time.monotonic(), body))
                self.send_response(200)
                self.send_header("Content-Length", "0")
                self.end_headers()

            def log_message(self, format: str, *args: object) -> None:
                """Say nothing."""

        self._server = ThreadingHTTPServer((HOST, 0), Handler)

    @property
    def url(self) -> str:
        return f"http://{HOST}:{self._server.server_address[1]}/pages"

    @contextmanager
    def listening(self) -> Iterator[None]:
        thread = threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.1})
        thread.start()
        try:
            yield
        finally:
            self._server.shutdown()
            thread.join()
            self._server.server_close()

    def since(self, at_s: float) -> list[Page]:
        return [page for page in list(self.pages) if page.at_s >= at_s]

    def unresolved(self) -> set[str]:
        last = {page.body["fingerprint"]: page.fires for page in list(self.pages)}
        return {fingerprint for fingerprint, fires in last.items() if fires}


class Scene:
    """What there is to be made ill: a local fleet, and the agent and the watch as processes."""

    def __init__(self, folder: Path, local: LocalFleet, pager: Pager) -> None:
        self.local = local
        self.pager = pager
        self._folder = folder
        self._running: dict[str, Command] = {}

    @property
    def config(self) -> Path:
        return self._folder / "fleet.yaml"

    def start(self, *commands: str) -> None:
        for one in commands:
            command = Command(self._folder / f"{one}.log", one, "--config", str(self.config))
            self._running[one] = command.__enter__()

    def kill(self, *commands: str) -> None:
        for one in commands:
            self._running[one].kill()

    def process(self, cluster: str, broker: int) -> psutil.Process:
        (of,) = (one for one in self.local.status().clusters if one.cluster == cluster)
        (pid,) = (one.pid for one in of.brokers if one.broker == broker)
        return psutil.Process(pid)


@dataclass(frozen=True, slots=True)
class Fault:
    """One thing that goes wrong, and as what it may be named. Without a broker it is the cluster's."""

    kind: str
    cluster: str
    broker: int | None
    as_kinds: frozenset[str]
    #: How slow, where it is that.
    ms: float
    happen: Callable[[Scene, "Fault"], None]

    def is_named_by(self, page: Page) -> bool:
        return page.fires and page.whom == (self.cluster, self.broker) and page.body["kind"] in self.as_kinds

    def is_consequence(self, page: Page) -> bool:
        """True of all its brokers while a whole cluster is ill, and of all clusters without an agent."""
        if self.kind == "cluster":
            return bool(page.body["cluster"] == self.cluster)
        return self.kind == "agent" and page.body["kind"] == "NO_DATA"


def hang(scene: Scene, fault: Fault) -> None:
    assert fault.broker is not None
    began_s = time.monotonic()
    scene.local.fault("hang", fault.cluster, fault.broker, for_s=HANG_S)
    let_pass(began_s + HANG_S)


def hang_and_kill_the_watch(scene: Scene, fault: Fault) -> None:
    """Once it has named the broker: the next one must neither say it again nor forget it."""
    assert fault.broker is not None
    began_s = time.monotonic()
    scene.local.fault("hang", fault.cluster, fault.broker, for_s=HANG_S)
    wait_until(
        lambda: any(map(fault.is_named_by, scene.pager.since(began_s))), HANG_S, "a page before the kill"
    )
    scene.kill("watch")
    scene.start("watch")
    let_pass(began_s + HANG_S)


def kill(scene: Scene, fault: Fault) -> None:
    assert fault.broker is not None
    scene.local.fault("kill", fault.cluster, fault.broker)
    let_pass(time.monotonic() + HANG_S)
    scene.local.fault("heal", fault.cluster, fault.broker)


def slow(scene: Scene, fault: Fault) -> None:
    assert fault.broker is not None
    scene.local.fault("slow", fault.cluster, fault.broker, delay_ms=fault.ms)
    let_pass(time.monotonic() + SLOW_S)
    scene.local.fault("heal", fault.cluster, fault.broker)


def stop_most_of_the_time(scene: Scene, fault: Fault) -> None:
    assert fault.broker is not None
    with slowed(scene.process(fault.cluster, fault.broker)):
        let_pass(time.monotonic() + SLOW_S)


def cut_off(scene: Scene, fault: Fault) -> None:
    assert fault.broker is not None
    scene.local.fault("blackhole", fault.cluster, fault.broker)
    let_pass(time.monotonic() + CUT_OFF_S)
    scene.local.fault("heal", fault.cluster, fault.broker)


def flap(scene: Scene, fault: Fault) -> None:
    assert fault.broker is not None
    for _ in range(FLAPS):
        scene.local.fault("hang", fault.cluster, fault.broker, for_s=FLAP_S)
        let_pass(time.monotonic() + FLAP_S + BETWEEN_FLAPS_S)


def hang_all(scene: Scene, fault: Fault) -> None:
    began_s = time.monotonic()
    for broker in BROKERS:
        scene.local.fault("hang", fault.cluster, broker, for_s=HANG_S)
    let_pass(began_s + HANG_S + 1)


def kill_the_agent(scene: Scene, _: Fault) -> None:
    scene.kill("probe")
    let_pass(time.monotonic() + AGENT_AWAY_S)
    scene.start("probe")


GONE = frozenset({"BROKER_DOWN"})
KINDS: Mapping[str, tuple[frozenset[str], Callable[[Scene, Fault], None]]] = {
    "hang": (GONE, hang),
    "slow": (frozenset({"DEGRADED"}), slow),
    "kill": (GONE, kill),
    "stop": (frozenset({"DEGRADED"}), stop_most_of_the_time),
    "cut_off": (GONE | {"NETWORK_UNAVAILABLE"}, cut_off),
    "cluster": (frozenset({"CLUSTER_DOWN"}), hang_all),
    "watch": (GONE, hang_and_kill_the_watch),
    "flap": (GONE, flap),
    "agent": (frozenset({"NO_DATA"}), kill_the_agent),
}
OF_CLUSTERS = ("cluster", "agent")


def planned(faults: int, seed: int) -> list[Fault]:
    """The kinds in turn, on brokers of both clusters by chance."""
    random, found = Random(seed), []
    for number in range(faults):
        kind = list(KINDS)[number % len(KINDS)]
        broker = None if kind in OF_CLUSTERS else random.choice(BROKERS)
        as_kinds, happen = KINDS[kind]
        found.append(Fault(kind, random.choice(CLUSTERS), broker, as_kinds, random.uniform(50, 300), happen))
    return found


def told(scene: Scene, fault: Fault) -> dict[str, Any]:
    """Let it happen, wait for the end of what was paged for it, and say what came of it."""
    at_s = time.monotonic()
    say(f"{fault.kind}: {fault.cluster} {fault.broker or ''}")
    fault.happen(scene, fault)
    try:
        wait_until(
            lambda: not scene.pager.unresolved() and bool(scene.pager.since(at_s)), ENDS_WITHIN_S, "the end"
        )
    except TimeoutError as error:
        say(str(error))
    let_pass(time.monotonic() + QUIET_S)
    firing = [page for page in scene.pager.since(at_s) if page.fires]
    right = [page for page in firing if fault.is_named_by(page)]
    wrong = [page for page in firing if page not in right and not fault.is_consequence(page)]
    ids = [page.body["id"] for page in firing]
    row = {
        "kind": fault.kind,
        "cluster": fault.cluster,
        "broker": fault.broker,
        "ms": round(fault.ms) if fault.kind == "slow" else None,
        "named_after_s": round(right[0].at_s - at_s, 1) if right else None,
        "pages": len(right),
        "wrong": [page.body["summary"] for page in wrong],
        "sent_twice": len(ids) - len(set(ids)),
        "unresolved": len(scene.pager.unresolved()),
    }
    say(json.dumps(row))
    return row


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
        "pages_doubled": sum(row["sent_twice"] for row in rows),
        "pages_unresolved": rows[-1]["unresolved"] if rows else 0,
        "detect_s": {kind: {"median": median(of), "max": max(of)} for kind, of in detected.items()},
        "table": list(rows),
    }


@click.command()
@click.option("--faults", default=24, show_default=True, type=click.IntRange(min=1))
@click.option("--seed", default=1, show_default=True, help="Of the brokers, and of how slow.")
@click.option("--json", "_", is_flag=True, help="As it always does.")
def main(faults: int, seed: int, _: bool) -> None:
    clusters = (*(ClusterSpec(one) for one in CLUSTERS), ClusterSpec(TELEMETRY, brokers=1))
    pager = Pager()
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="fleetgauge-name-")))
        local = stack.enter_context(LocalFleet(folder / "fleet", clusters, progress=say))
        stack.enter_context(pager.listening())
        scene = Scene(folder, local, pager)
        notifiers = {"notifiers": [{"kind": "webhook", "url": pager.url}]}
        scene.config.write_text(yaml.safe_dump(yaml.safe_load(local.fleet_file.read_text()) | notifiers))
        fleet = load(scene.config)
        assert fleet.telemetry is not None
        ensure_topics(fleet.telemetry)
        scene.start("watch", "probe")
        stack.callback(scene.kill, "watch", "probe")
        let_pass(time.monotonic() + WARM_UP_S)
        rows = [told(scene, fault) for fault in planned(faults, seed)]
    found = verdict(rows)
    print(json.dumps(found, indent=2))
    good = found["named_right"] == found["faults"] and not found["named_wrong"] and not found["pages_doubled"]
    sys.exit(0 if good and not found["pages_unresolved"] else 1)


if __name__ == "__main__":
    main()
