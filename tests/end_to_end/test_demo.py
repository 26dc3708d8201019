"""From a probe to the page: the demo on its own fleet, a broker hung, and what a person would see."""

import json
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psutil
import pytest
from deltalake import DeltaTable
from playwright.sync_api import Browser, expect

from fleetgauge_core.fleet import load_fleet
from fleetgauge_core.tables import CLUSTER_WEEKS, HEALTH_EVENTS
from tests.oracle.evaluate_run import main as evaluate

RUN_S = 170
DEADLINE_S = 1200
ON_THE_PAGE_MS = 400_000


class Demo:
    """The command, as a script would call it."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        arguments = [
            "demo",
            "--for",
            f"{RUN_S}s",
            "--fault",
            "hang",
            "--json",
            "--dir",
            str(directory),
            "--port",
            "0",
            "--no-history",
        ]
        self.process = subprocess.Popen(
            [sys.executable, "-m", "fleetgauge_core", *arguments],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        self.told: list[str] = []

    def wait_for_line(self, start: str) -> str:
        """The rest of the first line on stderr that starts so."""
        assert self.process.stderr
        for line in self.process.stderr:
            self.told.append(line)
            if line.startswith(start):
                return line.removeprefix(start).strip()
        raise AssertionError(f"the demo ended without saying {start!r}:\n{''.join(self.told)}")

    def result(self) -> dict[str, Any]:
        out, err = self.process.communicate(timeout=DEADLINE_S)
        assert self.process.returncode == 0, "".join(self.told) + err + out
        found: dict[str, Any] = json.loads(out)
        return found


@pytest.fixture(scope="module")
def demo(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Demo]:
    running = Demo(tmp_path_factory.mktemp("demo"))
    yield running
    running.process.send_signal(signal.SIGINT)
    running.process.communicate(timeout=DEADLINE_S)


@pytest.mark.timeout(DEADLINE_S)
def test_a_hung_broker_is_named_on_the_page_and_its_minutes_reach_the_week(
    demo: Demo, browser: Browser
) -> None:
    url = demo.wait_for_line("Dashboard: ")
    children = psutil.Process(demo.process.pid).children(recursive=True)
    demo.wait_for_line("detected after")

    page = browser.new_page()
    page.goto(f"{url}alerts")
    # The event reaches the page through its topic, Spark and Delta; by then the alert may be history.
    expect(page.get_by_role("main")).to_contain_text("orders broker 3", timeout=ON_THE_PAGE_MS)
    page.goto(url)
    expect(page.get_by_role("grid")).to_contain_text("payments", timeout=ON_THE_PAGE_MS)
    page.close()

    result = demo.result()
    assert (result["clusters"], result["brokers"]) == (2, 6)
    assert result["fault"] == {"cluster": "orders", "broker": 3, "kind": "hang"}
    assert result["fault_named"] == {"cluster": "orders", "broker": 3}
    assert result["fault_named_after_s"] <= 30
    assert result["page_status"] == 200
    assert result["quarantined"] == 0
    assert result["probe_minutes"] >= 24
    assert result["cluster_weeks"] == 2

    deadline = time.monotonic() + 30
    while (left := [child for child in children if child.is_running()]) and time.monotonic() < deadline:
        time.sleep(0.2)
    assert not left, "the demo left processes running"


def test_the_weeks_of_the_run_are_what_the_oracle_makes_of_its_records(demo: Demo) -> None:
    fleet_file = demo.directory / "fleet.yaml"
    lake = load_fleet(fleet_file).lake
    weeks = DeltaTable(f"{lake}/{CLUSTER_WEEKS.path}").to_pyarrow_table().to_pylist()
    assert len(weeks) == 2
    # A stream that is asked to end breaks off a batch that takes long: its records are there without weeks.
    taken_by = max(row["computed_at"] for row in weeks).isoformat()
    assert evaluate([lake, "--fleet", str(fleet_file), "--compare", "--taken-by", taken_by]) == 0


def test_the_hang_and_the_return_are_kept_as_health_events(demo: Demo) -> None:
    lake = load_fleet(demo.directory / "fleet.yaml").lake
    rows = DeltaTable(f"{lake}/{HEALTH_EVENTS.path}").to_pyarrow_table().to_pylist()
    named = [(row["cluster_id"], row["broker_id"]) for row in rows if row["to_state"] == "BROKER_DOWN"]
    assert named == [("orders", 3)]
    assert {row["to_state"] for row in rows if row["from_state"] == "BROKER_DOWN"} == {"HEALTHY"}
