"""One HTTP request and its response, within a bounded time.

The timeouts of sockets bound each step alone: a server that sends a byte every second, or a name server that
does not answer, would hold the caller for as long as they like. So each request has a thread and a deadline
of its own. It also has a connection of its own: requests are rare, and a fresh connection cannot have been
closed meanwhile and has the present proxy, secrets and certificates.
"""

import socket
import ssl
import threading
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from http import HTTPStatus
from http.client import HTTPException

import urllib3
from urllib3.connection import HTTPConnection, HTTPSConnection
from urllib3.connectionpool import HTTPConnectionPool, HTTPSConnectionPool
from urllib3.exceptions import HTTPError

from fleetgauge_core.errors import OperationalError
from fleetgauge_core.http.failure import describe_failure
from fleetgauge_core.runtime.deadline import run_until_deadline

#: To connect, and to wait for the next byte.
_STEP_TIMEOUT_S = 5.0
TOTAL_TIMEOUT_S = 10.0
_MAX_BODY_BYTES = 64 * 1024


class HttpFailureError(OperationalError):
    """No response was received; the message is one line without URL, login and headers."""


@dataclass(frozen=True, slots=True)
class HttpProxy:
    """A proxy without its login, and the value of Proxy-Authorization."""

    url: str
    authorization: str | None = None
    tls: ssl.SSLContext | None = None


@dataclass(frozen=True, slots=True)
class HttpRequest:
    """A request; ``url`` contains no login."""

    method: str
    url: str
    headers: Mapping[str, str]
    body: bytes | None = None
    proxy: HttpProxy | None = None
    tls: ssl.SSLContext | None = None


@dataclass(frozen=True, slots=True)
class HttpResponse:
    """A response. Its body, up to 64 KiB, is read for status 400 alone, whose cause it may name."""

    status: int
    body: bytes = b""
    location: str | None = None
    may_be_of_proxy: bool = False
    """Whether a proxy has forwarded the request, and may have given the response itself."""


def exchange(request: HttpRequest, timeout_s: float = TOTAL_TIMEOUT_S) -> HttpResponse:
    """Send a request and return its response; redirects are not followed. Raises: HttpFailureError."""
    sockets = _Sockets()
    responses: list[HttpResponse] = []
    try:
        run_until_deadline([lambda: responses.append(_send(request, sockets))], timeout_s)
        if responses:
            return responses[0]
    except (HTTPError, HTTPException, OSError, ValueError) as error:
        # Errors of clients contain the URL, so they are not chained.
        with_tls = request.url.startswith("https:")
        raise HttpFailureError(describe_failure(error, with_tls)) from None
    finally:
        sockets.shut_down()
    raise HttpFailureError(f"no complete response within {timeout_s:.0f} s")


def _send(request: HttpRequest, sockets: "_Sockets") -> HttpResponse:
    with _open_manager(request, sockets) as manager:
        response = manager.request(
            request.method,
            request.url,
            body=request.body,
            headers=request.headers,
            retries=False,
            redirect=False,
            preload_content=False,
        )
        try:
            body = b""
            if response.status == HTTPStatus.BAD_REQUEST:
                # A server may reset the connection after its response; the status is enough then.
                with suppress(HTTPError, HTTPException, OSError):
                    body = response.read(_MAX_BODY_BYTES)
            location = response.get_redirect_location() or None
        finally:
            response.close()
    # In a tunnel, which https needs, only the receiver can respond.
    is_forwarded = request.proxy is not None and request.url.startswith("http:")
    return HttpResponse(response.status, body, location, is_forwarded)


def _open_manager(request: HttpRequest, sockets: "_Sockets") -> urllib3.PoolManager:
    timeout = urllib3.Timeout(_STEP_TIMEOUT_S)
    if request.proxy is None:
        manager = urllib3.PoolManager(timeout=timeout, ssl_context=request.tls)
    else:
        authorization = request.proxy.authorization
        manager = urllib3.ProxyManager(
            request.proxy.url,
            proxy_headers={"Proxy-Authorization": authorization} if authorization else None,
            proxy_ssl_context=request.proxy.tls,
            timeout=timeout,
            ssl_context=request.tls,
        )
    manager.pool_classes_by_scheme = _create_pool_classes(sockets)
    return manager


class _Sockets:
    """The sockets of a request, to end it from another thread."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._duplicates: list[socket.socket] = []
        self._is_shut_down = False

    def register(self, connected: socket.socket) -> socket.socket:
        """Return the socket. Raises: TimeoutError if the time is over, so that nothing is sent too late."""
        with self._lock:
            if self._is_shut_down:
                connected.close()
                raise TimeoutError
            # TLS takes the file descriptor from a socket; a duplicate still refers to the connection.
            self._duplicates.append(connected.dup())
        return connected

    def shut_down(self) -> None:
        """End all connections; whoever waits for data gets the end of the stream."""
        with self._lock:
            self._is_shut_down = True
            for duplicate in self._duplicates:
                with suppress(OSError):
                    duplicate.shutdown(socket.SHUT_RDWR)
                duplicate.close()


def _create_pool_classes(sockets: _Sockets) -> dict[str, type[HTTPConnectionPool]]:
    """Return urllib3's classes, whose connections register their sockets."""

    class PlainConnection(HTTPConnection):
        def _new_conn(self) -> socket.socket:
            return sockets.register(super()._new_conn())

    class TlsConnection(HTTPSConnection):
        def _new_conn(self) -> socket.socket:
            return sockets.register(super()._new_conn())

    class PlainPool(HTTPConnectionPool):
        ConnectionCls = PlainConnection

    class TlsPool(HTTPSConnectionPool):
        ConnectionCls = TlsConnection

    return {"http": PlainPool, "https": TlsPool}
