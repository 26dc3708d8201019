"""The demo's second fleet, smaller here: made once, kept, and found again weeks later."""

from datetime import date
from pathlib import Path

import pytest

from fleetgauge_core.fleet import load_fleet
from fleetgauge_local import simulated_history as demo_history
from fleetgauge_local.errors import LocalFleetError
from fleetgauge_local.simulated_history import simulate_history


def test_it_is_made_once_and_kept_for_later_weeks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(demo_history, "CLUSTERS", 2)
    monkeypatch.setattr(demo_history, "WEEKS", 2)
    log, told = tmp_path / "logs" / "simulate.log", list[str]()

    config = simulate_history(tmp_path, log, date(2026, 3, 5), told.append)
    fleet = load_fleet(config)
    assert (len(fleet.clusters), fleet.simulated) == (2, True)
    assert config.parent.name == "2026-03-02"
    made = {path: path.stat().st_mtime_ns for path in config.parent.rglob("*")}

    assert simulate_history(tmp_path, log, date(2026, 4, 1), told.append) == config
    assert {path: path.stat().st_mtime_ns for path in config.parent.rglob("*")} == made
    assert "2 weeks of simulated history" in told[0]


def test_what_cannot_be_made_is_one_line_with_the_log(tmp_path: Path) -> None:
    (tmp_path / "history" / "2026-03-02").mkdir(parents=True)
    (tmp_path / "history" / "2026-03-02" / "somebodys.txt").touch()
    with pytest.raises(
        LocalFleetError, match=r"simulating the history failed: see .*simulate.log, or use --no-history"
    ):
        simulate_history(tmp_path, tmp_path / "simulate.log", date(2026, 3, 5), lambda _: None)
    assert "somebodys.txt was not written by a simulation" in (tmp_path / "simulate.log").read_text()
