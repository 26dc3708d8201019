import signal
import subprocess
import sys
from collections.abc import Iterator

import pytest

from fleetgauge_local.processes import ProcessIdentity, find_process, identify, terminate_all

SLEEP = [sys.executable, "-c", "import time; time.sleep(60)"]


@pytest.fixture
def sleeper() -> Iterator[subprocess.Popen[bytes]]:
    with subprocess.Popen(SLEEP) as process:
        yield process
        process.kill()


def test_terminating_by_identity_ends_the_process(sleeper: subprocess.Popen[bytes]) -> None:
    assert terminate_all([identify(sleeper.pid)], grace_s=5) == 1
    assert sleeper.wait(5) != 0


def test_a_suspended_process_is_ended_too(sleeper: subprocess.Popen[bytes]) -> None:
    sleeper.send_signal(signal.SIGSTOP)
    assert terminate_all([identify(sleeper.pid)], grace_s=5) == 1
    assert sleeper.wait(5) != 0


def test_a_later_process_with_the_same_id_is_not_signalled(sleeper: subprocess.Popen[bytes]) -> None:
    earlier = ProcessIdentity(sleeper.pid, identify(sleeper.pid).created - 100)
    assert find_process(earlier) is None
    assert terminate_all([earlier], grace_s=1) == 0
    assert sleeper.poll() is None


def test_a_process_that_ignores_sigterm_is_killed() -> None:
    ignore = "import signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN); print(1, flush=True)"
    stubborn = [sys.executable, "-c", f"{ignore}; time.sleep(60)"]
    with subprocess.Popen(stubborn, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        process.stdout.readline()
        assert terminate_all([identify(process.pid)], grace_s=0.2) == 1
        assert process.wait(5) == -signal.SIGKILL
