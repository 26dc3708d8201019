"""One MirrorMaker process of the runner, and the faults that can be injected into it."""

from collections.abc import Callable

from fleetgauge_local.fleet_folder import MirrorPlan, RunningMirror
from fleetgauge_local.runner_protocol import MirrorState, MirrorStatus
from fleetgauge_local.supervised_process import SupervisedProcess


class MirrorProcess:
    """One mirror's process; after a kill it resumes from the offsets stored in its target cluster.

    ``changed`` is called whenever the process has started or ended.
    """

    def __init__(self, plan: MirrorPlan, changed: Callable[[], None]) -> None:
        self.spec = plan.spec
        self._child = SupervisedProcess(f"mirror {plan.spec.target}", plan.command, plan.folder, changed)

    async def start(self) -> None:
        """Start the MirrorMaker process."""
        await self._child.start()

    @property
    def state(self) -> MirrorState:
        """The mirror's state; ``waiting`` until its clusters serve and it is started."""
        return self._child.state or "waiting"

    @property
    def since_ms(self) -> int:
        """The wall-clock time in milliseconds of the last start or resume; ``up`` needs a later heartbeat."""
        return self._child.since_ms

    def mark_up(self) -> None:
        """Set the state to ``up``: heartbeats are replicated."""
        self._child.state = "up"

    def recheck(self) -> None:
        """Require a new replicated heartbeat for ``up``, because a cluster of this mirror was unavailable."""
        if self.state in ("starting", "up"):
            self._child.mark_starting()

    @property
    def running(self) -> RunningMirror | None:
        """The entry in the runner's state file; None while no process runs."""
        identity = self._child.identity
        return RunningMirror(self.spec.target, identity) if identity else None

    def status(self) -> MirrorStatus:
        """Return the mirror's current status."""
        return MirrorStatus(
            mirror=self.spec.target,
            sources=self.spec.sources,
            state=self.state,
            pid=self._child.pid,
            rss_mib=self._child.rss_mib,
        )

    def hang(self, for_s: float | None) -> None:
        """Suspend the process (SIGSTOP), and resume it after ``for_s`` seconds if given."""
        self._child.hang(for_s)

    async def kill(self) -> None:
        """Kill the process (SIGKILL) and wait until it has ended."""
        await self._child.kill()

    def heal(self) -> None:
        """Resume a hung process; let a dead mirror wait for its clusters and be started again."""
        if self.state == "dead":
            self._child.state = None
        elif self.state == "hung":
            self._child.wake()

    async def wait_until_ended(self) -> None:
        """Return when the process has ended; at once if it was never started."""
        await self._child.wait_until_ended()
