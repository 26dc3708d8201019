"""The folder that a simulation is written to: its own or nobody's, and finished or begun again."""

import json
import shutil
from collections.abc import Mapping
from contextlib import nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from fleetgauge_core.lake.lease import lease
from fleetgauge_pipelines.simulation import SimulatedFleet

#: Written first, it says whose folder this is; written again as the last of all, with what was made.
_STAMP = "simulation.json"
_FILES = (_STAMP, "fleet.yaml", "ledger.json")
_FOLDERS = ("lake", "records")


class ForeignFolderError(Exception):
    """The folder holds what no simulation made; the text is one line for a person."""


@dataclass(frozen=True, slots=True)
class SimulatedFolder:
    """fleet.yaml, ledger.json, and lake/ or records/ under one path."""

    path: Path

    @property
    def config(self) -> Path:
        return self.path / "fleet.yaml"

    @property
    def lake(self) -> Path:
        return self.path / "lake"

    @property
    def records(self) -> Path:
        return self.path / "records"

    def made(self, arguments: Mapping[str, Any]) -> dict[str, Any] | None:
        """What was made here of the very same arguments; None where nothing was, or it broke off.

        Raises ForeignFolderError where anything else lies.
        """
        self._refuse_what_is_foreign()
        try:
            stamp = json.loads((self.path / _STAMP).read_text(encoding="utf-8"))
        except (FileNotFoundError, ValueError):
            return None
        return stamp.get("made") if stamp.get("arguments") == arguments else None

    def begin(self, arguments: Mapping[str, Any], simulated: SimulatedFleet, more: Mapping[str, Any]) -> None:
        """Clear away what an earlier simulation left, and say what this one will be.

        ``more`` goes into fleet.yaml. Raises LeaseError while a pipeline writes the lake.
        """
        self.path.mkdir(parents=True, exist_ok=True)
        with lease(str(self.lake)) if self.lake.exists() else nullcontext():
            self._stamp({"arguments": arguments})
            for old in (self.lake, self.records):
                if old.exists():
                    shutil.rmtree(old)
        document = yaml.safe_dump(simulated.document() | dict(more), sort_keys=False)
        self.config.write_text(document, encoding="utf-8")
        ledger = json.dumps(simulated.ledger(), indent=1)
        (self.path / "ledger.json").write_text(ledger + "\n", encoding="utf-8")

    def finish(self, arguments: Mapping[str, Any], made: Mapping[str, Any]) -> None:
        """From now on the folder counts as made."""
        self._stamp({"arguments": arguments, "made": made})

    def bytes(self) -> int:
        return sum(path.stat().st_size for path in self.path.rglob("*") if path.is_file())

    def _refuse_what_is_foreign(self) -> None:
        if self.path.exists() and not self.path.is_dir():
            raise ForeignFolderError(f"{self.path} is a file; name another folder with --to")
        found = {one.name: one for one in self.path.iterdir()} if self.path.exists() else {}
        own = {*_FILES, *_FOLDERS} if _STAMP in found else set()
        foreign = sorted(name for name, one in found.items() if name not in own or one.is_symlink())
        if foreign:
            raise ForeignFolderError(
                f"{self.path}: {foreign[0]} was not made by a simulation; name another folder with --to"
            )

    def _stamp(self, stamp: Mapping[str, Any]) -> None:
        (self.path / _STAMP).write_text(json.dumps(stamp) + "\n", encoding="utf-8")
