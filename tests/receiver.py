"""A webhook receiver: an HTTP server that records the POST requests it gets."""

import json
import ssl
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, NamedTuple

from fleetgauge_local.layout import HOST


@dataclass(frozen=True, slots=True)
class Post:
    """A received request; ``at_s`` is its time by the monotonic clock, ``headers`` have lower-case names."""

    at_s: float
    path: str
    content_type: str
    body: Any
    headers: Mapping[str, str] = field(default_factory=dict)


class Answer(NamedTuple):
    status: int
    body: bytes = b""
    location: str | None = None


class Receiver:
    """Responds with the queued ``answers`` (statuses or full responses) in order, then with status 200.

    With a ``context`` it speaks TLS.
    """

    def __init__(self, context: ssl.SSLContext | None = None) -> None:
        self.posts: list[Post] = []
        self.answers: list[int | Answer] = []
        receiver = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
                headers = {name.lower(): value for name, value in self.headers.items()}
                receiver.posts.append(
                    Post(time.monotonic(), self.path, headers["content-type"], body, headers)
                )
                answer = receiver.answers.pop(0) if receiver.answers else 200
                answer = Answer(answer) if isinstance(answer, int) else answer
                self.send_response(answer.status)
                if answer.location:
                    self.send_header("Location", answer.location)
                self.send_header("Content-Length", str(len(answer.body)))
                self.end_headers()
                self.wfile.write(answer.body)

            def log_message(self, format: str, *args: object) -> None:
                """Suppress the server's request log."""

        self._server = ThreadingHTTPServer((HOST, 0), Handler)
        self._scheme = "http"
        if context:
            self._scheme = "https"
            self._server.socket = context.wrap_socket(
                self._server.socket, server_side=True, do_handshake_on_connect=False
            )

    @property
    def port(self) -> int:
        return int(self._server.server_address[1])

    @property
    def url(self) -> str:
        return f"{self._scheme}://{HOST}:{self.port}/hook"

    @property
    def bodies(self) -> list[Any]:
        """The request bodies in order of arrival."""
        return [post.body for post in list(self.posts)]

    @contextmanager
    def listening(self) -> Iterator["Receiver"]:
        thread = threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.05})
        thread.start()
        try:
            yield self
        finally:
            self._server.shutdown()
            thread.join()
            self._server.server_close()
