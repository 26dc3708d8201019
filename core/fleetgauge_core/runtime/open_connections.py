"""Bound the connections that a server holds, so that silent ones cannot use up the process's files."""

import asyncio
import resource
import socket
from collections.abc import Callable

#: Connections that a server holds at most; each takes a file and some kilobytes.
_MAX_CONNECTIONS = 4_096
#: Connections that wait to be accepted.
BACKLOG = 1_024
#: Connections that are accepted before the loop closes those that are too many.
_ACCEPTED_AT_ONCE = 8


async def start_server(connect: Callable[[], asyncio.Protocol], listener: socket.socket) -> asyncio.Server:
    """Accept connections of a socket that listens.

    asyncio would accept as many at once as may wait, and so use up the process's files.
    """
    loop = asyncio.get_running_loop()
    server = await loop.create_server(connect, sock=listener, backlog=_ACCEPTED_AT_ONCE)
    listener.listen(BACKLOG)
    return server


def _limit_by_files() -> int:
    """Return the maximum number of connections; half of the process's files are left to its work."""
    max_files, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return _MAX_CONNECTIONS if max_files == resource.RLIM_INFINITY else min(_MAX_CONNECTIONS, max_files // 2)


class OpenConnections:
    """The open connections of a server in the order in which they were made.

    When one more than ``limit`` is open, the oldest that may be closed is closed. Not thread-safe.
    """

    def __init__(self, limit: int | None = None) -> None:
        self._limit = _limit_by_files() if limit is None else limit
        self._may_close: dict[asyncio.Transport, Callable[[], bool]] = {}

    def add(self, transport: asyncio.Transport, may_close: Callable[[], bool] = lambda: True) -> None:
        """Add a connection, and close another if there are too many now."""
        self._may_close[transport] = may_close
        if len(self._may_close) > self._limit:
            oldest = next(
                (transport for transport, may_close in self._may_close.items() if may_close()), transport
            )
            self.remove(oldest)
            oldest.abort()

    def remove(self, transport: asyncio.Transport) -> None:
        """Forget a connection that is closed."""
        self._may_close.pop(transport, None)

    def close_all(self) -> None:
        """Close all connections that may be closed."""
        for transport, may_close in list(self._may_close.items()):
            if may_close():
                transport.abort()
