"""The demo's simulated fleet: 20 clusters over 35 weeks, generated once and kept in the user's cache."""

import subprocess
import sys
from collections.abc import Callable
from datetime import date, timedelta
from pathlib import Path

from fleetgauge_local.errors import LocalFleetError

CLUSTERS, WEEKS, SEED = 20, 35, 1


def simulate_history(cache: Path, log: Path, today: date, progress: Callable[[str], None]) -> Path:
    """Simulate the fleet unless the cache holds one, and return the path of its fleet.yaml.

    A cached history is reused even if it ends in an earlier week. ``log`` receives the simulator's output.

    Raises: LocalFleetError when the simulation fails.
    """
    root = cache / "history"
    monday = today - timedelta(days=today.weekday())
    end = max((folder.name for folder in root.glob("????-??-??")), default=monday.isoformat())
    progress(f"preparing {WEEKS} weeks of simulated history; the first time this takes some minutes")
    log.parent.mkdir(parents=True, exist_ok=True)
    with log.open("wb") as output:
        done = subprocess.run(
            _command(root / end, end), stdin=subprocess.DEVNULL, stdout=output, stderr=output
        )
    if done.returncode != 0:
        raise LocalFleetError(f"simulating the history failed: see {log}, or use --no-history")
    return root / end / "fleet.yaml"


def _command(folder: Path, end: str) -> list[str]:
    """Return the ``simulate`` command line; it skips a complete history and restarts an interrupted one."""
    length = ("--clusters", str(CLUSTERS), "--weeks", str(WEEKS), "--seed", str(SEED))
    arguments = ("simulate", "--to", str(folder), *length, "--end", f"{end}T00:00:00Z")
    return [sys.executable, "-m", "fleetgauge_core", *arguments]
