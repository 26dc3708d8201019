"""A fleet of real Kafka brokers on this machine, for tests, the demo and ``fleetgauge fleet``."""

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

from fleetgauge_local.distribution import KafkaDistribution, prepare_kafka
from fleetgauge_local.errors import LocalFleetError, NoFleetError, NotReadyError
from fleetgauge_local.fleet_folder import FleetFolder, RunnerState, read_json
from fleetgauge_local.layout import DEFAULT_CLUSTERS, ClusterSpec, MirrorSpec, Topology
from fleetgauge_local.mirror_maker import MirrorMaker, prepare_mirror_maker
from fleetgauge_local.processes import terminate_all
from fleetgauge_local.provisioning import write_fleet_plan
from fleetgauge_local.runner_client import call_runner
from fleetgauge_local.runner_protocol import (
    BrokerFault,
    BrokerRestart,
    ClusterStatus,
    FaultKind,
    FleetStatus,
    MirrorFault,
    RunnerRequest,
)
from fleetgauge_pipelines.io.cache import default_cache_folder, lock_folder
from fleetgauge_pipelines.io.errors import SetupError

READY_S = 120
_POLL_S = 0.1
_GRACE_S = 3
_DOWN_S = 60
_RESTART_S = 45


def _ignore_progress(_: str) -> None:
    pass


def _is_ready(status: FleetStatus) -> bool:
    """Return whether all brokers serve clients and all mirrors replicate.

    Raises: NotReadyError when a broker or mirror has ended.
    """
    for cluster in status.clusters:
        for broker in cluster.brokers:
            if broker.state == "dead":
                log = (
                    FleetFolder(status.directory).brokers
                    / f"{cluster.cluster}-{broker.broker}"
                    / "broker.log"
                )
                raise NotReadyError(f"broker {broker.broker} of {cluster.cluster} ended: see {log}")
    for mirror in status.mirrors:
        if mirror.state == "dead":
            log = FleetFolder(status.directory).mirror(mirror.mirror) / "mirror.log"
            raise NotReadyError(f"mirror {mirror.mirror} ended: see {log}")
    return status.ready


def _is_settled(status: FleetStatus) -> bool:
    """Return whether nothing is starting any more; mirrors may wait for a hung or dead broker."""
    states = [broker.state for cluster in status.clusters for broker in cluster.brokers]
    if "starting" in states:
        return False
    has_fault = "hung" in states or "dead" in states
    return has_fault or not any(mirror.state in ("waiting", "starting") for mirror in status.mirrors)


def _summarize(status: FleetStatus) -> str:
    brokers = (broker for cluster in status.clusters for broker in cluster.brokers)
    states = [broker.state for broker in brokers if broker.state != "spare"]
    broker_summary = f"{states.count('up')} of {len(states)} brokers ready"
    replicating = [mirror.state for mirror in status.mirrors].count("up")
    return broker_summary + (
        f", {replicating} of {len(status.mirrors)} mirrors replicating" if status.mirrors else ""
    )


class LocalFleet:
    """A local fleet, identified by its folder; this or another process may have started it.

    As a context manager it starts a fleet that ends with this process at the latest.
    """

    def __init__(
        self,
        directory: Path,
        clusters: tuple[ClusterSpec, ...] = DEFAULT_CLUSTERS,
        *,
        mirrors: tuple[MirrorSpec, ...] = (),
        cache: Path | None = None,
        progress: Callable[[str], None] = _ignore_progress,
    ) -> None:
        self._folder = FleetFolder(directory.resolve())
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
        """Start the fleet unless it runs; return when all brokers serve clients and all mirrors replicate.

        ``detached``: the fleet outlives this process. ``fresh``: delete the data of earlier runs.

        Raises: NotReadyError when the fleet is not ready within ``deadline_s`` seconds; LocalFleetError when
        it cannot be started.
        """
        if "," in str(self._folder.root):
            raise LocalFleetError(
                f"{self._folder.root}: Kafka takes a comma for the end of a path: choose another folder"
            )
        deadline = time.monotonic() + deadline_s
        with lock_folder(self._folder.root, self._progress):
            if self._is_runner_alive():
                self._progress(f"a fleet already runs in {self._folder.root}")
                return self._wait(deadline, _is_settled)
            self._launch(detached, fresh)
            try:
                return self._wait(deadline, _is_ready)
            except BaseException:
                self.stop()
                raise

    def stop(self) -> int:
        """End the fleet's processes and return how many brokers and mirrors were running."""
        try:
            ended = call_runner(self._folder, RunnerRequest("down"), _DOWN_S).ended or 0
        except NoFleetError:
            self._end_own_runner()
            ended = self._end_orphans()
        self._end_own_runner()
        self._wait_until_runner_ended()
        return ended

    def status(self) -> FleetStatus:
        """Return the current status of every broker and mirror.

        Raises: NoFleetError when no fleet runs.
        """
        status = call_runner(self._folder, RunnerRequest("status")).status
        if status is None:
            raise LocalFleetError(
                f"{self._folder.root}: the runner returned no status: see runner.log in this folder"
            )
        return status

    def bootstrap(self, cluster: str) -> str:
        """Return the ``bootstrap.servers`` of a cluster of the running fleet.

        Raises: LocalFleetError when there is no such cluster.
        """
        return self._cluster(cluster).bootstrap

    def wait_ready(self, deadline_s: float = READY_S) -> FleetStatus:
        """Wait until all brokers serve clients and all mirrors replicate, for example after a heal.

        Raises: NotReadyError at the deadline, or when a broker or mirror has ended.
        """
        return self._wait(time.monotonic() + deadline_s, _is_ready)

    def fault(
        self,
        kind: FaultKind,
        cluster: str,
        broker: int,
        *,
        delay_ms: float | None = None,
        share: float = 1,
        for_s: float | None = None,
    ) -> BrokerFault:
        """Inject a fault into a broker, or heal it.

        ``delay_ms`` and ``share`` apply to slow, ``for_s`` (duration in seconds) to hang.

        Raises: NoFleetError when no fleet runs; RequestError when the runner rejects the fault.
        """
        request = RunnerRequest("fault", kind, cluster, broker, delay_ms=delay_ms, share=share, for_s=for_s)
        fault = call_runner(self._folder, request).fault
        if fault is None:
            raise LocalFleetError(
                f"{self._folder.root}: the runner did not confirm the fault: see runner.log in this folder"
            )
        return fault

    def restart(self, cluster: str, broker: int) -> BrokerRestart:
        """Let a broker end in an orderly way, and start it again with its data; it serves some seconds later.

        Raises: NoFleetError when no fleet runs; RequestError when the broker is not up.
        """
        request = RunnerRequest("restart", cluster=cluster, broker=broker)
        restart = call_runner(self._folder, request, _RESTART_S).restart
        if restart is None:
            raise LocalFleetError(
                f"{self._folder.root}: the runner did not confirm the restart: see runner.log in this folder"
            )
        return restart

    def fault_mirror(self, kind: FaultKind, mirror: str, *, for_s: float | None = None) -> MirrorFault:
        """Hang, kill or heal the mirror into this cluster. ``for_s`` (duration in seconds) applies to hang.

        Raises: NoFleetError when no fleet runs; RequestError when the runner rejects the fault.
        """
        fault = call_runner(
            self._folder, RunnerRequest("fault", kind, mirror=mirror, for_s=for_s)
        ).mirror_fault
        if fault is None:
            raise LocalFleetError(
                f"{self._folder.root}: the runner did not confirm the fault: see runner.log in this folder"
            )
        return fault

    def _cluster(self, cluster: str) -> ClusterStatus:
        clusters = self.status().clusters
        for status in clusters:
            if status.cluster == cluster:
                return status
        ids = ", ".join(status.cluster for status in clusters)
        raise LocalFleetError(f"there is no cluster {cluster!r}: the clusters are {ids}")

    def _is_runner_alive(self) -> bool:
        """Return whether a runner holds the folder's lock; unlike a process id, a lock cannot be reused."""
        try:
            with self._folder.runner_lock.open("r") as lock:
                fcntl.flock(lock, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except FileNotFoundError:
            return False
        except BlockingIOError:
            return True
        return False

    def _launch(self, detached: bool, fresh: bool) -> None:
        self._end_orphans()
        if fresh:
            self._delete_data()
        try:
            distribution, mirror_maker = self._prepare(self._cache or default_cache_folder())
        except SetupError as error:
            raise LocalFleetError(str(error)) from error
        write_fleet_plan(self._folder, self._topology, distribution, mirror_maker)
        self._start_runner(detached)

    def _prepare(self, cache: Path) -> tuple[KafkaDistribution, MirrorMaker | None]:
        exporters = any(cluster.exporters for cluster in self._topology.clusters)
        distribution = prepare_kafka(cache, self._progress, exporters=exporters)
        if not self._topology.mirrors:
            return distribution, None
        return distribution, prepare_mirror_maker(distribution.java, cache, self._progress)

    def _start_runner(self, detached: bool) -> None:
        command = [sys.executable, "-m", "fleetgauge_local.runner", str(self._folder.root)]
        option = [] if detached else ["--until-stdin-closes"]
        with self._folder.runner_output.open("wb") as output:
            # In its own session: Ctrl-C reaches the brokers only through the runner.
            self._runner = subprocess.Popen(
                command + option,
                stdin=subprocess.DEVNULL if detached else subprocess.PIPE,
                stdout=output,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )

    def _wait(self, deadline: float, is_done: Callable[[FleetStatus], bool]) -> FleetStatus:
        shown = ""
        while True:
            with contextlib.suppress(NoFleetError):
                status = self.status()
                if (summary := _summarize(status)) != shown:
                    self._progress(summary)
                    shown = summary
                if is_done(status):
                    return status
            if self._runner is not None and self._runner.poll() is not None:
                raise NotReadyError(f"the runner ended during startup: see {self._folder.runner_output}")
            if time.monotonic() > deadline:
                raise NotReadyError(
                    f"deadline exceeded with {shown or 'no broker started'}: see {self._logs}"
                )
            time.sleep(_POLL_S)

    @property
    def _logs(self) -> str:
        broker_logs = str(self._folder.brokers / "*" / "broker.log")
        mirror_logs = f" and {self._folder.mirrors / '*' / 'mirror.log'}" if self._topology.mirrors else ""
        return broker_logs + mirror_logs

    def _end_own_runner(self) -> None:
        if self._runner is None:
            return
        if self._runner.stdin is not None:
            self._runner.stdin.close()
        self._runner.terminate()
        self._runner.wait(_DOWN_S)
        self._runner = None

    def _end_orphans(self) -> int:
        """End the processes that a killed runner left running, and return how many there were."""
        state = read_json(self._folder.state, RunnerState)
        if state is None:
            return 0
        terminate_all([state.runner], _GRACE_S)
        ended = terminate_all([mirror.identity for mirror in state.mirrors], _GRACE_S)
        ended += terminate_all([broker.identity for broker in state.brokers], _GRACE_S)
        self._folder.state.unlink(missing_ok=True)
        if ended:
            self._progress(f"ended {ended} processes left by an earlier runner")
        return ended

    def _delete_data(self) -> None:
        shutil.rmtree(self._folder.brokers, ignore_errors=True)
        shutil.rmtree(self._folder.mirrors, ignore_errors=True)
        self._folder.layout.unlink(missing_ok=True)

    def _wait_until_runner_ended(self) -> None:
        deadline = time.monotonic() + _GRACE_S
        while self._is_runner_alive() and time.monotonic() < deadline:
            time.sleep(_POLL_S)
