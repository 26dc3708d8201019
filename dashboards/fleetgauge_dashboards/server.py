"""Run the dashboards' WSGI application with gunicorn: worker processes that share one listening socket.

The parent process imports neither Dash nor the table readers; each worker imports them after the fork, so
that it inherits no threads. The workers' metrics meet in a folder (prometheus_client, multiprocess mode).
"""

import os
import socket
import tempfile
from collections.abc import Callable
from typing import Any

from gunicorn.app.base import BaseApplication

from fleetgauge_dashboards.site_address import TrustedProxies
from fleetgauge_dashboards.worker import EventLoopWorker

#: gunicorn replaces a worker that has not reported to the arbiter for this long.
_WORKER_TIMEOUT_S = 120
#: Requests in flight get this long to finish at shutdown.
_GRACEFUL_TIMEOUT_S = 5
#: prometheus_client reads this variable when it is imported: the folder of the workers' metrics.
_METRICS_FOLDER_VARIABLE = "PROMETHEUS_MULTIPROC_DIR"

#: Creates the WSGI application; called in each worker.
ApplicationFactory = Callable[[], Any]


def open_listener(host: str, port: int) -> socket.socket:
    """Return a listening TCP socket; port 0 takes a free port.

    Raises: OSError when the address cannot be bound.
    """
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


def format_url(listener: socket.socket) -> str:
    """Return a URL of the listener that a browser on this machine can open."""
    host, port = listener.getsockname()[:2]
    reachable_host = {"0.0.0.0": "127.0.0.1", "::": "::1"}.get(host, host)  # noqa: S104 (read, not bound)
    return (
        f"http://[{reachable_host}]:{port}/" if ":" in reachable_host else f"http://{reachable_host}:{port}/"
    )


def serve(
    create_application: ApplicationFactory,
    listener: socket.socket,
    workers: int,
    on_ready: Callable[[], None],
    proxies: TrustedProxies,
) -> None:
    """Serve until SIGINT or SIGTERM; call ``on_ready`` once connections are accepted.

    Whether a request came by HTTPS is believed only of ``proxies``.
    """
    with tempfile.TemporaryDirectory(prefix="fleetgauge-dash-") as folder:
        os.environ[_METRICS_FOLDER_VARIABLE] = folder
        try:
            _GunicornServer(create_application, listener, workers, on_ready, proxies).run()
        finally:
            del os.environ[_METRICS_FOLDER_VARIABLE]


class _GunicornServer(BaseApplication):  # type: ignore[misc]
    """A gunicorn application configured in code."""

    def __init__(
        self,
        create_application: ApplicationFactory,
        listener: socket.socket,
        workers: int,
        on_ready: Callable[[], None],
        proxies: TrustedProxies,
    ) -> None:
        self._create_application = create_application
        self._settings = {
            "bind": f"fd://{listener.fileno()}",
            "workers": workers,
            "worker_class": EventLoopWorker,
            "asgi_lifespan": "off",
            "forwarded_allow_ips": ",".join(map(str, proxies.networks)),
            "timeout": _WORKER_TIMEOUT_S,
            "graceful_timeout": _GRACEFUL_TIMEOUT_S,
            "loglevel": "warning",
            "control_socket_disable": True,
            "when_ready": lambda _arbiter: on_ready(),
        }
        super().__init__()

    def load_config(self) -> None:
        """Apply the settings; gunicorn calls this once."""
        for name, value in self._settings.items():
            self.cfg.set(name, value)

    def load(self) -> Any:
        """Return the WSGI application; gunicorn calls this in each worker."""
        return self._create_application()
