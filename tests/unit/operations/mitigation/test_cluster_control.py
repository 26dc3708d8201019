"""The restart command of a cluster, run as a real process."""

import sys
import time
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path

import psutil
import pytest

from fleetgauge_core.fleet import Cluster, Telemetry
from fleetgauge_operations.mitigation import cluster_control
from fleetgauge_operations.mitigation.cluster_control import KafkaClusterControl
from fleetgauge_operations.mitigation.steps import RestartCommandError
from tests.waiting import wait_until

UNREACHABLE = "unreachable:1"
#: Starts a child that keeps running, as a broker does, and writes its process ID to a file.
LEAVES_CHILD_RUNNING = """
import subprocess, sys
child = subprocess.Popen([sys.executable, "-c", "import signal; signal.pause()"])
open(sys.argv[1], "w").write(str(child.pid))
"""
WAITS_FOR_CHILD = LEAVES_CHILD_RUNNING + "child.wait()"


def restart_broker_2(*command: str) -> None:
    """Restart broker 2 with a restart command."""
    cluster = Cluster.model_validate({"id": "orders", "bootstrap": UNREACHABLE, "restart": command})
    telemetry = Telemetry.model_validate({"bootstrap": UNREACHABLE})
    KafkaClusterControl(cluster, telemetry, lambda: datetime.now(UTC)).restart_broker(2)


def python_command(script: str, *arguments: str) -> Sequence[str]:
    return sys.executable, "-c", script, *arguments


def test_a_restart_command_is_given_the_broker_id_and_an_empty_standard_input() -> None:
    script = "import sys; assert sys.argv[1:] == ['2'] and not sys.stdin.read()"
    restart_broker_2(*python_command(script, "{broker}"))


def test_a_failed_restart_command_is_reported_with_its_last_line_of_output() -> None:
    script = "import sys; print('trying'); print('no such unit', file=sys.stderr); sys.exit(3)"
    with pytest.raises(RestartCommandError, match=r"python\S* exited with 3: no such unit"):
        restart_broker_2(*python_command(script))


def test_a_missing_restart_command_is_reported() -> None:
    with pytest.raises(RestartCommandError, match="No such file"):
        restart_broker_2("/no/such/command")


def test_a_broker_that_the_restart_command_leaves_running_is_not_waited_for(tmp_path: Path) -> None:
    began_s = time.monotonic()
    restart_broker_2(*python_command(LEAVES_CHILD_RUNNING, str(tmp_path / "child")))
    assert time.monotonic() - began_s < 300
    child = psutil.Process(int((tmp_path / "child").read_text()))
    assert child.is_running()
    child.kill()


def test_a_restart_command_that_takes_too_long_is_killed_with_its_children(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cluster_control, "_RESTART_TIMEOUT_S", 5)
    with pytest.raises(RestartCommandError, match="was killed after 5 s"):
        restart_broker_2(*python_command(WAITS_FOR_CHILD, str(tmp_path / "child")))
    child_id = int((tmp_path / "child").read_text())

    def has_ended() -> bool:
        return not psutil.pid_exists(child_id) or psutil.Process(child_id).status() == psutil.STATUS_ZOMBIE

    wait_until(has_ended, 30, "the command's child to end")
