"""A process of `fleetgauge watch`."""

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from http.client import HTTPConnection
from pathlib import Path

from tests.ports import free_port
from tests.waiting import wait_until

DEADLINE_S = 60


@dataclass(frozen=True)
class Watch:
    """A process of `fleetgauge watch`."""

    port: int
    log: Path
    process: "subprocess.Popen[bytes]"

    def get(self, path: str) -> tuple[int, str]:
        connection = HTTPConnection("127.0.0.1", self.port, timeout=20)
        connection.request("GET", path)
        response = connection.getresponse()
        return response.status, response.read().decode()

    def is_ready(self) -> bool:
        try:
            return self.get("/readyz")[0] == 200
        except OSError:
            return False


@contextmanager
def run_watch(fleet_file: Path, name: str, *options: str, secret: str = "") -> Iterator[Watch]:
    """Run a watch until the end of the block; it logs beside the fleet file, and may not log the secret."""
    log, port = fleet_file.with_name(f"{name}.log"), free_port()
    with log.open("wb") as output:
        process = subprocess.Popen(
            [
                *(sys.executable, "-m", "fleetgauge_core", "watch", "--config", str(fleet_file)),
                *("--listen", f"127.0.0.1:{port}", *options),
            ],
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
    watch = Watch(port, log, process)
    try:
        wait_until(watch.is_ready, DEADLINE_S, f"{name}: {log.read_text()}")
        yield watch
        if process.poll() is None:
            process.terminate()
            assert process.wait(DEADLINE_S) == 0, log.read_text()[-3000:]
        assert "Traceback" not in log.read_text(), log.read_text()[-3000:]
        assert not secret or secret not in log.read_text()
    finally:
        process.kill()
        process.wait()
