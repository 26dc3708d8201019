"""POST requests beside the health endpoints."""

import json
import socket
from concurrent.futures import Future
from http import HTTPStatus
from http.client import HTTPConnection
from threading import Timer
from typing import Any

import pytest

from fleetgauge_core.runtime.cli import ListenAddress
from fleetgauge_core.runtime.health_server import ProcessHealth
from fleetgauge_core.runtime.posts import Post, PostResponse
from tests.waiting import wait_until

FREE_PORT = ListenAddress("127.0.0.1", 0)


def _echo(post: Post) -> PostResponse | Future[PostResponse]:
    """Answer with what was received; at /later from another thread, a moment after."""
    document = {"path": post.path, "bytes": len(post.body), "kind": post.headers.get("x-kind")}
    if post.path == "/broken":
        raise ValueError("a fault of the handler")
    answer = PostResponse(HTTPStatus.ACCEPTED, document, {"Retry-After": "1"})
    if post.path != "/later":
        return answer
    promised: Future[PostResponse] = Future()
    Timer(0.2, promised.set_result, (answer,)).start()
    return promised


def _post(
    at: ListenAddress, path: str, body: bytes, headers: dict[str, str] | None = None
) -> tuple[Any, Any]:
    connection = HTTPConnection(at.host, at.port, timeout=20)
    connection.request("POST", path, body, headers or {})
    response = connection.getresponse()
    document = json.loads(response.read() or b"{}")
    connection.close()
    return response, document


def test_a_post_is_answered_by_its_handler_at_once_or_later() -> None:
    with ProcessHealth("watch", 60).serve(FREE_PORT, _echo) as at:
        for path in ("/now", "/later"):
            for body in (b"", b"x", b"x" * 65_536):
                response, document = _post(at, f"{path}?a=1", body, {"X-Kind": "test"})
                assert (response.status, response.headers["Retry-After"]) == (202, "1")
                assert document == {"path": path, "bytes": len(body), "kind": "test"}
        assert b" 200 " in _exchange(at, b"GET /livez HTTP/1.1\r\n\r\n")
        assert b"Allow: GET, HEAD, POST" in _exchange(at, b"PUT /livez HTTP/1.1\r\n\r\n")


def test_a_post_that_is_too_long_is_refused_though_all_of_it_is_sent() -> None:
    with ProcessHealth("watch", 60).serve(FREE_PORT, _echo) as at:
        for length in (65_537, 1_000_000):
            response, document = _post(at, "/now", b"x" * length)
            assert response.status == 413
            assert document == {"error": f"{length} bytes, at most 65536 are read"}


def test_a_length_that_is_no_number_of_a_computer_is_refused() -> None:
    with ProcessHealth("watch", 60).serve(FREE_PORT, _echo) as at:
        head = b"POST /now HTTP/1.1\r\nContent-Length: " + b"9" * 5000 + b"\r\n\r\n"
        assert b" 413 " in _exchange(at, head)


@pytest.mark.parametrize("header", ["", "Transfer-Encoding: chunked\r\n", "Content-Length: -1\r\n"])
def test_a_post_without_a_length_is_refused(header: str) -> None:
    with ProcessHealth("watch", 60).serve(FREE_PORT, _echo) as at:
        assert b" 411 " in _exchange(at, f"POST /now HTTP/1.1\r\n{header}\r\nabc".encode())


def test_a_client_that_waits_for_a_go_ahead_gets_it() -> None:
    head = b"POST /now HTTP/1.1\r\nContent-Length: 3\r\nExpect: 100-continue\r\n\r\n"
    with (
        ProcessHealth("watch", 60).serve(FREE_PORT, _echo) as at,
        socket.create_connection((at.host, at.port), 20) as client,
    ):
        client.sendall(head)
        assert client.recv(100).startswith(b"HTTP/1.1 100 ")
        client.sendall(b"abc")
        assert b'"bytes": 3' in _read_all(client)


def test_a_client_that_has_sent_all_and_closed_its_side_is_answered() -> None:
    request = b"POST /later HTTP/1.1\r\nContent-Length: 3\r\n\r\nabc"
    with ProcessHealth("watch", 60).serve(FREE_PORT, _echo) as at:
        assert b" 202 " in _exchange(at, request, ends=True)


def test_a_handler_that_fails_is_logged_and_keeps_nobody_waiting(caplog: pytest.LogCaptureFixture) -> None:
    with ProcessHealth("watch", 60).serve(FREE_PORT, _echo) as at:
        assert _exchange(at, b"POST /broken HTTP/1.1\r\nContent-Length: 1\r\n\r\na") == b""
        assert b" 200 " in _exchange(at, b"GET /livez HTTP/1.1\r\n\r\n")
    assert "a health request failed" in caplog.text


def test_a_server_that_stops_leaves_no_answer_that_comes_later_unhandled() -> None:
    answers: list[Future[PostResponse]] = []

    def promise(_: Post) -> Future[PostResponse]:
        answers.append(Future())
        return answers[0]

    with ProcessHealth("watch", 60).serve(FREE_PORT, promise) as at:
        client = socket.create_connection((at.host, at.port), 20)
        client.sendall(b"POST /x HTTP/1.1\r\nContent-Length: 1\r\n\r\na")
        wait_until(lambda: bool(answers), 20, "the request")
    answers[0].set_result(PostResponse(HTTPStatus.OK, {}))
    client.close()


def _exchange(at: ListenAddress, request: bytes, *, ends: bool = False) -> bytes:
    with socket.create_connection((at.host, at.port), 20) as client:
        client.sendall(request)
        if ends:
            client.shutdown(socket.SHUT_WR)
        return _read_all(client)


def _read_all(client: socket.socket) -> bytes:
    received = b""
    while data := client.recv(65_536):
        received += data
    return received
