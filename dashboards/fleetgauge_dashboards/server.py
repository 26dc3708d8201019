"""The server that the pages run on: worker processes that share a socket, by gunicorn.

This process knows neither Dash nor tables; each worker imports them for itself, after it was forked, so
that none inherits threads. Their counters meet in a folder of files (prometheus_client, multiprocess mode).
"""

import os
import socket
import tempfile
from collections.abc import Callable
from typing import Any

from gunicorn.app.base import BaseApplication

#: Requests that a worker answers at a time.
THREADS = 8
#: A worker that does not answer its master for so long is replaced.
_STUCK_S = 120
#: What is being answered gets so long to its end.
_GRACE_S = 5
#: Before it is imported, prometheus_client wants to know where counters of several processes meet.
_COUNTERS = "PROMETHEUS_MULTIPROC_DIR"

#: Makes the WSGI application, in the worker.
Load = Callable[[], Any]


def listening(host: str, port: int) -> socket.socket:
    """A socket there, port 0 takes a free one. Raises OSError when nobody can listen there."""
    family = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0][0]
    listener = socket.socket(family, socket.SOCK_STREAM)
    try:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind((host, port))
        listener.listen()
    except OSError:
        listener.close()
        raise
    return listener


def address(listener: socket.socket) -> str:
    """One that a browser on this machine can open."""
    host, port = listener.getsockname()[:2]
    shown = {"0.0.0.0": "127.0.0.1", "::": "::1"}.get(host, host)  # noqa: S104 (read, not bound)
    return f"http://[{shown}]:{port}/" if ":" in shown else f"http://{shown}:{port}/"


def serve(load: Load, listener: socket.socket, workers: int, serving: Callable[[], None]) -> None:
    """Answer until SIGINT or SIGTERM ends the process; ``serving`` is told once connections are accepted."""
    with tempfile.TemporaryDirectory(prefix="fleetgauge-dash-") as counters:
        os.environ[_COUNTERS] = counters
        try:
            _Server(load, listener, workers, serving).run()
        finally:
            del os.environ[_COUNTERS]


class _Server(BaseApplication):  # type: ignore[misc]
    def __init__(
        self, load: Load, listener: socket.socket, workers: int, serving: Callable[[], None]
    ) -> None:
        self._load_app = load
        self._settings = {
            "bind": f"fd://{listener.fileno()}",
            "workers": workers,
            "worker_class": "gthread",
            "threads": THREADS,
            "timeout": _STUCK_S,
            "graceful_timeout": _GRACE_S,
            "loglevel": "warning",
            "control_socket_disable": True,
            "when_ready": lambda _arbiter: serving(),
        }
        super().__init__()

    def load_config(self) -> None:
        for name, value in self._settings.items():
            self.cfg.set(name, value)

    def load(self) -> Any:
        return self._load_app()
