"""The process that owns a fleet's brokers, proxies and mirrors: ``python -m fleetgauge_local.runner FOLDER``.

It reads the plan, keeps the state file true, answers on a Unix socket, and takes its processes with
it whichever way it is asked to end. Only SIGKILL leaves some behind; the state file names them.
"""

import asyncio
import contextlib
import fcntl
import logging
import logging.handlers
import os
import signal
import sys
import tempfile
import time
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import click
from pydantic import TypeAdapter, ValidationError

from fleetgauge_local.broker import Broker
from fleetgauge_local.errors import RequestError
from fleetgauge_local.folder import Folder, Plan, State, read, write
from fleetgauge_local.layout import HOST
from fleetgauge_local.messages import (
    Answer,
    ClusterState,
    ClusterStatus,
    Fault,
    FleetStatus,
    MirrorFault,
    Request,
)
from fleetgauge_local.mirrors import Mirrors
from fleetgauge_local.processes import end, identify
from fleetgauge_local.readiness import brokers_seen

_log = logging.getLogger(__name__)

_GRACE_S = 3
_POLL_S = 0.1
_ASK_S = 1.0
_LOG_BYTES = 1 << 20
# The kernel's limit is 108 bytes on Linux and 104 on macOS.
_LONGEST_SOCKET_PATH = 100

_requests = TypeAdapter(Request)
_answers = TypeAdapter(Answer)


class Runner:
    """A fleet that runs until it is told to end."""

    def __init__(self, folder: Folder, plan: Plan, socket: Path) -> None:
        self._folder = folder
        self._layout = plan.layout
        self._socket = socket
        self._me = identify(os.getpid())
        self._ending = asyncio.Event()
        self._ended: asyncio.Future[int] = asyncio.get_running_loop().create_future()
        # The conversations that still have to be told that all has ended.
        self._leaving: set[asyncio.Task[None]] = set()
        self._brokers = {
            (broker.place.cluster, broker.place.broker): Broker(broker, self._write_state)
            for broker in plan.brokers
        }
        self._mirrors = Mirrors(plan, self._stands, self._write_state)

    async def run(self, until_stdin_closes: bool) -> None:
        """Start, serve, end."""
        loop = asyncio.get_running_loop()
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
            loop.add_signal_handler(number, self._ending.set)
        self._write_state()
        server = await asyncio.start_unix_server(self._serve, self._socket)
        self._socket.chmod(0o600)
        if until_stdin_closes:
            await loop.connect_read_pipe(lambda: _EndOfInput(self._ending), sys.stdin)
        noticing = [
            asyncio.create_task(self._notice_readiness()),
            asyncio.create_task(self._mirrors.attend()),
        ]
        try:
            present = [broker for broker in self._brokers.values() if not broker.place.spare]
            await asyncio.gather(*(broker.start() for broker in present))
            await self._ending.wait()
        finally:
            for task in noticing:
                task.cancel()
            await self._end()
            server.close()

    async def _end(self) -> None:
        self._ending.set()
        count = 0
        # Mirrors take leave of their clusters. Twice where one was just being started again.
        while running := self._mirrors.alive or self._alive():
            identities = [one.running.identity for one in running if one.running]
            count += await asyncio.to_thread(end, identities, _GRACE_S)
            await asyncio.gather(*(one.ended() for one in running))
        _log.info("ended %d processes", count)
        self._folder.state.unlink(missing_ok=True)
        self._ended.set_result(count)
        if self._leaving:
            await asyncio.wait(self._leaving, timeout=_ASK_S)

    def _write_state(self) -> None:
        running = tuple(broker.running for broker in self._alive() if broker.running)
        write(self._folder.state, State(self._me, self._socket, running, self._mirrors.running))

    def _alive(self) -> tuple[Broker, ...]:
        return tuple(broker for broker in self._brokers.values() if broker.running)

    def _stands(self, cluster: str) -> ClusterState:
        states = {one.state for one in self._brokers.values() if one.place.cluster == cluster}
        if "up" in states:
            return "up"
        return "starting" if "starting" in states else "away"

    async def _notice_readiness(self) -> None:
        while True:
            await asyncio.gather(
                *(self._ask(broker) for broker in self._brokers.values() if broker.state == "starting")
            )
            await asyncio.sleep(_POLL_S)

    async def _ask(self, broker: Broker) -> None:
        """A broker is up when it knows every broker of its cluster that is not faulty, itself included."""
        seen = await asyncio.to_thread(brokers_seen, HOST, broker.place.proxy_port, _ASK_S)
        others = (peer for peer in self._brokers.values() if peer.place.cluster == broker.place.cluster)
        wanted = {peer.place.broker for peer in others if peer.state in ("starting", "up")}
        if wanted <= seen and broker.state == "starting":
            broker.serves()
            self._mirrors.doubt(broker.place.cluster)
            _log.info("%s: up", broker.place.name)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(ConnectionError):
            line = await reader.readline()
            answer = await self._answer(line)
            writer.write(_answers.dump_json(answer) + b"\n")
            await writer.drain()
        writer.close()

    async def _answer(self, line: bytes) -> Answer:
        try:
            request = _requests.validate_json(line)
            if request.do == "status":
                return Answer(status=self._status())
            if request.do == "fault" and request.mirror:
                return Answer(mirror_fault=await self._mirror_fault(request))
            if request.do == "fault":
                return Answer(fault=await self._fault(request))
            return Answer(ended=await self._down())
        except RequestError as error:
            return Answer(error=str(error))
        except ValidationError as error:
            return Answer(error=f"not understood: {error.errors()[0]['msg']}")

    async def _down(self) -> int:
        conversation = asyncio.current_task()
        if conversation is not None:
            self._leaving.add(conversation)
        self._ending.set()
        return await asyncio.shield(self._ended)

    def _status(self) -> FleetStatus:
        clusters = tuple(
            ClusterStatus(
                cluster.id,
                self._layout.bootstrap(cluster.id),
                tuple(self._brokers[cluster.id, broker].status() for broker in cluster.places),
            )
            for cluster in self._layout.clusters
        )
        serve = all(broker.state in ("up", "spare") for broker in self._brokers.values())
        ready = serve and self._mirrors.copy
        return FleetStatus(self._folder.root, self._me.pid, ready, clusters, self._mirrors.status())

    async def _fault(self, request: Request) -> Fault:
        broker = self._broker(request.cluster, request.broker)
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
                raise RequestError("a fault needs a kind")
        return Fault(request.cluster, request.broker, request.kind, _now())

    async def _mirror_fault(self, request: Request) -> MirrorFault:
        self._refuse_while_ending()
        if request.kind is None:
            raise RequestError("a fault needs a kind")
        await self._mirrors.fault(request.kind, request.mirror, request.for_s)
        return MirrorFault(request.mirror, request.kind, _now())

    def _refuse_while_ending(self) -> None:
        if self._ending.is_set():
            raise RequestError("the fleet is going down")

    def _broker(self, cluster: str, broker: int) -> Broker:
        found = self._brokers.get((cluster, broker))
        if found is not None:
            return found
        brokers = sorted(number for name, number in self._brokers if name == cluster)
        if brokers:
            known = ", ".join(map(str, brokers))
            raise RequestError(f"cluster {cluster} has no broker {broker}: it has {known}")
        known = ", ".join(spec.id for spec in self._layout.clusters)
        raise RequestError(f"there is no cluster {cluster!r}: there are {known}")


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


class _EndOfInput(asyncio.Protocol):
    """Whoever started the runner holds the other end: when it dies, however, the input closes."""

    def __init__(self, ending: asyncio.Event) -> None:
        self._ending = ending

    def connection_lost(self, exc: Exception | None) -> None:  # noqa: ARG002 (asyncio's signature)
        self._ending.set()


@contextlib.contextmanager
def _socket_path(folder: Folder) -> Iterator[Path]:
    """In the fleet's folder, or in a private one of its own where that path would be too long."""
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
@click.argument("directory", type=click.Path(exists=True, file_okay=False, path_type=Path))
@click.option("--until-stdin-closes", is_flag=True, help="End when the process that started this one does.")
def main(directory: Path, until_stdin_closes: bool) -> None:
    """Run the fleet that DIRECTORY/plan.json describes."""
    folder = Folder(directory)
    _log_to(folder.runner_log)
    with folder.runner_lock.open("w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise SystemExit("another runner has this folder") from None
        plan = read(folder.plan, Plan)
        if plan is None:
            raise SystemExit(f"{folder.plan} is missing")
        with _socket_path(folder) as socket:
            asyncio.run(_run(folder, plan, socket, until_stdin_closes))


async def _run(folder: Folder, plan: Plan, socket: Path, until_stdin_closes: bool) -> None:
    await Runner(folder, plan, socket).run(until_stdin_closes)


if __name__ == "__main__":
    main()
