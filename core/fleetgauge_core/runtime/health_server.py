"""Health endpoints of long-running processes over HTTP: /livez, /readyz and /metrics.

A process may take POST requests on the same address.
"""

import asyncio
import io
import json
import logging
import re
import socket
import time
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import Future
from contextlib import ExitStack, contextmanager, suppress
from functools import cached_property
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler
from threading import Thread

from prometheus_client import (
    CONTENT_TYPE_PLAIN_0_0_4,
    CollectorRegistry,
    Info,
    ProcessCollector,
    disable_created_metrics,
    generate_latest,
)

from fleetgauge_core import __version__
from fleetgauge_core.runtime.cli import InputError, ListenAddress
from fleetgauge_core.runtime.console import console
from fleetgauge_core.runtime.open_connections import BACKLOG, OpenConnections, start_server
from fleetgauge_core.runtime.part_status import PartStatus
from fleetgauge_core.runtime.posts import MAX_BODY_BYTES, Post, PostHandler, PostResponse

_log = logging.getLogger("fleetgauge.vitals")

#: A connection is closed when it has not been answered for this long.
_TIMEOUT_S = 10
_MAX_REQUEST_BYTES = 65_536
_END_OF_HEADERS = re.compile(rb"\r?\n\r?\n")
_CONTENT_LENGTH = re.compile(rb"^content-length:[ \t]*(\d{1,12})[ \t]*\r?$", re.IGNORECASE | re.MULTILINE)
_EXPECTS_GO_AHEAD = re.compile(rb"^expect:[ \t]*100-continue", re.IGNORECASE | re.MULTILINE)
#: How long what a client still sends is read after its response, before the connection is closed.
_LINGER_S = 1.0
#: Of a response that is promised.
_PENDING_TIMEOUT_S = 60
_MAX_LENGTH_DIGITS = 12

# Creation timestamps would add a series for each counter, and no query uses them.
disable_created_metrics()


def register_build_info(registry: CollectorRegistry, process: str) -> None:
    """Add the metric that names the version and the command, ``process``."""
    build = Info("fleetgauge_build", "Version and command of this process.", registry=registry)
    build.info({"version": __version__, "process": process})


class ProcessHealth:
    """Liveness, readiness and metrics of one process. All methods are thread-safe."""

    def __init__(
        self,
        process: str,
        max_heartbeat_age_s: float,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """Count the time of creation as the first heartbeat.

        ``process`` is the label of the build metric; the process counts as stuck when its last heartbeat
        is older than ``max_heartbeat_age_s``.
        """
        self.registry = CollectorRegistry()
        register_build_info(self.registry, process)
        # When the process started, its memory and its open files, by the names that Prometheus users know.
        ProcessCollector(registry=self.registry)
        self._max_heartbeat_age_s = max_heartbeat_age_s
        self._clock = clock
        self._heartbeat_s = clock()
        self._ready = False

    @cached_property
    def parts(self) -> PartStatus:
        """The faulty parts of the process, for its main loop to update."""
        return PartStatus(self.registry)

    def record_heartbeat(self) -> None:
        """Record that the main loop has completed a round."""
        self._heartbeat_s = self._clock()

    def mark_ready(self) -> None:
        """Report the process as ready from now on."""
        self._ready = True

    @property
    def loop_age_s(self) -> float:
        """Seconds since the last heartbeat."""
        return self._clock() - self._heartbeat_s

    @property
    def is_alive(self) -> bool:
        """Whether the last heartbeat is recent enough."""
        return self.loop_age_s <= self._max_heartbeat_age_s

    @property
    def is_ready(self) -> bool:
        """Whether the process has been marked as ready."""
        return self._ready

    @contextmanager
    def serve(self, address: ListenAddress, posts: PostHandler | None = None) -> Iterator[ListenAddress]:
        """Serve the endpoints while the block runs; yield the address, with the actual port if it was 0.

        ``posts`` answers POST requests; without it they are refused. Raises: OSError if the process cannot
        listen on the address.
        """
        server = _Server(address, self, posts)
        server.start()
        try:
            yield ListenAddress(address.host, server.port)
        finally:
            server.stop()


@contextmanager
def serve_health(
    health: ProcessHealth, listen: ListenAddress | None, posts: PostHandler | None = None
) -> Iterator[None]:
    """Serve the endpoints on the address of the option ``--listen`` while the block runs, if it is given.

    ``posts`` answers POST requests. Raises: InputError if the process cannot listen on the address.
    """
    with ExitStack() as stack:
        if listen is not None:
            try:
                address = stack.enter_context(health.serve(listen, posts))
            except OSError as error:
                reason = error.strerror or error
                raise InputError(
                    f"cannot listen on {listen}: {reason}; choose another address with --listen"
                ) from error
            console.print(
                f"serving /livez, /readyz and /metrics at http://{address}", markup=False, soft_wrap=True
            )
        yield


class _Server:
    """Serves the endpoints from one thread, however many connections are open.

    http.server.HTTPServer is not used because it has a thread for each connection, and looks up its own host
    name in the DNS when it starts.
    """

    def __init__(self, address: ListenAddress, health: ProcessHealth, posts: PostHandler | None) -> None:
        # The host is passed as bytes, because encoding an invalid host name raises UnicodeError, not OSError.
        addresses = socket.getaddrinfo(address.host.encode(), address.port, type=socket.SOCK_STREAM)
        self._listener = socket.socket(addresses[0][0], socket.SOCK_STREAM)
        try:
            self._listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            self._listener.bind((str(addresses[0][4][0]), address.port))
            self._listener.listen(BACKLOG)
        except OSError:
            self._listener.close()
            raise
        self.port: int = self._listener.getsockname()[1]
        self._health = health
        self._posts = posts
        self._connections = OpenConnections()
        self._loop = asyncio.new_event_loop()
        self._stop = asyncio.Event()
        self._thread = Thread(target=self._run, name="health", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        self._loop.call_soon_threadsafe(self._stop.set)
        self._thread.join()
        self._loop.close()

    def _run(self) -> None:
        self._loop.run_until_complete(self._serve())

    async def _serve(self) -> None:
        server = await start_server(self._connect, self._listener)
        await self._stop.wait()
        server.close()
        self._connections.close_all()
        # The connections end in the next round of the loop.
        await asyncio.sleep(0)

    def _connect(self) -> asyncio.Protocol:
        return _Connection(self._health, self._posts, self._connections)


class _Connection(asyncio.Protocol):
    """A connection, which is closed after one response or at the timeout."""

    def __init__(
        self, health: ProcessHealth, posts: PostHandler | None, connections: OpenConnections
    ) -> None:
        self._health = health
        self._posts = posts
        self._connections = connections
        self._received = b""
        self._response: _Response | None = None
        self._has_ended = False

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport
        self._loop = asyncio.get_running_loop()
        self._connections.add(transport)
        self._timer = self._loop.call_later(_TIMEOUT_S, transport.abort)
        self._lingering: asyncio.TimerHandle | None = None

    def connection_lost(self, _error: Exception | None) -> None:
        self._timer.cancel()
        if self._lingering:
            self._lingering.cancel()
        self._connections.remove(self._transport)

    def data_received(self, data: bytes) -> None:
        # What comes after the request is read, but ignored: if it were not, the client might be told that the
        # connection was reset before it has read the response.
        if self._response or self._transport.is_closing():
            return
        self._received += data
        if self._is_complete():
            self._respond()

    def eof_received(self) -> bool:
        """Keep the connection open for a response that is still to come."""
        self._has_ended = True
        return bool(self._response and self._response.is_pending)

    def _is_complete(self) -> bool:
        """Return whether the request has come, or its response is known already."""
        end = _END_OF_HEADERS.search(self._received)
        if end is None or end.start() > _MAX_REQUEST_BYTES:
            return len(self._received) > _MAX_REQUEST_BYTES
        length = _find_body_length(self._received[: end.end()])
        if not self._posts or not length or length > MAX_BODY_BYTES:
            return True
        is_complete = len(self._received) - end.end() >= length
        if not is_complete and len(self._received) == end.end() and _EXPECTS_GO_AHEAD.search(self._received):
            self._transport.write(b"HTTP/1.1 100 Continue\r\n\r\n")
        return is_complete

    def _respond(self) -> None:
        self._response = response = _Response(self._health, self._posts, self._received)
        try:
            response.handle_one_request()
        except Exception:
            # A metric that cannot be read must not leave the client waiting.
            _log.exception("a health request failed")
        if response.pending is None:
            self._finish(response)
        else:
            self._restart_timer(_PENDING_TIMEOUT_S)
            response.pending.add_done_callback(lambda _: self._finish_later(response))

    def _finish_later(self, response: "_Response") -> None:
        # The server may have stopped meanwhile.
        with suppress(RuntimeError):
            self._loop.call_soon_threadsafe(self._finish, response)

    def _finish(self, response: "_Response") -> None:
        if response.pending:
            try:
                response.send_answer(response.pending.result())
            except Exception:
                _log.exception("a request failed")
        if self._transport.is_closing():
            return
        self._transport.write(response.rendered)
        if self._transport.can_write_eof():
            self._transport.write_eof()
        # Also for a client that does not read its response.
        self._restart_timer(_TIMEOUT_S)
        linger_s = 0 if self._has_ended else _LINGER_S
        self._lingering = self._loop.call_later(linger_s, self._transport.close)

    def _restart_timer(self, seconds: float) -> None:
        self._timer.cancel()
        self._timer = self._loop.call_later(seconds, self._transport.abort)


def _find_body_length(head: bytes) -> int:
    """Return the length of the body that follows these headers; 0 if there is none or it is not given."""
    length = _CONTENT_LENGTH.search(head)
    return int(length[1]) if length else 0


class _Response(BaseHTTPRequestHandler):
    """Answers GET and HEAD alike, POST if the process takes such requests, and any other method with 405."""

    def __init__(self, health: ProcessHealth, posts: PostHandler | None, request: bytes) -> None:
        # The base class would read from a socket.
        self._health = health
        self._posts = posts
        self.rfile = io.BytesIO(request)
        self.wfile = self._written = io.BytesIO()
        self.pending: Future[PostResponse] | None = None
        """The answer to a POST request that takes a while."""

    @property
    def is_pending(self) -> bool:
        """Whether the answer is still to come."""
        return self.pending is not None and not self.pending.done()

    @property
    def rendered(self) -> bytes:
        """The response to the request."""
        return self._written.getvalue()

    def do_GET(self) -> None:
        match self.path.partition("?")[0]:
            case "/metrics":
                text = generate_latest(self._health.registry)
                self._send(HTTPStatus.OK, CONTENT_TYPE_PLAIN_0_0_4, text)
            case "/livez":
                self._send_status(self._health.is_alive, "stuck")
            case "/readyz":
                self._send_status(self._health.is_ready, "starting")
            case _:
                self._send(HTTPStatus.NOT_FOUND, "text/plain", b"use /livez, /readyz or /metrics\n")

    def do_HEAD(self) -> None:
        self.do_GET()

    def do_POST(self) -> None:
        if self._posts is None:
            self._reject_method()
            return
        length = self.headers.get("Content-Length", "")
        if not length.isdecimal():
            self._refuse(HTTPStatus.LENGTH_REQUIRED, "give the header Content-Length")
        elif len(length) > _MAX_LENGTH_DIGITS or int(length) > MAX_BODY_BYTES:
            message = f"{length[: _MAX_LENGTH_DIGITS + 1]} bytes, at most {MAX_BODY_BYTES} are read"
            self._refuse(HTTPStatus.REQUEST_ENTITY_TOO_LARGE, message)
        else:
            headers = {name.lower(): text for name, text in self.headers.items()}
            post = Post(self.path.partition("?")[0], headers, self.rfile.read(int(length)))
            answer = self._posts(post)
            if isinstance(answer, Future):
                self.pending = answer
            else:
                self.send_answer(answer)

    def _refuse(self, status: HTTPStatus, message: str) -> None:
        self.send_answer(PostResponse(status, {"error": message}))

    def send_answer(self, answer: PostResponse) -> None:
        """Write the response to a POST request."""
        body = json.dumps(answer.document).encode() + b"\n"
        self._send(answer.status, "application/json", body, answer.headers)

    def handle_expect_100(self) -> bool:
        """Go on: the client has been told to, and its whole request is here."""
        return True

    def __getattr__(self, name: str) -> Callable[[], None]:
        """Return the method of http.server for any other HTTP method."""
        if name.startswith("do_"):
            return self._reject_method
        raise AttributeError(name)

    def _reject_method(self) -> None:
        allowed = "GET, HEAD" if self._posts is None else "GET, HEAD, POST"
        message = f"only {allowed} are allowed here\n".encode()
        self._send(HTTPStatus.METHOD_NOT_ALLOWED, "text/plain", message, {"Allow": allowed})

    def _send_status(self, is_ok: bool, failure: str) -> None:
        document = {"status": "ok" if is_ok else failure, "loop_age_s": round(self._health.loop_age_s, 3)}
        status = HTTPStatus.OK if is_ok else HTTPStatus.SERVICE_UNAVAILABLE
        self._send(status, "application/json", json.dumps(document).encode())

    def _send(
        self, status: HTTPStatus, content_type: str, body: bytes, headers: Mapping[str, str] | None = None
    ) -> None:
        self.send_response(status)
        for name, text in (headers or {}).items():
            self.send_header(name, text)
        self.send_header("Content-Type", content_type)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:
        """Log nothing: requests arrive every few seconds."""
