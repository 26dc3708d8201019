"""One mirror under the runner: its process, and the faults that befall it."""

from collections.abc import Callable

from fleetgauge_local.child import Child
from fleetgauge_local.folder import MirrorPlan, RunningMirror
from fleetgauge_local.messages import MirrorState, MirrorStatus


class Mirror:
    """Owns one process at a time; a killed one goes on from what its target holds.

    ``changed`` is called whenever a process has come or gone.
    """

    def __init__(self, plan: MirrorPlan, changed: Callable[[], None]) -> None:
        self.spec = plan.spec
        self._child = Child(f"mirror {plan.spec.target}", plan.command, plan.folder, changed)

    async def start(self) -> None:
        """Start the process."""
        await self._child.start()

    @property
    def state(self) -> MirrorState:
        """How it stands; one that is not started yet waits for its clusters."""
        return self._child.state or "waiting"

    @property
    def since_ms(self) -> int:
        """What was written since then, by the wall clock, has to come through before it counts as up."""
        return self._child.since_ms

    def copies(self) -> None:
        """Say that records come through."""
        self._child.state = "up"

    def doubt(self) -> None:
        """Ask afresh whether it copies: a cluster of its own was away."""
        if self.state in ("starting", "up"):
            self._child.begin()

    @property
    def running(self) -> RunningMirror | None:
        """What the state file says of it."""
        identity = self._child.identity
        return RunningMirror(self.spec.target, identity) if identity else None

    def status(self) -> MirrorStatus:
        """The mirror as it is now."""
        return MirrorStatus(
            mirror=self.spec.target,
            sources=self.spec.sources,
            state=self.state,
            pid=self._child.pid,
            rss_mib=self._child.rss_mib,
        )

    def hang(self, for_s: float | None) -> None:
        """Stop the process where it stands; wake it after that time, if one is given."""
        self._child.hang(for_s)

    async def kill(self) -> None:
        """End the process without a word."""
        await self._child.kill()

    def heal(self) -> None:
        """Undo every fault: one that hangs goes on, one that is dead waits for its start."""
        if self.state == "dead":
            self._child.state = None
        elif self.state == "hung":
            self._child.wake()

    async def ended(self) -> None:
        """Return when the process is gone."""
        await self._child.ended()
