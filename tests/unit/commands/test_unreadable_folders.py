"""Private folders of another user: one line with the folder and its remedy, and no traceback."""

import json
import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest

from fleetgauge_local.distribution import KAFKA_LOCK
from fleetgauge_pipelines.io.jars import SPARK_LOCK, read_lock
from tests.read_only import WITHOUT_PRIVILEGES


def run(*arguments: str, cache: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [*WITHOUT_PRIVILEGES, sys.executable, "-m", *arguments],
        capture_output=True,
        text=True,
        env=os.environ | {"XDG_CACHE_HOME": str(cache)},
        timeout=60,
        check=False,
    )


def forbid(folder: Path) -> None:
    """Take away all rights on the folder and its files, as if they were of another user and private."""
    # What is inside first: it cannot be reached afterwards.
    for path in reversed((folder, *folder.rglob("*"))):
        path.chmod(0)


@pytest.fixture(params=["the folder", "its files"])
def cache(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    """A cache that has jars of another user."""
    jars = tmp_path / "cache" / "fleetgauge" / "jars"
    for jar in (*read_lock(SPARK_LOCK), *read_lock(KAFKA_LOCK)):
        file = jars / jar.path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.touch()
    forbid(tmp_path / "cache" if request.param == "the folder" else jars)
    return tmp_path / "cache"


@pytest.mark.parametrize(
    "command", [("fleetgauge_core", "fleet", "up"), ("fleetgauge_pipelines.io.jars", "fetch")]
)
def test_a_cache_of_another_user_is_one_line(command: Sequence[str], cache: Path) -> None:
    done = run(*command, cache=cache)
    assert done.returncode == 2
    assert done.stderr.splitlines()[-1].endswith(
        f"{cache}/fleetgauge/jars: not readable and writable for this user: "
        "set XDG_CACHE_HOME to a folder that is"
    )
    assert "Traceback" not in done.stderr


def test_doctor_lists_a_cache_of_another_user_as_missing(cache: Path) -> None:
    done = run("fleetgauge_core", "doctor", "--json", cache=cache)
    assert done.returncode == 1, done.stderr
    failed = {check["check"]: check["mend"] for check in json.loads(done.stdout) if check["ok"] is False}
    assert failed["Spark's jars"] == failed["Kafka's jars"] == "set XDG_CACHE_HOME to a folder that is"


def test_a_lake_of_another_user_is_not_an_empty_one(tmp_path: Path) -> None:
    lake = tmp_path / "lake"
    lake.mkdir()
    forbid(lake)
    done = run("fleetgauge_core", "slo", "--lake", str(lake), cache=tmp_path)
    assert done.returncode == 2
    assert "not readable for this user" in done.stderr
    assert "Traceback" not in done.stderr
