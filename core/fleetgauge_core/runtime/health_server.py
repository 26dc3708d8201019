"""Health endpoints of long-running processes over HTTP: /livez, /readyz and /metrics."""

import json
import logging
import socket
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from functools import cached_property, partial
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler
from socketserver import ThreadingTCPServer
from threading import Thread
from typing import Any

from prometheus_client import (
    CONTENT_TYPE_PLAIN_0_0_4,
    CollectorRegistry,
    Gauge,
    Info,
    disable_created_metrics,
    generate_latest,
)

from fleetgauge_core import __version__
from fleetgauge_core.runtime.cli import InputError, ListenAddress
from fleetgauge_core.runtime.console import console
from fleetgauge_core.runtime.part_status import PartStatus

_log = logging.getLogger("fleetgauge.vitals")

# Creation timestamps would add a series for each counter, and no query uses them.
disable_created_metrics()


class ProcessHealth:
    """Liveness, readiness and metrics of one process. All methods are thread-safe."""

    def __init__(
        self,
        process: str,
        max_heartbeat_age_s: float,
        clock: Callable[[], float] = time.monotonic,
        wall_clock: Callable[[], float] = time.time,
    ) -> None:
        """Count the time of creation as the first heartbeat.

        ``process`` is the label of the build metric; the process counts as stuck when its last heartbeat
        is older than ``max_heartbeat_age_s``.
        """
        self.registry = CollectorRegistry()
        build = Info("fleetgauge_build", "Version and command of this process.", registry=self.registry)
        build.info({"version": __version__, "process": process})
        Gauge(
            "fleetgauge_process_start_timestamp_seconds",
            "When this process started: what its counters hold has happened since.",
            registry=self.registry,
        ).set(wall_clock())
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
    def serve(self, address: ListenAddress) -> Iterator[ListenAddress]:
        """Serve the endpoints while the block runs; yield the address, with the actual port if it was 0.

        Raises: OSError if the process cannot listen on the address.
        """
        with _Server(address, self) as server:
            thread = Thread(target=server.serve_forever, args=(0.1,), name="health", daemon=True)
            thread.start()
            try:
                yield ListenAddress(address.host, server.server_address[1])
            finally:
                server.shutdown()
                thread.join()


@contextmanager
def serve_health(health: ProcessHealth, listen: ListenAddress | None) -> Iterator[None]:
    """Serve the endpoints on the address of the option ``--listen`` while the block runs, if it is given.

    Raises: InputError if the process cannot listen on the address.
    """
    with ExitStack() as stack:
        if listen is not None:
            try:
                address = stack.enter_context(health.serve(listen))
            except OSError as error:
                reason = error.strerror or error
                raise InputError(
                    f"cannot listen on {listen}: {reason}; choose another address with --listen"
                ) from error
            console.print(
                f"serving /livez, /readyz and /metrics at http://{address}", markup=False, soft_wrap=True
            )
        yield


class _Server(ThreadingTCPServer):
    """One thread per connection, so that a slow client does not delay others.

    http.server.HTTPServer is not used because it looks up its own host name in the DNS when it starts.
    """

    allow_reuse_address = True
    daemon_threads = True

    def __init__(self, address: ListenAddress, health: ProcessHealth) -> None:
        # The host is passed as bytes, because encoding an invalid host name raises UnicodeError, not OSError.
        addresses = socket.getaddrinfo(address.host.encode(), address.port, type=socket.SOCK_STREAM)
        self.address_family, ip = addresses[0][0], str(addresses[0][4][0])
        super().__init__((ip, address.port), partial(_RequestHandler, health))

    def handle_error(self, request: object, client_address: object) -> None:  # noqa: ARG002 (its signature)
        # A client that disconnects is expected; any other exception is a bug in this module.
        if not isinstance(sys.exc_info()[1], OSError):
            _log.exception("a health request failed")


class _RequestHandler(BaseHTTPRequestHandler):
    """Answers GET and HEAD alike, and any other method with 405."""

    timeout = 10

    def __init__(self, health: ProcessHealth, *connection: Any) -> None:
        self._health = health
        super().__init__(*connection)

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

    def __getattr__(self, name: str) -> Callable[[], None]:
        """Return the method of http.server for any other HTTP method."""
        if name.startswith("do_"):
            return self._reject_method
        raise AttributeError(name)

    def _reject_method(self) -> None:
        message = b"only GET and HEAD are allowed here\n"
        self._send(HTTPStatus.METHOD_NOT_ALLOWED, "text/plain", message, {"Allow": "GET, HEAD"})

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
