"""The command: one line for wrong input, a URL for a person or a script, a clean end."""

import json
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from urllib.request import Request, urlopen

import psutil
import pytest
from click.testing import CliRunner

from fleetgauge_core import __version__
from fleetgauge_dashboards.cli import _fleets, dash
from fleetgauge_dashboards.security_headers import TOKEN_COOKIE, TOKEN_HEADER
from tests.browser.lake import write
from tests.exposition import samples
from tests.waiting import wait_until

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


def test_regions_mirrors_and_pairs_are_the_fleet_files(tmp_path: Path) -> None:
    (tmp_path / "fleet.yaml").write_text(
        "clusters:\n"
        "  - {id: north, bootstrap: 'n:1', region: eu-north}\n"
        "  - {id: south, bootstrap: 's:1'}\n"
        "recovery:\n"
        "  mirrors: [{source: north, destination: south}]\n"
        "  groups:\n"
        "    - {groups: a, active: north, passive: south}\n"
        "    - {groups: b, active: north, passive: south}\n"
    )
    (shown,) = _fleets(None, (tmp_path / "fleet.yaml",))
    assert shown.regions == {"north": "eu-north"}
    assert shown.mirrors == shown.pairs == (("north", "south"),)


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


def test_two_workers_answer_and_count_together(tmp_path: Path) -> None:
    write(tmp_path, datetime.now(UTC))
    arguments = ("--lake", str(tmp_path), "--port", "0", "--workers", "2", "--json")
    with _serving(*arguments) as process:
        assert process.stdout is not None
        url = json.loads(process.stdout.readline())["url"]
        asked = 0

        def both_have_answered() -> bool:
            nonlocal asked
            asked += _fleet_page(url)
            return len({child.pid for child in psutil.Process(process.pid).children()}) == 2 and asked >= 12

        wait_until(both_have_answered, 120, "two workers", 0.01)
        with urlopen(f"{url}metrics", timeout=60) as answer:
            text = answer.read().decode()
        assert samples(text, "fleetgauge_dash_answer_duration_seconds_count") == {("fleet",): asked}
        assert samples(text, "fleetgauge_build_info") == {("dash", __version__): 1}
        process.send_signal(signal.SIGTERM)
        assert process.wait(60) == 0
        assert not psutil.pid_exists(process.pid)


def _fleet_page(url: str) -> int:
    """Asked for as a browser does; how many answers that was."""
    cookie = f"{TOKEN_COOKIE}=token"
    headers = {"Content-Type": "application/json", "Cookie": cookie, TOKEN_HEADER: "token"}
    with urlopen(f"{url}_dash-dependencies", timeout=60) as answer:
        own = next(one["output"] for one in json.load(answer) if "fleet-grid.rowData" in one["output"])
    values = {"url.pathname": "/", "url.search": "", "tick.n_intervals": 1, "scheme.data": "light"}
    question = {
        "output": own,
        "outputs": [_named(slot) for slot in own.strip(".").split("...")],
        "inputs": [_named(slot) | {"value": value} for slot, value in values.items()],
        "state": [_named("fleet-drawn.data") | {"value": None}],
        "changedPropIds": ["url.pathname"],
    }
    asked = Request(f"{url}_dash-update-component", json.dumps(question).encode(), headers)
    with urlopen(asked, timeout=60) as answer:
        return int(answer.status == 200)


def _named(slot: str) -> dict[str, object]:
    component, _, name = slot.rpartition(".")
    return {"id": component, "property": name}


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
