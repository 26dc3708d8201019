"""A fleet of real brokers on this machine, for tests, the demo and ``fleetgauge fleet``."""

import contextlib
import fcntl
import shutil
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from types import TracebackType
from typing import Self

from fleetgauge_local.control import ask
from fleetgauge_local.distribution import Distribution, prepare
from fleetgauge_local.errors import LocalFleetError, NoFleetError, NotReadyError
from fleetgauge_local.folder import Folder, State, read
from fleetgauge_local.layout import DEFAULT, ClusterSpec, MirrorSpec, Topology
from fleetgauge_local.messages import ClusterStatus, Fault, FleetStatus, Kind, MirrorFault, Request
from fleetgauge_local.mirror_maker import MirrorMaker, prepare_mirror_maker
from fleetgauge_local.processes import end
from fleetgauge_local.storage import plan_fleet
from fleetgauge_pipelines.io.cache import default_cache, one_at_a_time
from fleetgauge_pipelines.io.errors import SetupError

READY_S = 120
_POLL_S = 0.1
_GRACE_S = 3
_DOWN_S = 60


def _say_nothing(_: str) -> None:
    pass


def _ready(status: FleetStatus) -> bool:
    """Whether all brokers serve their clients and all mirrors copy; one that ended never will."""
    for cluster in status.clusters:
        for broker in cluster.brokers:
            if broker.state == "dead":
                log = Folder(status.directory).brokers / f"{cluster.cluster}-{broker.broker}" / "broker.log"
                raise NotReadyError(f"broker {broker.broker} of {cluster.cluster} ended: see {log}")
    for mirror in status.mirrors:
        if mirror.state == "dead":
            log = Folder(status.directory).mirror(mirror.mirror) / "mirror.log"
            raise NotReadyError(f"mirror {mirror.mirror} ended: see {log}")
    return status.ready


def _settled(status: FleetStatus) -> bool:
    """Whether nothing is starting any more; faults may stand, and mirrors wait while one does."""
    states = [broker.state for cluster in status.clusters for broker in cluster.brokers]
    if "starting" in states:
        return False
    excused = "hung" in states or "dead" in states
    return excused or not any(mirror.state in ("waiting", "starting") for mirror in status.mirrors)


def _summary(status: FleetStatus) -> str:
    brokers = (broker for cluster in status.clusters for broker in cluster.brokers)
    states = [broker.state for broker in brokers if broker.state != "spare"]
    of_brokers = f"{states.count('up')} of {len(states)} brokers ready"
    copying = [mirror.state for mirror in status.mirrors].count("up")
    return of_brokers + (f", {copying} of {len(status.mirrors)} mirrors copy" if status.mirrors else "")


class LocalFleet:
    """The fleet that lives in one folder, whether this process started it or another did.

    As a context manager it starts a fleet that ends with this process at the latest.
    """

    def __init__(
        self,
        directory: Path,
        clusters: tuple[ClusterSpec, ...] = DEFAULT,
        *,
        mirrors: tuple[MirrorSpec, ...] = (),
        cache: Path | None = None,
        progress: Callable[[str], None] = _say_nothing,
    ) -> None:
        self._folder = Folder(directory.resolve())
        self._topology = Topology(clusters, mirrors)
        self._cache = cache
        self._progress = progress
        self._runner: subprocess.Popen[bytes] | None = None

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    @property
    def fleet_file(self) -> Path:
        """The fleet.yaml of this fleet."""
        return self._folder.fleet_file

    def start(
        self, *, detached: bool = False, fresh: bool = False, deadline_s: float = READY_S
    ) -> FleetStatus:
        """Start what does not run yet and return when every broker serves its clients, every mirror copies.

        ``detached``: it outlives this process. ``fresh``: without the data of earlier runs.
        """
        deadline = time.monotonic() + deadline_s
        with one_at_a_time(self._folder.root, self._progress):
            if self._runner_lives():
                self._progress(f"a fleet runs in {self._folder.root} already")
                return self._wait(deadline, _settled)
            self._launch(detached, fresh)
            try:
                return self._wait(deadline, _ready)
            except BaseException:
                self.stop()
                raise

    def stop(self) -> int:
        """End the fleet's processes and nobody else's; how many brokers and mirrors there were."""
        try:
            ended = ask(self._folder, Request("down"), _DOWN_S).ended or 0
        except NoFleetError:
            self._end_own_runner()
            ended = self._end_what_is_left()
        self._end_own_runner()
        self._wait_for_the_runner_to_leave()
        return ended

    def status(self) -> FleetStatus:
        """Every broker and mirror as it is now."""
        status = ask(self._folder, Request("status")).status
        if status is None:
            raise LocalFleetError(f"{self._folder.root}: the runner gave no status")
        return status

    def bootstrap(self, cluster: str) -> str:
        """A cluster's ``bootstrap.servers``."""
        return self._cluster(cluster).bootstrap

    def wait_ready(self, deadline_s: float = READY_S) -> FleetStatus:
        """Return when every broker serves its clients and every mirror copies, after a heal for example."""
        return self._wait(time.monotonic() + deadline_s, _ready)

    def fault(
        self,
        kind: Kind,
        cluster: str,
        broker: int,
        *,
        delay_ms: float | None = None,
        share: float = 1,
        for_s: float | None = None,
    ) -> Fault:
        """Do this to a broker. ``delay_ms`` and ``share`` belong to slow, ``for_s`` to hang."""
        request = Request("fault", kind, cluster, broker, delay_ms=delay_ms, share=share, for_s=for_s)
        fault = ask(self._folder, request).fault
        if fault is None:
            raise LocalFleetError(f"{self._folder.root}: the runner did not say what it did")
        return fault

    def fault_mirror(self, kind: Kind, mirror: str, *, for_s: float | None = None) -> MirrorFault:
        """Hang, kill or heal the mirror that copies into this cluster. ``for_s`` belongs to hang."""
        fault = ask(self._folder, Request("fault", kind, mirror=mirror, for_s=for_s)).mirror_fault
        if fault is None:
            raise LocalFleetError(f"{self._folder.root}: the runner did not say what it did")
        return fault

    def _cluster(self, cluster: str) -> ClusterStatus:
        clusters = self.status().clusters
        for found in clusters:
            if found.cluster == cluster:
                return found
        known = ", ".join(found.cluster for found in clusters)
        raise LocalFleetError(f"there is no cluster {cluster!r}: there are {known}")

    def _runner_lives(self) -> bool:
        """Whether somebody holds the folder's lock; unlike a process id it cannot be mistaken."""
        try:
            with self._folder.runner_lock.open("r") as lock:
                fcntl.flock(lock, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except FileNotFoundError:
            return False
        except BlockingIOError:
            return True
        return False

    def _launch(self, detached: bool, fresh: bool) -> None:
        self._end_what_is_left()
        if fresh:
            self._forget()
        try:
            distribution, mirror_maker = self._prepare(self._cache or default_cache())
        except SetupError as error:
            raise LocalFleetError(str(error)) from error
        plan_fleet(self._folder, self._topology, distribution, mirror_maker)
        self._start_runner(detached)

    def _prepare(self, cache: Path) -> tuple[Distribution, MirrorMaker | None]:
        exporters = any(cluster.exporters for cluster in self._topology.clusters)
        distribution = prepare(cache, self._progress, exporters=exporters)
        if not self._topology.mirrors:
            return distribution, None
        return distribution, prepare_mirror_maker(distribution.java, cache, self._progress)

    def _start_runner(self, detached: bool) -> None:
        command = [sys.executable, "-m", "fleetgauge_local.runner", str(self._folder.root)]
        option = [] if detached else ["--until-stdin-closes"]
        with self._folder.runner_output.open("wb") as output:
            # Apart from this terminal, so that Ctrl-C reaches the brokers through the runner only.
            self._runner = subprocess.Popen(
                command + option,
                stdin=subprocess.DEVNULL if detached else subprocess.PIPE,
                stdout=output,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )

    def _wait(self, deadline: float, enough: Callable[[FleetStatus], bool]) -> FleetStatus:
        shown = ""
        while True:
            with contextlib.suppress(NoFleetError):
                status = self.status()
                if (news := _summary(status)) != shown:
                    self._progress(news)
                    shown = news
                if enough(status):
                    return status
            if self._runner is not None and self._runner.poll() is not None:
                raise NotReadyError(f"the fleet ended while it started: see {self._folder.runner_output}")
            if time.monotonic() > deadline:
                raise NotReadyError(f"{shown or 'no broker started'} in time: see {self._logs}")
            time.sleep(_POLL_S)

    @property
    def _logs(self) -> str:
        of_brokers = str(self._folder.brokers / "*" / "broker.log")
        of_mirrors = f" and {self._folder.mirrors / '*' / 'mirror.log'}" if self._topology.mirrors else ""
        return of_brokers + of_mirrors

    def _end_own_runner(self) -> None:
        if self._runner is None:
            return
        if self._runner.stdin is not None:
            self._runner.stdin.close()
        self._runner.terminate()
        self._runner.wait(_DOWN_S)
        self._runner = None

    def _end_what_is_left(self) -> int:
        """End what a runner that was killed left behind."""
        state = read(self._folder.state, State)
        if state is None:
            return 0
        end([state.runner], _GRACE_S)
        ended = end([mirror.identity for mirror in state.mirrors], _GRACE_S)
        ended += end([broker.identity for broker in state.brokers], _GRACE_S)
        self._folder.state.unlink(missing_ok=True)
        if ended:
            self._progress(f"ended {ended} processes that an earlier runner had left")
        return ended

    def _forget(self) -> None:
        shutil.rmtree(self._folder.brokers, ignore_errors=True)
        shutil.rmtree(self._folder.mirrors, ignore_errors=True)
        self._folder.layout.unlink(missing_ok=True)

    def _wait_for_the_runner_to_leave(self) -> None:
        deadline = time.monotonic() + _GRACE_S
        while self._runner_lives() and time.monotonic() < deadline:
            time.sleep(_POLL_S)
