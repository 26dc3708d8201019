"""The demo's simulated history, smaller here: it is written once and reused weeks later."""

from datetime import date
from pathlib import Path

import pytest

from fleetgauge_core.fleet import load_fleet
from fleetgauge_local import simulated_history as demo_history
from fleetgauge_local.errors import LocalFleetError
from fleetgauge_local.simulated_history import simulate_history


def test_the_history_is_written_once_and_reused_in_later_weeks(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(demo_history, "CLUSTERS", 2)
    monkeypatch.setattr(demo_history, "WEEKS", 2)
    log, messages = tmp_path / "logs" / "simulate.log", list[str]()

    config = simulate_history(tmp_path, log, date(2026, 3, 5), messages.append)
    fleet = load_fleet(config)
    assert (len(fleet.clusters), fleet.simulated) == (2, True)
    assert config.parent.name == "2026-03-02"
    written = {path: path.stat().st_mtime_ns for path in config.parent.rglob("*")}

    assert simulate_history(tmp_path, log, date(2026, 4, 1), messages.append) == config
    assert {path: path.stat().st_mtime_ns for path in config.parent.rglob("*")} == written
    assert "2 weeks of simulated history" in messages[0]


def test_a_failed_simulation_is_an_error_with_the_path_of_the_log(tmp_path: Path) -> None:
    (tmp_path / "history" / "2026-03-02").mkdir(parents=True)
    (tmp_path / "history" / "2026-03-02" / "somebodys.txt").touch()
    with pytest.raises(
        LocalFleetError, match=r"simulating the history failed: see .*simulate.log, or use --no-history"
    ):
        simulate_history(tmp_path, tmp_path / "simulate.log", date(2026, 3, 5), lambda _: None)
    assert "somebodys.txt was not written by a simulation" in (tmp_path / "simulate.log").read_text()
