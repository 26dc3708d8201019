"""The demo from probes to pages: a broker of its fleet hangs, and the page shows the alert."""

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
PAGE_TIMEOUT_MS = 400_000


class Demo:
    """The demo command as a process."""

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
        self.stderr_lines: list[str] = []

    def wait_for_line(self, start: str) -> str:
        """Return the rest of the first line on stderr that starts with ``start``."""
        assert self.process.stderr
        for line in self.process.stderr:
            self.stderr_lines.append(line)
            if line.startswith(start):
                return line.removeprefix(start).strip()
        raise AssertionError(f"the demo ended without printing {start!r}:\n{''.join(self.stderr_lines)}")

    def wait_for_result(self) -> dict[str, Any]:
        out, err = self.process.communicate(timeout=DEADLINE_S)
        assert self.process.returncode == 0, "".join(self.stderr_lines) + err + out
        result: dict[str, Any] = json.loads(out)
        return result


@pytest.fixture(scope="module")
def demo(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Demo]:
    running = Demo(tmp_path_factory.mktemp("demo"))
    yield running
    running.process.send_signal(signal.SIGINT)
    running.process.communicate(timeout=DEADLINE_S)


@pytest.mark.timeout(DEADLINE_S)
def test_a_hung_broker_is_reported_on_the_page_and_its_minutes_reach_the_week(
    demo: Demo, browser: Browser
) -> None:
    url = demo.wait_for_line("Dashboard: ")
    operator_url = demo.wait_for_line("To acknowledge alerts and add corrections, open ")
    children = psutil.Process(demo.process.pid).children(recursive=True)
    demo.wait_for_line("detected after")

    page = browser.new_page()
    page.goto(operator_url)
    expect(page).to_have_url(url)
    page.goto(f"{url}alerts")
    # The event reaches the page through its topic, Spark and Delta; the alert may be resolved by then.
    expect(page.get_by_role("main")).to_contain_text("orders broker 3", timeout=PAGE_TIMEOUT_MS)
    page.goto(url)
    expect(page.get_by_role("grid")).to_contain_text("payments", timeout=PAGE_TIMEOUT_MS)
    page.close()

    result = demo.wait_for_result()
    assert (result["clusters"], result["brokers"]) == (2, 6)
    assert result["fault"] == {"cluster": "orders", "broker": 3, "kind": "hang"}
    assert result["fault_named"] == {"cluster": "orders", "broker": 3}
    assert result["fault_named_after_s"] <= 30
    assert result["page_url"] == url
    assert result["page_status"] == 200
    assert result["quarantined"] == 0
    assert result["probe_minutes"] >= 24
    assert result["cluster_weeks"] == 2

    deadline = time.monotonic() + 30
    while (left := [child for child in children if child.is_running()]) and time.monotonic() < deadline:
        time.sleep(0.2)
    assert not left, "the demo left processes running"


def test_the_weeks_of_the_run_equal_those_of_the_oracle(demo: Demo) -> None:
    fleet_file = demo.directory / "fleet.yaml"
    lake = load_fleet(fleet_file).lake
    weeks = DeltaTable(f"{lake}/{CLUSTER_WEEKS.path}").to_pyarrow_table().to_pylist()
    assert len(weeks) == 2
    # A stream that is stopped interrupts a long batch, whose records are then in bronze but not in weeks.
    taken_by = max(row["computed_at"] for row in weeks).isoformat()
    assert evaluate([lake, "--fleet", str(fleet_file), "--compare", "--taken-by", taken_by]) == 0


def test_the_hang_and_the_recovery_are_stored_as_health_events(demo: Demo) -> None:
    lake = load_fleet(demo.directory / "fleet.yaml").lake
    rows = DeltaTable(f"{lake}/{HEALTH_EVENTS.path}").to_pyarrow_table().to_pylist()
    down = [(row["cluster_id"], row["broker_id"]) for row in rows if row["to_state"] == "BROKER_DOWN"]
    assert down == [("orders", 3)]
    assert {row["to_state"] for row in rows if row["from_state"] == "BROKER_DOWN"} == {"HEALTHY"}
