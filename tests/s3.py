"""A server of the S3 protocol on a loopback port."""

import socket
import subprocess
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from urllib.request import Request, urlopen

from tests.ports import free_port

SERVER = Path(__file__).parents[1] / ".venv/s3/bin/moto_server"
READY_S = 30


@dataclass(frozen=True, slots=True)
class S3:
    """A running server and the environment variables that clients need to reach it."""

    endpoint: str

    @property
    def environment(self) -> Mapping[str, str]:
        return {
            "AWS_ENDPOINT_URL": self.endpoint,
            "AWS_ALLOW_HTTP": "true",
            "AWS_ACCESS_KEY_ID": "AKIAEXAMPLE",
            "AWS_SECRET_ACCESS_KEY": "kept-to-ourselves",
            "AWS_REGION": "us-east-1",
        }

    def make_bucket(self, name: str) -> None:
        self._send("PUT", name)

    def upload(self, folder: Path, to: str) -> None:
        for file in folder.rglob("*"):
            if file.is_file():
                self._send("PUT", f"{to}/{file.relative_to(folder)}", file.read_bytes())

    @contextmanager
    def rejecting_credentials(self) -> Iterator[None]:
        """Make the server reject all credentials within the context."""
        self._send("POST", "moto-api/reset-auth", b"0")
        try:
            yield
        finally:
            self._send("POST", "moto-api/reset-auth", b"inf")

    def _send(self, method: str, path: str, body: bytes = b"") -> None:
        headers = {"Content-Type": "application/octet-stream"}
        with urlopen(Request(f"{self.endpoint}/{path}", body, headers, method=method), timeout=READY_S):
            pass


@contextmanager
def run_server() -> Iterator[S3]:
    port = free_port()
    arguments = [str(SERVER), "-H", "127.0.0.1", "-p", str(port)]
    process = subprocess.Popen(arguments, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        _wait_for(port, process)
        yield S3(f"http://127.0.0.1:{port}")
    finally:
        process.terminate()
        process.wait(10)


def _wait_for(port: int, process: subprocess.Popen[bytes]) -> None:
    deadline = time.monotonic() + READY_S
    while process.poll() is None and time.monotonic() < deadline:
        with socket.socket() as probe:
            if probe.connect_ex(("127.0.0.1", port)) == 0:
                return
        time.sleep(0.1)
    raise RuntimeError(f"the S3 server did not start within {READY_S} s")
