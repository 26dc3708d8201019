"""The command that restarts a broker, as supervisors behave."""

import sys
import time
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path

import psutil
import pytest

from fleetgauge_core.fleet import Cluster, Telemetry
from fleetgauge_operations.mitigation import kafka_cluster
from fleetgauge_operations.mitigation.executor import RestartCommandError
from fleetgauge_operations.mitigation.kafka_cluster import KafkaClusterControl
from tests.waiting import wait_until

#: Leaves a child behind that writes its id, as who starts a broker does.
LEAVES = """
import subprocess, sys
child = subprocess.Popen([sys.executable, "-c", "import signal; signal.pause()"])
open(sys.argv[1], "w").write(str(child.pid))
"""
WAITS = LEAVES + "child.wait()"


def restart(*command: str) -> None:
    cluster = Cluster.model_validate({"id": "orders", "bootstrap": "nobody:1", "restart": command})
    telemetry = Telemetry.model_validate({"bootstrap": "nobody:1"})
    KafkaClusterControl(cluster, telemetry, lambda: datetime.now(UTC)).restart_broker(2)


def python(script: str, *arguments: str) -> Sequence[str]:
    return sys.executable, "-c", script, *arguments


def test_it_is_told_the_broker_and_reads_nothing() -> None:
    restart(*python("import sys; assert sys.argv[1:] == ['2'] and not sys.stdin.read()", "{broker}"))


def test_its_last_line_says_why_it_failed() -> None:
    with pytest.raises(RestartCommandError, match=r"python\S* exited with 3: no such unit"):
        restart(*python("import sys; print('trying'); print('no such unit', file=sys.stderr); sys.exit(3)"))
    with pytest.raises(RestartCommandError, match="No such file"):
        restart("/no/such/command")


def test_a_broker_that_it_leaves_running_is_not_waited_for(tmp_path: Path) -> None:
    began_s = time.monotonic()
    restart(*python(LEAVES, str(tmp_path / "child")))
    assert time.monotonic() - began_s < 300
    child = psutil.Process(int((tmp_path / "child").read_text()))
    assert child.is_running()
    child.kill()


def test_one_that_takes_too_long_is_ended_with_all_that_it_started(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(kafka_cluster, "_RESTART_TIMEOUT_S", 5)
    with pytest.raises(RestartCommandError, match="was killed after 5 s"):
        restart(*python(WAITS, str(tmp_path / "child")))
    child = int((tmp_path / "child").read_text())
    wait_until(
        lambda: not psutil.pid_exists(child) or psutil.Process(child).status() == psutil.STATUS_ZOMBIE,
        30,
        "its child to end",
    )
