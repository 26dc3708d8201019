"""Start a fleet's MirrorMaker processes when their clusters serve, and check that they replicate."""

import asyncio
import logging
from collections.abc import Callable

from fleetgauge_local.errors import RequestError
from fleetgauge_local.fleet_folder import FleetPlan, RunningMirror
from fleetgauge_local.heartbeats import Address, has_replicated_since
from fleetgauge_local.layout import HOST, ReplicationRoute
from fleetgauge_local.mirror_process import MirrorProcess
from fleetgauge_local.runner_protocol import ClusterState, FaultKind, MirrorStatus

_log = logging.getLogger(__name__)

_POLL_S = 0.2


class MirrorSupervisor:
    """Starts each mirror once its clusters serve clients, and checks that it replicates.

    ``read_cluster_state`` returns the state of a cluster by its id. ``changed`` is called whenever a mirror's
    process has started or ended.
    """

    def __init__(
        self, plan: FleetPlan, read_cluster_state: Callable[[str], ClusterState], changed: Callable[[], None]
    ) -> None:
        self._layout = plan.layout
        self._read_cluster_state = read_cluster_state
        self._mirrors = {mirror.spec.target: MirrorProcess(mirror, changed) for mirror in plan.mirrors}

    @property
    def alive(self) -> tuple[MirrorProcess, ...]:
        """The mirrors whose process runs."""
        return tuple(mirror for mirror in self._mirrors.values() if mirror.running)

    @property
    def running(self) -> tuple[RunningMirror, ...]:
        """The running mirrors' entries in the runner's state file."""
        return tuple(mirror.running for mirror in self._mirrors.values() if mirror.running)

    @property
    def all_replicating(self) -> bool:
        """Whether every mirror replicates; true if there are none."""
        return all(mirror.state == "up" for mirror in self._mirrors.values())

    def status(self) -> tuple[MirrorStatus, ...]:
        """Return the current status of every mirror."""
        return tuple(mirror.status() for mirror in self._mirrors.values())

    def recheck(self, cluster: str) -> None:
        """Check again whether the mirrors from or to this cluster replicate, because it was unavailable."""
        for mirror in self._mirrors.values():
            if cluster in mirror.spec.clusters:
                mirror.recheck()

    async def supervise(self) -> None:
        """Start mirrors whose clusters serve and check started ones for replication, until cancelled."""
        while self._mirrors:
            await asyncio.gather(*map(self._supervise_mirror, self._mirrors.values()))
            await asyncio.sleep(_POLL_S)

    async def fault(self, kind: FaultKind, name: str, for_s: float | None) -> None:
        """Inject a fault into the mirror into cluster ``name``, or heal it.

        ``for_s`` is how long a hang lasts, in seconds.

        Raises: RequestError when there is no such mirror or the fault is impossible in its state.
        """
        mirror = self._mirrors.get(name)
        if mirror is None:
            hint = f"the mirrors are {', '.join(self._mirrors)}" if self._mirrors else "this fleet has none"
            raise RequestError(f"there is no mirror {name!r}: {hint}")
        if mirror.state == "waiting" and kind != "heal":
            raise RequestError(f"mirror {name} waits for its clusters to start: heal their brokers first")
        match kind:
            case "hang":
                mirror.hang(for_s)
            case "kill":
                await mirror.kill()
            case "heal":
                mirror.heal()
                await self._start_if_clusters_serve(mirror)
            case _:
                raise RequestError(
                    "a mirror supports only hang, kill and heal: apply slow and blackhole to brokers"
                )

    async def _supervise_mirror(self, mirror: MirrorProcess) -> None:
        await self._start_if_clusters_serve(mirror)
        if mirror.state == "starting":
            await self._check_replication(mirror)

    async def _start_if_clusters_serve(self, mirror: MirrorProcess) -> None:
        """Start a waiting mirror. It needs its target, but can replicate without some of its sources."""
        states = [self._read_cluster_state(cluster) for cluster in mirror.spec.clusters]
        can_start = self._read_cluster_state(mirror.spec.target) == "up" and "starting" not in states
        if mirror.state == "waiting" and can_start:
            await mirror.start()

    async def _check_replication(self, mirror: MirrorProcess) -> None:
        """Mark the mirror up if, from each source that serves, a heartbeat was replicated since its start."""
        started_ms = mirror.since_ms
        routes = [route for route in mirror.spec.routes if self._read_cluster_state(route.source) == "up"]
        replicated = await asyncio.gather(*(self._has_replicated(route, started_ms) for route in routes))
        if routes and all(replicated) and mirror.state == "starting" and mirror.since_ms == started_ms:
            mirror.mark_up()
            _log.info("mirror %s: replicates", mirror.spec.target)

    async def _has_replicated(self, route: ReplicationRoute, since_ms: int) -> bool:
        source, target = self._addresses(route.source), self._addresses(route.target)
        return await asyncio.to_thread(has_replicated_since, route, source, target, since_ms)

    def _addresses(self, cluster: str) -> tuple[Address, ...]:
        return tuple((HOST, placement.proxy_port) for placement in self._layout.list_placements(cluster))
