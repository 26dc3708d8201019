"""All mirrors of a fleet under the runner: when each may start, and whether it copies."""

import asyncio
import logging
from collections.abc import Callable

from fleetgauge_local.errors import RequestError
from fleetgauge_local.folder import Plan, RunningMirror
from fleetgauge_local.heartbeats import Address, has_come_through
from fleetgauge_local.layout import HOST, Route
from fleetgauge_local.messages import ClusterState, Kind, MirrorStatus
from fleetgauge_local.mirror import Mirror

_log = logging.getLogger(__name__)

_POLL_S = 0.2


class Mirrors:
    """Starts each mirror once its clusters serve, and finds out whether it copies.

    ``stands`` says how a cluster does. ``changed`` is called whenever a process has come or gone.
    """

    def __init__(
        self, plan: Plan, stands: Callable[[str], ClusterState], changed: Callable[[], None]
    ) -> None:
        self._layout = plan.layout
        self._stands = stands
        self._mirrors = {one.spec.target: Mirror(one, changed) for one in plan.mirrors}

    @property
    def alive(self) -> tuple[Mirror, ...]:
        """Those with a process."""
        return tuple(mirror for mirror in self._mirrors.values() if mirror.running)

    @property
    def running(self) -> tuple[RunningMirror, ...]:
        """What the state file says of them."""
        return tuple(mirror.running for mirror in self._mirrors.values() if mirror.running)

    @property
    def copy(self) -> bool:
        """Whether all of them do."""
        return all(mirror.state == "up" for mirror in self._mirrors.values())

    def status(self) -> tuple[MirrorStatus, ...]:
        """Every mirror as it is now."""
        return tuple(mirror.status() for mirror in self._mirrors.values())

    def doubt(self, cluster: str) -> None:
        """A cluster has come back: ask afresh of the mirrors that read it or write to it."""
        for mirror in self._mirrors.values():
            if cluster in mirror.spec.clusters:
                mirror.doubt()

    async def attend(self) -> None:
        """Start what can start and ask what has started, for ever."""
        while self._mirrors:
            await asyncio.gather(*map(self._attend, self._mirrors.values()))
            await asyncio.sleep(_POLL_S)

    async def fault(self, kind: Kind, name: str, for_s: float | None) -> None:
        """Do this to a mirror. Raises RequestError where there is none, or where it cannot be done."""
        mirror = self._mirrors.get(name)
        if mirror is None:
            known = f"there are {', '.join(self._mirrors)}" if self._mirrors else "this fleet has none"
            raise RequestError(f"there is no mirror {name!r}: {known}")
        if mirror.state == "waiting" and kind != "heal":
            raise RequestError(f"mirror {name} waits for its clusters: heal them first")
        match kind:
            case "hang":
                mirror.hang(for_s)
            case "kill":
                await mirror.kill()
            case "heal":
                mirror.heal()
                await self._start_if_it_may(mirror)
            case _:
                raise RequestError("a mirror can hang, be killed and be healed: slow the clusters it copies")

    async def _attend(self, mirror: Mirror) -> None:
        await self._start_if_it_may(mirror)
        if mirror.state == "starting":
            await self._ask(mirror)

    async def _start_if_it_may(self, mirror: Mirror) -> None:
        """Without its target it would give up; without a source it copies the others."""
        standing = [self._stands(cluster) for cluster in mirror.spec.clusters]
        may = self._stands(mirror.spec.target) == "up" and "starting" not in standing
        if mirror.state == "waiting" and may:
            await mirror.start()

    async def _ask(self, mirror: Mirror) -> None:
        """It copies when from each source that serves something has come through since it began."""
        began_ms = mirror.since_ms
        routes = [route for route in mirror.spec.routes if self._stands(route.source) == "up"]
        came = await asyncio.gather(*(self._came_through(route, began_ms) for route in routes))
        if routes and all(came) and mirror.state == "starting" and mirror.since_ms == began_ms:
            mirror.copies()
            _log.info("mirror %s: copies", mirror.spec.target)

    async def _came_through(self, route: Route, since_ms: int) -> bool:
        source, target = self._addresses(route.source), self._addresses(route.target)
        return await asyncio.to_thread(has_come_through, route, source, target, since_ms)

    def _addresses(self, cluster: str) -> tuple[Address, ...]:
        return tuple((HOST, place.proxy_port) for place in self._layout.of(cluster))
