"""The process that owns a fleet's brokers, proxies and mirrors: ``python -m fleetgauge_local.runner FOLDER``.

It reads the plan, keeps the state file up to date, serves requests on a Unix socket, and ends its child
processes when it ends. Only after SIGKILL do children survive; the state file lists them.
"""

import asyncio
import contextlib
import fcntl
import logging
import logging.handlers
import os
import sys
import tempfile
import time
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import click
from pydantic import TypeAdapter, ValidationError

from fleetgauge_core.runtime.options import PathParam
from fleetgauge_core.runtime.shutdown import ShutdownFlag
from fleetgauge_core.runtime.supervision import supervise_process
from fleetgauge_local.broker_process import BrokerProcess
from fleetgauge_local.errors import RequestError
from fleetgauge_local.fleet_folder import FleetFolder, FleetPlan, RunnerState, read_json, write_json
from fleetgauge_local.layout import HOST
from fleetgauge_local.metadata_request import list_known_brokers
from fleetgauge_local.mirror_supervisor import MirrorSupervisor
from fleetgauge_local.processes import identify, terminate_all
from fleetgauge_local.runner_protocol import (
    BrokerFault,
    BrokerRestart,
    ClusterState,
    ClusterStatus,
    FleetStatus,
    MirrorFault,
    RunnerRequest,
    RunnerResponse,
)

_log = logging.getLogger(__name__)

_GRACE_S = 3
#: A broker that ends in an orderly way first hands over its leaderships.
_RESTART_GRACE_S = 20
#: How long the processes may take to end, in which those that do not are killed.
_SHUTDOWN_DEADLINE_S = 45.0
_POLL_S = 0.1
_ASK_S = 1.0
_LOG_BYTES = 1 << 20
# The kernel's limit is 108 bytes on Linux and 104 on macOS.
_LONGEST_SOCKET_PATH = 100

_requests = TypeAdapter(RunnerRequest)
_responses = TypeAdapter(RunnerResponse)


class Runner:
    """Runs a fleet's brokers, proxies and mirrors until a request or signal ends it."""

    def __init__(self, folder: FleetFolder, plan: FleetPlan, socket: Path) -> None:
        self._folder = folder
        self._layout = plan.layout
        self._socket = socket
        self._identity = identify(os.getpid())
        self._ending = asyncio.Event()
        self._ended: asyncio.Future[int] = asyncio.get_running_loop().create_future()
        # Connections whose `down` request is answered when all processes have ended.
        self._down_requests: set[asyncio.Task[None]] = set()
        self._brokers = {
            (broker.placement.cluster, broker.placement.broker): BrokerProcess(broker, self._write_state)
            for broker in plan.brokers
        }
        self._mirrors = MirrorSupervisor(plan, self._read_cluster_state, self._write_state)

    async def run(self, until_stdin_closes: bool, shutdown: ShutdownFlag) -> None:
        """Start all brokers, serve requests until a stop request or the flag is set, then end all processes.

        ``until_stdin_closes``: also end when standard input closes.
        """
        loop = asyncio.get_running_loop()
        self._write_state()
        server = await asyncio.start_unix_server(self._serve, self._socket)
        self._socket.chmod(0o600)
        if until_stdin_closes:
            await loop.connect_read_pipe(lambda: _EndOfInput(self._ending), sys.stdin)
        monitors = [
            asyncio.create_task(self._follow(shutdown)),
            asyncio.create_task(self._monitor_readiness()),
            asyncio.create_task(self._mirrors.supervise()),
        ]
        try:
            regular = [broker for broker in self._brokers.values() if not broker.placement.spare]
            await asyncio.gather(*(broker.start() for broker in regular))
            await self._ending.wait()
        finally:
            # The deadline holds for what follows.
            shutdown.set()
            for task in monitors:
                task.cancel()
            await self._end()
            server.close()

    async def _follow(self, shutdown: ShutdownFlag) -> None:
        while not shutdown.is_set():
            await asyncio.sleep(_POLL_S)
        self._ending.set()

    async def _end(self) -> None:
        self._ending.set()
        count = 0
        # Mirrors end first, to leave their Connect groups. Repeats for processes that were starting.
        while running := self._mirrors.alive or self._alive():
            identities = [process.running.identity for process in running if process.running]
            count += await asyncio.to_thread(terminate_all, identities, _GRACE_S)
            await asyncio.gather(*(process.wait_until_ended() for process in running))
        _log.info("ended %d processes", count)
        self._folder.state.unlink(missing_ok=True)
        self._ended.set_result(count)
        if self._down_requests:
            await asyncio.wait(self._down_requests, timeout=_ASK_S)

    def _write_state(self) -> None:
        running = tuple(broker.running for broker in self._alive() if broker.running)
        write_json(
            self._folder.state, RunnerState(self._identity, self._socket, running, self._mirrors.running)
        )

    def _alive(self) -> tuple[BrokerProcess, ...]:
        return tuple(broker for broker in self._brokers.values() if broker.running)

    def _read_cluster_state(self, cluster: str) -> ClusterState:
        states = {broker.state for broker in self._brokers.values() if broker.placement.cluster == cluster}
        if "up" in states:
            return "up"
        return "starting" if "starting" in states else "away"

    async def _monitor_readiness(self) -> None:
        while True:
            await asyncio.gather(
                *(
                    self._check_readiness(broker)
                    for broker in self._brokers.values()
                    if broker.state == "starting"
                )
            )
            await asyncio.sleep(_POLL_S)

    async def _check_readiness(self, broker: BrokerProcess) -> None:
        """Mark a broker up if its metadata lists every healthy broker of its cluster, itself included."""
        listed = await asyncio.to_thread(list_known_brokers, HOST, broker.placement.proxy_port, _ASK_S)
        peers = (
            peer for peer in self._brokers.values() if peer.placement.cluster == broker.placement.cluster
        )
        expected = {peer.placement.broker for peer in peers if peer.state in ("starting", "up")}
        if expected <= listed and broker.state == "starting":
            broker.mark_up()
            self._mirrors.recheck(broker.placement.cluster)
            _log.info("%s: up", broker.placement.name)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(ConnectionError):
            line = await reader.readline()
            response = await self._respond(line)
            writer.write(_responses.dump_json(response) + b"\n")
            await writer.drain()
        writer.close()

    async def _respond(self, line: bytes) -> RunnerResponse:
        try:
            request = _requests.validate_json(line)
            if request.do == "status":
                return RunnerResponse(status=self._status())
            if request.do == "fault" and request.mirror:
                return RunnerResponse(mirror_fault=await self._apply_mirror_fault(request))
            if request.do == "fault":
                return RunnerResponse(fault=await self._apply_broker_fault(request))
            if request.do == "restart":
                return RunnerResponse(restart=await self._restart(request))
            return RunnerResponse(ended=await self._down())
        except RequestError as error:
            return RunnerResponse(error=str(error))
        except ValidationError as error:
            return RunnerResponse(error=f"invalid request: {error.errors()[0]['msg']}")

    async def _down(self) -> int:
        request_task = asyncio.current_task()
        if request_task is not None:
            self._down_requests.add(request_task)
        self._ending.set()
        return await asyncio.shield(self._ended)

    def _status(self) -> FleetStatus:
        clusters = tuple(
            ClusterStatus(
                cluster.id,
                self._layout.bootstrap(cluster.id),
                tuple(self._brokers[cluster.id, broker].status() for broker in cluster.all_broker_ids),
            )
            for cluster in self._layout.clusters
        )
        brokers_ready = all(broker.state in ("up", "spare") for broker in self._brokers.values())
        ready = brokers_ready and self._mirrors.all_replicating
        return FleetStatus(self._folder.root, self._identity.pid, ready, clusters, self._mirrors.status())

    async def _apply_broker_fault(self, request: RunnerRequest) -> BrokerFault:
        broker = self._find_broker(request.cluster, request.broker)
        self._refuse_while_ending()
        match request.kind:
            case "hang":
                broker.hang(request.for_s)
            case "kill":
                await broker.kill()
            case "slow":
                broker.proxy.delay((request.delay_ms or 0) / 1000, request.share)
            case "blackhole":
                broker.proxy.blackhole()
            case "heal":
                await broker.heal()
            case None:
                raise RequestError("a fault request needs a kind")
        return BrokerFault(request.cluster, request.broker, request.kind, _now())

    async def _restart(self, request: RunnerRequest) -> BrokerRestart:
        broker = self._find_broker(request.cluster, request.broker)
        self._refuse_while_ending()
        ended_at = _now()
        await broker.restart(_RESTART_GRACE_S, self._refuse_while_ending)
        return BrokerRestart(request.cluster, request.broker, ended_at, _now())

    async def _apply_mirror_fault(self, request: RunnerRequest) -> MirrorFault:
        self._refuse_while_ending()
        if request.kind is None:
            raise RequestError("a fault request needs a kind")
        await self._mirrors.fault(request.kind, request.mirror, request.for_s)
        return MirrorFault(request.mirror, request.kind, _now())

    def _refuse_while_ending(self) -> None:
        if self._ending.is_set():
            raise RequestError("the fleet is shutting down: start it again with `fleetgauge fleet up`")

    def _find_broker(self, cluster: str, broker: int) -> BrokerProcess:
        requested = self._brokers.get((cluster, broker))
        if requested is not None:
            return requested
        brokers = sorted(number for name, number in self._brokers if name == cluster)
        if brokers:
            ids = ", ".join(map(str, brokers))
            raise RequestError(f"cluster {cluster} has no broker {broker}: its brokers are {ids}")
        clusters = ", ".join(spec.id for spec in self._layout.clusters)
        raise RequestError(f"there is no cluster {cluster!r}: the clusters are {clusters}")


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


class _EndOfInput(asyncio.Protocol):
    """Ends the runner when standard input closes, which happens whenever the starting process ends."""

    def __init__(self, ending: asyncio.Event) -> None:
        self._ending = ending

    def connection_lost(self, exc: Exception | None) -> None:  # noqa: ARG002 (asyncio's signature)
        self._ending.set()


@contextlib.contextmanager
def _socket_path(folder: FleetFolder) -> Iterator[Path]:
    """Return a socket path in the fleet's folder, or in a temporary folder if the path would be too long."""
    path = folder.root / "runner.sock"
    if len(os.fsencode(path)) <= _LONGEST_SOCKET_PATH:
        path.unlink(missing_ok=True)
        yield path
        path.unlink(missing_ok=True)
    else:
        with tempfile.TemporaryDirectory(prefix="fleetgauge-") as private:
            yield Path(private, "runner.sock")


def _log_to(path: Path) -> None:
    handler = logging.handlers.RotatingFileHandler(path, maxBytes=_LOG_BYTES, backupCount=1)
    formatter = logging.Formatter("%(asctime)s.%(msecs)03dZ %(levelname)s %(message)s", "%Y-%m-%dT%H:%M:%S")
    formatter.converter = time.gmtime
    handler.setFormatter(formatter)
    logging.basicConfig(level=logging.INFO, handlers=[handler])


@click.command()
@click.argument("directory", type=PathParam(exists=True, file_okay=False))
@click.option("--until-stdin-closes", is_flag=True, help="End when standard input closes.")
def main(directory: Path, until_stdin_closes: bool) -> None:
    """Run the fleet that DIRECTORY/plan.json describes."""
    folder = FleetFolder(directory)
    _log_to(folder.runner_log)
    with folder.runner_lock.open("w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise SystemExit("another runner uses this folder: end it with `fleetgauge fleet down`") from None
        plan = read_json(folder.plan, FleetPlan)
        if plan is None:
            raise SystemExit(f"{folder.plan} is missing: start the fleet with `fleetgauge fleet up`")
        with supervise_process(_SHUTDOWN_DEADLINE_S) as shutdown, _socket_path(folder) as socket:
            asyncio.run(_run(folder, plan, socket, until_stdin_closes, shutdown))


async def _run(
    folder: FleetFolder, plan: FleetPlan, socket: Path, until_stdin_closes: bool, shutdown: ShutdownFlag
) -> None:
    await Runner(folder, plan, socket).run(until_stdin_closes, shutdown)


if __name__ == "__main__":
    main()
