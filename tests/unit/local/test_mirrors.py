"""Mirrors under the runner, with processes that only sleep and a stand-in for what comes through."""

import asyncio
import sys
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from fleetgauge_local import mirrors
from fleetgauge_local.errors import RequestError
from fleetgauge_local.folder import MirrorPlan, Plan
from fleetgauge_local.layout import REGIONS, Route, lay_out
from fleetgauge_local.messages import ClusterState, MirrorState
from fleetgauge_local.mirrors import Mirrors

WAIT_S = 10
SLEEP = (sys.executable, "-c", "import time; time.sleep(60)")


@dataclass
class World:
    """How clusters stand, which routes carry, and what was asked of each."""

    standing: dict[str, ClusterState] = field(default_factory=dict)
    carrying: set[Route] = field(default_factory=set)
    asked: dict[Route, int] = field(default_factory=dict)
    changes: int = 0

    def has_come_through(self, route: Route, source: object, target: object, since_ms: int) -> bool:
        self.asked[route] = since_ms
        return route in self.carrying

    def changed(self) -> None:
        self.changes += 1


class Bench:
    """One mirror, north-all, attended to as the runner does."""

    def __init__(self, world: World, folder: Path) -> None:
        self.world = world
        (mirror, _) = REGIONS.mirrors
        self.routes = mirror.routes
        layout = lay_out(REGIONS.clusters, {}, iter(range(20000, 21000)), REGIONS.mirrors)
        plan = Plan(layout, (), (MirrorPlan(mirror, SLEEP, folder),))
        self.mirrors = Mirrors(plan, lambda cluster: world.standing.get(cluster, "starting"), world.changed)

    @property
    def state(self) -> MirrorState:
        (one,) = self.mirrors.status()
        return one.state

    async def until(self, state: MirrorState) -> None:
        async with asyncio.timeout(WAIT_S):
            while self.state != state:
                await asyncio.sleep(0.02)

    async def all_well(self) -> None:
        self.world.standing |= dict.fromkeys(("north", "south", "north-all"), "up")
        self.world.carrying |= set(self.routes)
        await self.until("up")


@pytest.fixture
def on_a_bench(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> Callable[[Callable[[Bench], Awaitable[None]]], None]:
    world = World()
    monkeypatch.setattr(mirrors, "has_come_through", world.has_come_through)

    async def run(test: Callable[[Bench], Awaitable[None]]) -> None:
        bench = Bench(world, tmp_path)
        attending = asyncio.create_task(bench.mirrors.attend())
        try:
            await test(bench)
        finally:
            attending.cancel()
            for mirror in bench.mirrors.alive:
                await mirror.kill()

    return lambda test: asyncio.run(run(test))


OnABench = Callable[[Callable[[Bench], Awaitable[None]]], None]


def test_a_mirror_waits_for_all_its_clusters_and_is_up_when_every_route_carries(on_a_bench: OnABench) -> None:
    async def test(bench: Bench) -> None:
        bench.world.standing |= {"north": "up", "north-all": "up"}
        await asyncio.sleep(0.5)
        assert bench.state == "waiting"
        bench.world.standing["south"] = "up"
        await bench.until("starting")
        (running,) = bench.mirrors.running
        assert running.name == "north-all"
        bench.world.carrying.add(bench.routes[0])
        await asyncio.sleep(0.5)
        assert (bench.state, bench.mirrors.copy) == ("starting", False)
        bench.world.carrying.add(bench.routes[1])
        await bench.until("up")
        assert bench.mirrors.copy

    on_a_bench(test)


def test_a_source_that_does_not_serve_is_not_waited_for(on_a_bench: OnABench) -> None:
    async def test(bench: Bench) -> None:
        await bench.all_well()
        await bench.mirrors.fault("kill", "north-all", None)
        assert bench.state == "dead"
        bench.world.standing["north"] = "away"
        bench.world.carrying.discard(bench.routes[0])
        await bench.mirrors.fault("heal", "north-all", None)
        assert bench.state == "starting"
        await bench.until("up")

    on_a_bench(test)


def test_a_killed_mirror_that_is_healed_before_its_target_starts_when_that_serves(
    on_a_bench: OnABench,
) -> None:
    async def test(bench: Bench) -> None:
        await bench.all_well()
        await bench.mirrors.fault("kill", "north-all", None)
        bench.world.standing["north-all"] = "away"
        await bench.mirrors.fault("heal", "north-all", None)
        await bench.mirrors.fault("heal", "north-all", None)
        await asyncio.sleep(0.5)
        assert bench.state == "waiting"
        bench.world.standing["north-all"] = "up"
        await bench.until("up")

    on_a_bench(test)


def test_a_mirror_has_to_show_again_that_it_copies_when_a_cluster_of_its_own_is_back(
    on_a_bench: OnABench,
) -> None:
    async def test(bench: Bench) -> None:
        await bench.all_well()
        first_ms = bench.world.asked[bench.routes[0]]
        bench.mirrors.doubt("south-all")
        assert bench.state == "up"
        bench.mirrors.doubt("north")
        assert bench.state == "starting"
        await bench.until("up")
        assert bench.world.asked[bench.routes[0]] > first_ms

    on_a_bench(test)


def test_a_mirror_that_hangs_for_a_time_has_to_show_what_was_written_after_it(on_a_bench: OnABench) -> None:
    async def test(bench: Bench) -> None:
        await bench.all_well()
        first_ms = bench.world.asked[bench.routes[0]]
        await bench.mirrors.fault("hang", "north-all", 0.5)
        assert bench.state == "hung"
        await bench.until("up")
        assert bench.world.asked[bench.routes[0]] >= first_ms + 500

    on_a_bench(test)


def test_what_a_mirror_cannot_suffer_and_who_is_not_there_is_refused(on_a_bench: OnABench) -> None:
    async def test(bench: Bench) -> None:
        with pytest.raises(RequestError, match="there is no mirror 'west': there are north-all"):
            await bench.mirrors.fault("kill", "west", None)
        with pytest.raises(RequestError, match="mirror north-all waits for its clusters: heal them first"):
            await bench.mirrors.fault("kill", "north-all", None)
        await bench.all_well()
        with pytest.raises(RequestError, match="a mirror can hang, be killed and be healed"):
            await bench.mirrors.fault("slow", "north-all", None)
        await bench.mirrors.fault("kill", "north-all", None)
        with pytest.raises(RequestError, match="mirror north-all is dead: heal it first"):
            await bench.mirrors.fault("hang", "north-all", None)

    on_a_bench(test)


def test_every_process_that_comes_or_goes_is_told(on_a_bench: OnABench) -> None:
    async def test(bench: Bench) -> None:
        await bench.all_well()
        assert bench.world.changes == 1
        await bench.mirrors.fault("kill", "north-all", None)
        assert bench.world.changes == 2
        assert bench.mirrors.running == ()

    on_a_bench(test)
