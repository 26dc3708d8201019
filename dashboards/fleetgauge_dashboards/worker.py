"""A worker process of the dashboards' server, whose threads belong to requests, not to connections.

gunicorn's asynchronous worker receives requests and sends responses in one event loop. This one also closes
connections that send no request, and the oldest of them when too many are open.
"""

import asyncio
import os

from gunicorn.asgi.protocol import ASGIProtocol
from gunicorn.workers.gasgi import ASGIWorker

from fleetgauge_core.runtime.open_connections import OpenConnections, start_server
from fleetgauge_dashboards.wsgi_bridge import WsgiBridge

#: Requests that a worker serves concurrently.
THREADS = 8
#: A new connection must have sent the headers of its first request after this time.
_FIRST_REQUEST_TIMEOUT_S = 60


class EventLoopWorker(ASGIWorker):  # type: ignore[misc]  # gunicorn has no types
    """A gunicorn worker for a WSGI application."""

    connections: OpenConnections

    def load_wsgi(self) -> None:
        """Load the application."""
        self.asgi = WsgiBridge(self.app.wsgi(), THREADS)

    async def _serve(self) -> None:
        """Serve until the worker is told to end, or its parent is gone."""
        self.connections = OpenConnections()
        for listener in self.sockets:
            self.servers.append(await start_server(lambda: _Connection(self), listener.sock))
        while self.alive and self.ppid == os.getppid():
            self.notify()
            await asyncio.sleep(1)
        for server in self.servers:
            server.close()
        # gunicorn waits for the others, which have a request.
        self.connections.close_all()
        await self._shutdown()


class _Connection(ASGIProtocol):  # type: ignore[misc]  # gunicorn has no types
    """A connection, which is closed if it sends no request."""

    def connection_made(self, transport: asyncio.Transport) -> None:
        super().connection_made(transport)
        self.worker.connections.add(transport, self._is_waiting)
        self._first_request_timer = self.worker.loop.call_later(
            _FIRST_REQUEST_TIMEOUT_S, self._close_if_silent
        )

    def connection_lost(self, exc: Exception | None) -> None:
        self._first_request_timer.cancel()
        self.worker.connections.remove(self.transport)
        super().connection_lost(exc)

    def _is_waiting(self) -> bool:
        return self._current_request is None

    def _close_if_silent(self) -> None:
        if self._is_waiting() and self.req_count <= 1:
            self.transport.abort()
