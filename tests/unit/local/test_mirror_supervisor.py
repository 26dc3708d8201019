"""Mirror supervision with processes that only sleep and a fake replication check."""

import asyncio
import sys
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from fleetgauge_local import mirror_supervisor
from fleetgauge_local.errors import RequestError
from fleetgauge_local.fleet_folder import FleetPlan, MirrorPlan
from fleetgauge_local.layout import REGIONS, ReplicationRoute, build_layout
from fleetgauge_local.mirror_supervisor import MirrorSupervisor
from fleetgauge_local.runner_protocol import ClusterState, MirrorState

WAIT_S = 10
SLEEP = (sys.executable, "-c", "import time; time.sleep(60)")


@dataclass
class FakeClusters:
    """Fake cluster states, the routes that replicate, and the start time of each route's last check."""

    states: dict[str, ClusterState] = field(default_factory=dict)
    replicating_routes: set[ReplicationRoute] = field(default_factory=set)
    checked_since_ms: dict[ReplicationRoute, int] = field(default_factory=dict)
    changes: int = 0

    def has_replicated_since(
        self, route: ReplicationRoute, source: object, target: object, since_ms: int
    ) -> bool:
        self.checked_since_ms[route] = since_ms
        return route in self.replicating_routes

    def changed(self) -> None:
        self.changes += 1


class SupervisorHarness:
    """A supervisor of the mirror into north-all, run as the runner does."""

    def __init__(self, clusters: FakeClusters, folder: Path) -> None:
        self.clusters = clusters
        (mirror, _) = REGIONS.mirrors
        self.routes = mirror.routes
        layout = build_layout(REGIONS.clusters, {}, iter(range(20000, 21000)), REGIONS.mirrors)
        plan = FleetPlan(layout, (), (MirrorPlan(mirror, SLEEP, folder),))
        self.mirrors = MirrorSupervisor(
            plan, lambda cluster: clusters.states.get(cluster, "starting"), clusters.changed
        )

    @property
    def state(self) -> MirrorState:
        (status,) = self.mirrors.status()
        return status.state

    async def wait_for_state(self, state: MirrorState) -> None:
        async with asyncio.timeout(WAIT_S):
            while self.state != state:
                await asyncio.sleep(0.02)

    async def make_all_healthy(self) -> None:
        self.clusters.states |= dict.fromkeys(("north", "south", "north-all"), "up")
        self.clusters.replicating_routes |= set(self.routes)
        await self.wait_for_state("up")


@pytest.fixture
def run_with_harness(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> Callable[[Callable[[SupervisorHarness], Awaitable[None]]], None]:
    clusters = FakeClusters()
    monkeypatch.setattr(mirror_supervisor, "has_replicated_since", clusters.has_replicated_since)

    async def run(test: Callable[[SupervisorHarness], Awaitable[None]]) -> None:
        harness = SupervisorHarness(clusters, tmp_path)
        supervising = asyncio.create_task(harness.mirrors.supervise())
        try:
            await test(harness)
        finally:
            supervising.cancel()
            for mirror in harness.mirrors.alive:
                await mirror.kill()

    return lambda test: asyncio.run(run(test))


RunWithHarness = Callable[[Callable[[SupervisorHarness], Awaitable[None]]], None]


def test_a_mirror_starts_with_its_clusters_and_is_up_when_every_route_replicates(
    run_with_harness: RunWithHarness,
) -> None:
    async def test(harness: SupervisorHarness) -> None:
        harness.clusters.states |= {"north": "up", "north-all": "up"}
        await asyncio.sleep(0.5)
        assert harness.state == "waiting"
        harness.clusters.states["south"] = "up"
        await harness.wait_for_state("starting")
        (running,) = harness.mirrors.running
        assert running.name == "north-all"
        harness.clusters.replicating_routes.add(harness.routes[0])
        await asyncio.sleep(0.5)
        assert (harness.state, harness.mirrors.all_replicating) == ("starting", False)
        harness.clusters.replicating_routes.add(harness.routes[1])
        await harness.wait_for_state("up")
        assert harness.mirrors.all_replicating

    run_with_harness(test)


def test_a_mirror_starts_without_an_unavailable_source(run_with_harness: RunWithHarness) -> None:
    async def test(harness: SupervisorHarness) -> None:
        await harness.make_all_healthy()
        await harness.mirrors.fault("kill", "north-all", None)
        assert harness.state == "dead"
        harness.clusters.states["north"] = "away"
        harness.clusters.replicating_routes.discard(harness.routes[0])
        await harness.mirrors.fault("heal", "north-all", None)
        assert harness.state == "starting"
        await harness.wait_for_state("up")

    run_with_harness(test)


def test_a_mirror_healed_before_its_target_starts_when_the_target_serves(
    run_with_harness: RunWithHarness,
) -> None:
    async def test(harness: SupervisorHarness) -> None:
        await harness.make_all_healthy()
        await harness.mirrors.fault("kill", "north-all", None)
        harness.clusters.states["north-all"] = "away"
        await harness.mirrors.fault("heal", "north-all", None)
        await harness.mirrors.fault("heal", "north-all", None)
        await asyncio.sleep(0.5)
        assert harness.state == "waiting"
        harness.clusters.states["north-all"] = "up"
        await harness.wait_for_state("up")

    run_with_harness(test)


def test_a_mirror_is_checked_again_when_one_of_its_clusters_returns(
    run_with_harness: RunWithHarness,
) -> None:
    async def test(harness: SupervisorHarness) -> None:
        await harness.make_all_healthy()
        first_ms = harness.clusters.checked_since_ms[harness.routes[0]]
        harness.mirrors.recheck("south-all")
        assert harness.state == "up"
        harness.mirrors.recheck("north")
        assert harness.state == "starting"
        await harness.wait_for_state("up")
        assert harness.clusters.checked_since_ms[harness.routes[0]] > first_ms

    run_with_harness(test)


def test_a_resumed_mirror_must_replicate_a_heartbeat_written_after_it_resumed(
    run_with_harness: RunWithHarness,
) -> None:
    async def test(harness: SupervisorHarness) -> None:
        await harness.make_all_healthy()
        first_ms = harness.clusters.checked_since_ms[harness.routes[0]]
        await harness.mirrors.fault("hang", "north-all", 0.5)
        assert harness.state == "hung"
        await harness.wait_for_state("up")
        assert harness.clusters.checked_since_ms[harness.routes[0]] >= first_ms + 500

    run_with_harness(test)


def test_an_unsupported_fault_and_an_unknown_mirror_are_rejected(run_with_harness: RunWithHarness) -> None:
    async def test(harness: SupervisorHarness) -> None:
        with pytest.raises(RequestError, match="there is no mirror 'west': the mirrors are north-all"):
            await harness.mirrors.fault("kill", "west", None)
        with pytest.raises(
            RequestError, match="mirror north-all waits for its clusters to start: heal their brokers first"
        ):
            await harness.mirrors.fault("kill", "north-all", None)
        await harness.make_all_healthy()
        with pytest.raises(RequestError, match="a mirror supports only hang, kill and heal"):
            await harness.mirrors.fault("slow", "north-all", None)
        await harness.mirrors.fault("kill", "north-all", None)
        with pytest.raises(RequestError, match="mirror north-all is dead: heal it first"):
            await harness.mirrors.fault("hang", "north-all", None)

    run_with_harness(test)


def test_every_start_and_end_of_a_process_is_reported(run_with_harness: RunWithHarness) -> None:
    async def test(harness: SupervisorHarness) -> None:
        await harness.make_all_healthy()
        assert harness.clusters.changes == 1
        await harness.mirrors.fault("kill", "north-all", None)
        assert harness.clusters.changes == 2
        assert harness.mirrors.running == ()

    run_with_harness(test)
