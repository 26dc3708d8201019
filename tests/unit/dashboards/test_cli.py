"""The command: one line for wrong input, a URL for a person or a script, a clean end."""

import json
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.request import urlopen

import pytest
from click.testing import CliRunner

from fleetgauge_dashboards.cli import dash

FLEET = "lake: ./lake\nclusters: [{id: orders-eu, bootstrap: 'orders-eu:9092'}]\n"


def test_help_has_an_example() -> None:
    assert "fleetgauge dash --config fleet.yaml" in CliRunner().invoke(dash, ["--help"]).output


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        ([], "Give --lake DIR or --config fleet.yaml"),
        (["--config", "none.yaml"], "none.yaml: No such file or directory"),
        (["--lake", "x", "--port", "66000"], "66000"),
        (["--lake", "x", "--config", "a.yaml", "--config", "b.yaml"], "--lake goes with one --config"),
    ],
)
def test_wrong_input_is_one_line_and_exit_code_2(arguments: list[str], says: str) -> None:
    result = CliRunner().invoke(dash, arguments, env={"COLUMNS": "200"})
    assert result.exit_code == 2
    assert says in result.output
    assert "Traceback" not in result.output


def test_two_fleets_of_one_name_are_refused(tmp_path: Path) -> None:
    for name in ("a.yaml", "b.yaml"):
        (tmp_path / name).write_text(f"name: same\n{FLEET}")
    arguments = [part for name in ("a.yaml", "b.yaml") for part in ("--config", str(tmp_path / name))]
    result = CliRunner().invoke(dash, arguments, env={"COLUMNS": "400"})
    assert result.exit_code == 2
    assert "name 'same' is another fleet's as well: give each its own" in result.output


@contextmanager
def _serving(*arguments: str) -> Iterator[subprocess.Popen[str]]:
    command = [sys.executable, "-c", "from fleetgauge_dashboards.cli import dash; dash()", *arguments]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        try:
            yield process
        finally:
            process.kill()


def test_it_prints_one_url_serves_it_and_ends_when_told(tmp_path: Path) -> None:
    (tmp_path / "fleet.yaml").write_text(FLEET)
    with _serving("--config", str(tmp_path / "fleet.yaml"), "--port", "0", "--json") as process:
        assert process.stdout is not None
        url = json.loads(process.stdout.readline())["url"]
        with urlopen(f"{url}livez", timeout=60) as answer:
            assert answer.status == 200
        process.send_signal(signal.SIGTERM)
        out, said = process.communicate(timeout=60)
        assert (process.returncode, out) == (0, "")
        assert f"{tmp_path / 'lake'} at {url}" in said.replace("\n", "")


def test_a_port_in_use_is_one_line(tmp_path: Path) -> None:
    with _serving("--lake", str(tmp_path), "--port", "0", "--json") as first:
        assert first.stdout is not None
        port = json.loads(first.stdout.readline())["url"].rstrip("/").rpartition(":")[2]
        with _serving("--lake", str(tmp_path), "--port", port) as second:
            _, said = second.communicate(timeout=120)
            assert second.returncode == 2
            assert said.startswith(f"fleetgauge: cannot listen on 127.0.0.1 port {port}: ")


def test_the_pages_need_no_spark() -> None:
    code = "import sys, fleetgauge_dashboards.app; sys.exit({'pyspark', 'delta'} & set(sys.modules) != set())"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
