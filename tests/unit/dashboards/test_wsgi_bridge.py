"""The WSGI application sees requests as a WSGI server passes them; slow requests take no thread."""

import asyncio
from collections.abc import Awaitable, Callable, Iterable
from typing import Any

import pytest
from flask import Flask, request

from fleetgauge_dashboards.wsgi_bridge import MAX_BODY_BYTES, WsgiBridge, build_environment

SCOPE = {
    "type": "http",
    "http_version": "1.1",
    "method": "POST",
    "scheme": "https",
    "raw_path": b"/cluster/a%2Fb%FF",
    "query_string": b"of=/&part=%C3%BC",
    "headers": [(b"host", b"ops.example"), (b"content-type", b"application/json")],
    "server": ("127.0.0.1", 8050),
    "client": ("10.0.0.9", 4711),
}


def run(
    application: Any, scope: dict[str, Any], chunks: Iterable[bytes], ends: bool = True
) -> tuple[int, dict[bytes, bytes], bytes]:
    """Return status, headers and body of the response to a request whose body arrives in chunks."""
    messages: list[dict[str, Any]] = [
        {"type": "http.request", "body": chunk, "more_body": True} for chunk in chunks
    ]
    messages.append(
        {"type": "http.request", "body": b"", "more_body": False} if ends else {"type": "http.disconnect"}
    )
    sent: list[dict[str, Any]] = []

    async def receive() -> dict[str, Any]:
        return messages.pop(0)

    async def send(message: Any) -> None:
        sent.append(message)

    asyncio.run(WsgiBridge(application, 1)(scope, receive, send))
    start, body = sent
    return start["status"], dict(start["headers"]), body["body"]


@pytest.fixture
def echo() -> Flask:
    server = Flask("echo")
    server.config["MAX_CONTENT_LENGTH"] = MAX_BODY_BYTES

    def respond(path: str) -> Any:
        return [path, request.args.to_dict(), request.get_data().decode(), request.url, request.remote_addr]

    server.add_url_rule("/<path:path>", "respond", respond, methods=["POST", "GET"])
    return server


def test_a_request_reaches_the_application(echo: Flask) -> None:
    status, headers, body = run(echo, SCOPE, [b"a", b"b"])
    assert (status, headers[b"Content-Type"]) == (200, b"application/json")
    assert int(headers[b"Content-Length"]) == len(body)
    assert b'"ab","https://ops.example/cluster/' in body
    assert b'"10.0.0.9"' in body


def test_the_environment_is_that_of_a_wsgi_server() -> None:
    headers = [
        (b"x-forwarded-for", b"a"),
        (b"x-forwarded-for", b"b"),
        (b"cookie", b"a=1"),
        (b"cookie", b"b=2"),
        (b"x_forwarded_prefix", b"/forged"),
        (b"script_name", b"/forged"),
    ]
    environment = build_environment(SCOPE | {"headers": headers}, b"abc")
    assert environment["PATH_INFO"] == "/cluster/a/b\xff"
    assert environment["QUERY_STRING"] == "of=/&part=%C3%BC"
    assert (environment["CONTENT_LENGTH"], environment["wsgi.input"].read()) == ("3", b"abc")
    assert environment["HTTP_X_FORWARDED_FOR"] == "a,b"
    assert environment["HTTP_COOKIE"] == "a=1;b=2"
    assert (environment["REMOTE_ADDR"], environment["SERVER_PORT"]) == ("10.0.0.9", "8050")
    assert (environment["SCRIPT_NAME"], environment["SERVER_PROTOCOL"]) == ("", "HTTP/1.1")
    assert not any("forged" in str(text) for text in environment.values())


@pytest.mark.parametrize("announced", [True, False])
def test_of_an_oversized_body_only_a_part_is_read(echo: Flask, announced: bool) -> None:
    length = [(b"content-length", str(9 * MAX_BODY_BYTES).encode())] if announced else []
    read = 0

    def chunks() -> Iterable[bytes]:
        nonlocal read
        for _ in range(9):
            read += MAX_BODY_BYTES
            yield bytes(MAX_BODY_BYTES)

    async def receive() -> dict[str, Any]:
        return {"type": "http.request", "body": next(iterator), "more_body": True}

    sent: list[Any] = []

    async def send(message: Any) -> None:
        sent.append(message)

    iterator = iter(chunks())
    asyncio.run(WsgiBridge(echo, 1)(SCOPE | {"headers": length}, receive, send))
    assert sent[0]["status"] == 413
    assert read == (0 if announced else 2 * MAX_BODY_BYTES)


def test_a_client_that_leaves_before_its_request_is_complete_reaches_no_application() -> None:
    def application(_environment: Any, _start: Callable[..., Any]) -> Iterable[bytes]:
        raise AssertionError("it was called")

    assert run(application, SCOPE, [b"a"], ends=False)[0] == 408


def test_requests_that_do_not_arrive_take_no_thread(echo: Flask) -> None:
    async def ask(receive: Callable[[], Awaitable[dict[str, Any]]]) -> int:
        status = 0

        async def send(message: Any) -> None:
            nonlocal status
            status = message.get("status", status)

        await bridge(SCOPE, receive, send)
        return status

    async def wait_forever() -> dict[str, Any]:
        await asyncio.Event().wait()
        raise AssertionError

    async def receive_at_once() -> dict[str, Any]:
        return {"type": "http.request"}

    async def ask_all() -> int:
        silent = [asyncio.create_task(ask(wait_forever)) for _ in range(50)]
        try:
            return await ask(receive_at_once)
        finally:
            for task in silent:
                task.cancel()

    bridge = WsgiBridge(echo, 1)
    assert asyncio.run(ask_all()) == 200


def test_an_iterable_of_the_application_is_closed() -> None:
    class Chunks(list[bytes]):
        is_closed = False

        def close(self) -> None:
            self.is_closed = True

    chunks = Chunks([b"a", b"b"])

    def application(_environment: Any, start: Callable[..., Any]) -> Iterable[bytes]:
        start("203 Fine", [("X-A", "b")])
        return chunks

    assert run(application, SCOPE, []) == (203, {b"X-A": b"b"}, b"ab")
    assert chunks.is_closed


def test_a_web_socket_is_refused(echo: Flask) -> None:
    sent: list[Any] = []

    async def send(message: Any) -> None:
        sent.append(message)

    async def receive() -> dict[str, Any]:
        raise AssertionError

    asyncio.run(WsgiBridge(echo, 1)({"type": "websocket"}, receive, send))
    assert sent == [{"type": "websocket.close"}]
