"""Lookups of host names beside an event loop."""

import asyncio
import errno
import socket
from collections.abc import Callable
from concurrent.futures import Future
from contextlib import suppress
from functools import partial
from ipaddress import ip_address
from threading import Thread
from typing import Any

_CONCURRENT_LOOKUPS = 16


class NameResolver:
    """Looks up host names for the tasks of one event loop, each in a thread of its own.

    A lookup that gets no response cannot be interrupted. So there is at most one for a name, and 16 in all;
    they go on when the task that waits for one gives up, and do not keep the process from ending.
    """

    def __init__(self) -> None:
        self._slots = asyncio.Semaphore(_CONCURRENT_LOOKUPS)
        self._lookups: dict[str, asyncio.Task[list[str]]] = {}

    async def resolve(self, host: str) -> list[str]:
        """Return the IP addresses of a host name; none for an IP address. Raises: OSError, UnicodeError."""
        with suppress(ValueError):
            ip_address(host)
            return []
        lookup = self._lookups.get(host)
        if lookup is None:
            lookup = self._lookups[host] = asyncio.create_task(self._look_up(host))
            lookup.add_done_callback(partial(self._forget, host))
        return await asyncio.shield(lookup)

    async def _look_up(self, host: str) -> list[str]:
        async with self._slots:
            entries = await _run_in_daemon_thread(
                partial(socket.getaddrinfo, host, None, type=socket.SOCK_STREAM)
            )
        return [address[0] for *_, address in entries]

    def _forget(self, host: str, lookup: "asyncio.Task[list[str]]") -> None:
        del self._lookups[host]
        if not lookup.cancelled():
            lookup.exception()  # asyncio logs an exception that nobody has read: all tasks may have given up.


async def _run_in_daemon_thread(function: Callable[[], Any]) -> Any:
    """Return or raise what a function returns or raises.

    A loop's own executor would wait for the function at the end of the loop, and the process at its end.
    """
    future: Future[Any] = Future()
    future.set_running_or_notify_cancel()

    def run() -> None:
        try:
            result = function()
        except Exception as error:
            future.set_exception(error)
        else:
            future.set_result(result)

    try:
        Thread(target=run, daemon=True).start()
    except RuntimeError as error:
        # "can't start new thread": the system call's error number is lost.
        raise OSError(errno.EAGAIN, str(error)) from error
    return await asyncio.wrap_future(future)
