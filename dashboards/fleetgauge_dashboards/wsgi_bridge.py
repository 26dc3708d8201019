"""Run a WSGI application behind an asynchronous server (ASGI).

A request gets a thread once it has been received completely and until its response is complete, so that slow
clients in either direction take none.
"""

import asyncio
import io
import sys
from collections.abc import Awaitable, Callable, Iterable, MutableMapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any
from urllib.parse import unquote_to_bytes

#: A callback's request body is a few kB.
MAX_BODY_BYTES = 1_000_000
#: A request's body must have arrived after this time.
_BODY_TIMEOUT_S = 60

Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
WsgiApplication = Callable[[dict[str, Any], Callable[..., Any]], Iterable[bytes]]


class ClientGoneError(Exception):
    """The client has closed the connection or not sent its request in time."""


@dataclass(slots=True)
class _WsgiResponse:
    """The response of a WSGI application."""

    status: int = 500
    headers: tuple[tuple[bytes, bytes], ...] = ()
    body: bytes = b""

    def start(self, status: str, headers: Iterable[tuple[str, str]], _exc_info: object = None) -> None:
        self.status = int(status.split(" ", 1)[0])
        self.headers = tuple((name.encode("latin-1"), text.encode("latin-1")) for name, text in headers)


class WsgiBridge:
    """An ASGI application that runs a WSGI application in threads.

    The application must refuse a body of more than MAX_BODY_BYTES, of which it gets a part.
    """

    def __init__(self, application: WsgiApplication, threads: int) -> None:
        self._application = application
        self._executor = ThreadPoolExecutor(threads, thread_name_prefix="requests")

    async def __call__(self, scope: Message, receive: Receive, send: Send) -> None:
        """Serve one request; web sockets are refused."""
        if scope["type"] != "http":
            await send({"type": "websocket.close"})
            return
        try:
            async with asyncio.timeout(_BODY_TIMEOUT_S):
                body = await self._read_body(scope, receive)
        except (ClientGoneError, TimeoutError):
            response = _WsgiResponse(408, ((b"content-length", b"0"), (b"connection", b"close")))
        else:
            loop = asyncio.get_running_loop()
            response = await loop.run_in_executor(
                self._executor, self._respond, build_environment(scope, body)
            )
        await send({"type": "http.response.start", "status": response.status, "headers": response.headers})
        await send({"type": "http.response.body", "body": response.body})

    async def _read_body(self, scope: Message, receive: Receive) -> bytes:
        """Return the body up to one byte over the limit; nothing of one that is announced as longer."""
        announced = next((text for name, text in scope["headers"] if name == b"content-length"), b"0")
        body = b""
        more = int(announced) <= MAX_BODY_BYTES
        while more and len(body) <= MAX_BODY_BYTES:
            message = await receive()
            if message["type"] == "http.disconnect":
                raise ClientGoneError
            body += message.get("body", b"")
            more = message.get("more_body", False)
        return body[: MAX_BODY_BYTES + 1]

    def _respond(self, environment: dict[str, Any]) -> _WsgiResponse:
        response = _WsgiResponse()
        chunks = self._application(environment, response.start)
        try:
            response.body = b"".join(chunks)
        finally:
            close = getattr(chunks, "close", None)
            if close is not None:
                close()
        return response


def build_environment(scope: Message, body: bytes) -> dict[str, Any]:
    """Return the WSGI environment (PEP 3333) of an ASGI request."""
    server, client = scope.get("server") or ("", 0), scope.get("client") or ("", 0)
    environment: dict[str, Any] = {
        "REQUEST_METHOD": scope["method"],
        "SCRIPT_NAME": "",
        "PATH_INFO": unquote_to_bytes(scope["raw_path"]).decode("latin-1"),
        "QUERY_STRING": scope["query_string"].decode("latin-1"),
        "SERVER_PROTOCOL": f"HTTP/{scope['http_version']}",
        "SERVER_NAME": str(server[0]),
        "SERVER_PORT": str(server[1]),
        "REMOTE_ADDR": str(client[0]),
        "REMOTE_PORT": str(client[1]),
        "wsgi.version": (1, 0),
        "wsgi.url_scheme": scope["scheme"],
        "wsgi.input": io.BytesIO(body),
        "wsgi.input_terminated": True,
        "wsgi.errors": sys.stderr,
        "wsgi.multithread": True,
        "wsgi.multiprocess": True,
        "wsgi.run_once": False,
        "CONTENT_LENGTH": str(len(body)),
    }
    for raw_name, raw_text in scope["headers"]:
        name, text = raw_name.decode("latin-1").upper(), raw_text.decode("latin-1")
        if "_" in name:  # It would be taken for the header with dashes, which a proxy may have checked.
            continue
        key = name.replace("-", "_")
        if name not in ("CONTENT-TYPE", "CONTENT-LENGTH"):
            key = f"HTTP_{key}"
            if key in environment:
                text = f"{environment[key]}{';' if name == 'COOKIE' else ','}{text}"
        environment[key] = text
    return environment
