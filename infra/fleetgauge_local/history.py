"""The demo's second fleet: 20 clusters over 35 weeks, simulated once and kept in the user's cache."""

import subprocess
import sys
from collections.abc import Callable
from datetime import date, timedelta
from pathlib import Path

from fleetgauge_local.errors import LocalFleetError

CLUSTERS, WEEKS, SEED = 20, 35, 1


def history(cache: Path, log: Path, today: date, say: Callable[[str], None]) -> Path:
    """Its fleet.yaml. An earlier one is kept, though it ends in an earlier week. Raises LocalFleetError."""
    root = cache / "history"
    monday = today - timedelta(days=today.weekday())
    end = max((folder.name for folder in root.glob("????-??-??")), default=monday.isoformat())
    say(f"looking for {WEEKS} weeks of history; making them takes some minutes, once")
    log.parent.mkdir(parents=True, exist_ok=True)
    with log.open("wb") as said:
        done = subprocess.run(_command(root / end, end), stdin=subprocess.DEVNULL, stdout=said, stderr=said)
    if done.returncode != 0:
        raise LocalFleetError(f"the history was not made: see {log}, or go without by --no-history")
    return root / end / "fleet.yaml"


def _command(folder: Path, end: str) -> list[str]:
    """It returns at once where the folder holds all of this already, and begins anew what broke off."""
    length = ("--clusters", str(CLUSTERS), "--weeks", str(WEEKS), "--seed", str(SEED))
    arguments = ("simulate", "--to", str(folder), *length, "--end", f"{end}T00:00:00Z")
    return [sys.executable, "-m", "fleetgauge_core", *arguments]
