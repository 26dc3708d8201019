import signal
import subprocess
import sys
from collections.abc import Iterator

import pytest

from fleetgauge_local.processes import Identity, end, find, identify

SLEEP = [sys.executable, "-c", "import time; time.sleep(60)"]


@pytest.fixture
def sleeper() -> Iterator[subprocess.Popen[bytes]]:
    with subprocess.Popen(SLEEP) as process:
        yield process
        process.kill()


def test_a_process_is_ended_by_its_identity(sleeper: subprocess.Popen[bytes]) -> None:
    assert end([identify(sleeper.pid)], grace_s=5) == 1
    assert sleeper.wait(5) != 0


def test_a_stopped_process_is_ended_too(sleeper: subprocess.Popen[bytes]) -> None:
    sleeper.send_signal(signal.SIGSTOP)
    assert end([identify(sleeper.pid)], grace_s=5) == 1
    assert sleeper.wait(5) != 0


def test_a_process_that_got_the_same_id_later_is_left_alone(sleeper: subprocess.Popen[bytes]) -> None:
    earlier = Identity(sleeper.pid, identify(sleeper.pid).created - 100)
    assert find(earlier) is None
    assert end([earlier], grace_s=1) == 0
    assert sleeper.poll() is None


def test_a_process_that_ignores_the_request_is_killed() -> None:
    ignore = "import signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN); print(1, flush=True)"
    stubborn = [sys.executable, "-c", f"{ignore}; time.sleep(60)"]
    with subprocess.Popen(stubborn, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        process.stdout.readline()
        assert end([identify(process.pid)], grace_s=0.2) == 1
        assert process.wait(5) == -signal.SIGKILL
