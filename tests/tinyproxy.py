"""A real HTTP proxy, which may demand a login."""

import shutil
import socket
import ssl
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest

from tests.ports import free_port
from tests.waiting import wait_until

PATIENCE_S = 30
NAME = "tinyproxy"
#: What the login of `RunningProxy` is, if it demands one.
USERNAME, PASSWORD = "fleet", "gauge.secret"


def find_program() -> str:
    """Return the program; skip the test where there is none."""
    unpacked = Path(sys.prefix, "debian/usr/bin", NAME)
    if program := shutil.which(NAME) or (str(unpacked) if unpacked.exists() else None):
        return program
    pytest.skip(f"{NAME} is missing: apt-get install {NAME}-bin")


class RunningProxy:
    """A proxy with a fixed address; `running` starts the process."""

    def __init__(self, folder: Path, demands_login: bool = False) -> None:
        self._program = find_program()
        self.port = free_port()
        self._log = folder / "tinyproxy.log"
        self._configuration = folder / "tinyproxy.conf"
        lines = [
            f"Port {self.port}",
            "Listen 127.0.0.1",
            "Timeout 60",
            "Allow 127.0.0.1",
            f'LogFile "{self._log}"',
            "LogLevel Connect",
            f"BasicAuth {USERNAME} {PASSWORD}" if demands_login else "",
        ]
        self._configuration.write_text("\n".join(lines) + "\n")

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    @property
    def url_with_login(self) -> str:
        """The URL with a login, one of whose characters is percent-encoded."""
        return f"http://{USERNAME}:{PASSWORD.replace('.', '%2E')}@127.0.0.1:{self.port}"

    @property
    def requests(self) -> list[str]:
        """The request lines that the proxy has logged, such as `CONNECT 127.0.0.1:1234 HTTP/1.0`."""
        marker = "): "
        lines = self._log.read_text().splitlines()
        return [line.split(marker, 1)[1] for line in lines if "Request (file descriptor" in line]

    @contextmanager
    def running(self) -> Iterator["RunningProxy"]:
        process = subprocess.Popen(
            [self._program, "-d", "-c", str(self._configuration)],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        try:
            wait_until(self._is_ready, PATIENCE_S, "the proxy")
            yield self
        finally:
            process.terminate()
            process.wait(PATIENCE_S)

    def _is_ready(self) -> bool:
        try:
            socket.create_connection(("127.0.0.1", self.port), timeout=5).close()
        except OSError:
            return False
        return True


@contextmanager
def tls_in_front_of(proxy: RunningProxy, context: ssl.SSLContext) -> Iterator[int]:
    """Listen with TLS in front of a proxy, which knows none itself; return the port."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        thread = threading.Thread(target=_serve_tls, args=(server, context, proxy.port))
        thread.start()
        try:
            yield int(server.getsockname()[1])
        finally:
            server.shutdown(socket.SHUT_RDWR)
            thread.join(PATIENCE_S)


def _serve_tls(server: socket.socket, context: ssl.SSLContext, port: int) -> None:
    """Forward connections until the server is shut down."""
    while True:
        try:
            accepted, _ = server.accept()
        except OSError:
            return
        with (
            suppress(OSError),
            context.wrap_socket(accepted, server_side=True) as client,
            socket.create_connection(("127.0.0.1", port)) as upstream,
        ):
            back = threading.Thread(target=_forward, args=(upstream, client))
            back.start()
            _forward(client, upstream)
            back.join(PATIENCE_S)


def _forward(source: socket.socket, target: socket.socket) -> None:
    with suppress(OSError):
        while data := source.recv(65536):
            target.sendall(data)
    with suppress(OSError):
        target.shutdown(socket.SHUT_RDWR)
