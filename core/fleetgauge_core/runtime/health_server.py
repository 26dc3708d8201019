"""How a long-running process says over HTTP how it is: /livez, /readyz and /metrics."""

import json
import logging
import socket
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from functools import partial
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler
from socketserver import ThreadingTCPServer
from threading import Thread
from typing import Any

from prometheus_client import (
    CONTENT_TYPE_PLAIN_0_0_4,
    CollectorRegistry,
    Info,
    disable_created_metrics,
    generate_latest,
)

from fleetgauge_core import __version__
from fleetgauge_core.runtime.cli import Address, InputError, console

_log = logging.getLogger("fleetgauge.vitals")

# Nothing asks when a counter was made, and each would be one series more.
disable_created_metrics()


class Vitals:
    """What one process says of itself; its threads may tell it from anywhere."""

    def __init__(self, process: str, patience_s: float, clock: Callable[[], float] = time.monotonic) -> None:
        """``patience_s``: how long the process lives without a beat. Being made counts as one."""
        self.registry = CollectorRegistry()
        build = Info("fleetgauge_build", "Which version of which command this is.", registry=self.registry)
        build.info({"version": __version__, "process": process})
        self._patience_s = patience_s
        self._clock = clock
        self._beat_s = clock()
        self._ready = False

    def beat(self) -> None:
        """The main loop has gone round."""
        self._beat_s = self._clock()

    def ready(self) -> None:
        """The process does its work, from now on."""
        self._ready = True

    @property
    def loop_age_s(self) -> float:
        """Since the last beat."""
        return self._clock() - self._beat_s

    @property
    def is_alive(self) -> bool:
        return self.loop_age_s <= self._patience_s

    @property
    def is_ready(self) -> bool:
        return self._ready

    @contextmanager
    def served(self, at: Address) -> Iterator[Address]:
        """Answer over HTTP while the block runs; gives the address, with the port that port 0 became.

        Raises OSError when nobody can listen there.
        """
        with _Server(at, self) as server:
            thread = Thread(target=server.serve_forever, args=(0.1,), name="vitals", daemon=True)
            thread.start()
            try:
                yield Address(at.host, server.server_address[1])
            finally:
                server.shutdown()
                thread.join()


@contextmanager
def serving(vitals: Vitals, listen: Address | None) -> Iterator[None]:
    """What a command does with its option ``--listen``. Raises InputError when nobody can listen there."""
    with ExitStack() as stack:
        if listen is not None:
            try:
                at = stack.enter_context(vitals.served(listen))
            except OSError as error:
                reason = error.strerror or error
                raise InputError(
                    f"cannot listen on {listen}: {reason}; choose another with --listen"
                ) from error
            console.print(
                f"answering /livez, /readyz and /metrics at http://{at}", markup=False, soft_wrap=True
            )
        yield


class _Server(ThreadingTCPServer):
    """A thread a request: one that is slow to ask keeps nobody waiting.

    Not http.server's, which looks its own name up in the DNS as it starts.
    """

    allow_reuse_address = True
    daemon_threads = True

    def __init__(self, at: Address, vitals: Vitals) -> None:
        # As bytes: of a name that is none, Python's own encoder would raise no OSError.
        found = socket.getaddrinfo(at.host.encode(), at.port, type=socket.SOCK_STREAM)
        self.address_family, ip = found[0][0], str(found[0][4][0])
        super().__init__((ip, at.port), partial(_Answer, vitals))

    def handle_error(self, request: object, client_address: object) -> None:  # noqa: ARG002 (its signature)
        # A client that went away is no news; all else is a mistake of ours.
        if not isinstance(sys.exc_info()[1], OSError):
            _log.exception("no answer could be given")


class _Answer(BaseHTTPRequestHandler):
    timeout = 10

    def __init__(self, vitals: Vitals, *connection: Any) -> None:
        self._vitals = vitals
        super().__init__(*connection)

    def do_GET(self) -> None:
        match self.path.partition("?")[0]:
            case "/metrics":
                text = generate_latest(self._vitals.registry)
                self._send(HTTPStatus.OK, CONTENT_TYPE_PLAIN_0_0_4, text)
            case "/livez":
                self._say(self._vitals.is_alive, "stuck")
            case "/readyz":
                self._say(self._vitals.is_ready, "starting")
            case _:
                self.send_error(HTTPStatus.NOT_FOUND)

    def _say(self, well: bool, otherwise: str) -> None:
        said = {"status": "ok" if well else otherwise, "loop_age_s": round(self._vitals.loop_age_s, 3)}
        status = HTTPStatus.OK if well else HTTPStatus.SERVICE_UNAVAILABLE
        self._send(status, "application/json", json.dumps(said).encode())

    def _send(self, status: HTTPStatus, content_type: str, body: bytes) -> None:
        self.send_response(status)
        self.send_header("Content-Type", content_type)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:
        """Say nothing: somebody asks every few seconds."""
