"""The output folder of a simulation: it must be empty, or hold a simulation, which is resumed or replaced."""

import json
import shutil
from collections.abc import Mapping
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from fleetgauge_core.contract.change_document import change_document
from fleetgauge_core.errors import OperationalError
from fleetgauge_core.lake.lease import hold_lease
from fleetgauge_pipelines.simulation import SimulatedFleet

#: Written first, to mark the folder as a simulation's; written again at the end, with the result.
_STAMP = "simulation.json"
_FILES = (_STAMP, "fleet.yaml", "ledger.json", "changes.json")
_FOLDERS = ("lake", "records")


class ForeignFolderError(OperationalError):
    """The folder holds files that no simulation wrote; its text is one line for the user."""


@dataclass(frozen=True, slots=True)
class SimulatedFolder:
    """A folder with fleet.yaml, ledger.json, changes.json, and lake/ or records/."""

    path: Path

    @property
    def config(self) -> Path:
        """Return the path of the fleet file."""
        return self.path / "fleet.yaml"

    @property
    def lake(self) -> Path:
        """Return the folder of the lake."""
        return self.path / "lake"

    @property
    def records(self) -> Path:
        """Return the folder of the record files."""
        return self.path / "records"

    def read_result(self, arguments: Mapping[str, Any]) -> dict[str, Any] | None:
        """Return the result of a finished simulation with equal arguments, None if there is none.

        Raises: ForeignFolderError when the folder holds files that no simulation wrote.
        """
        self._refuse_foreign_files()
        try:
            stamp = json.loads((self.path / _STAMP).read_text(encoding="utf-8"))
        except (FileNotFoundError, ValueError):
            return None
        is_equal = isinstance(stamp, dict) and stamp.get("arguments") == arguments
        return stamp.get("made") if is_equal else None

    def begin(
        self, arguments: Mapping[str, Any], simulated: SimulatedFleet, extra_keys: Mapping[str, Any]
    ) -> None:
        """Delete an earlier simulation, and write fleet.yaml, with ``extra_keys``, and both JSON files.

        Raises: LeaseError while another process writes to the lake.
        """
        self.path.mkdir(parents=True, exist_ok=True)
        with self._hold_lease() if self.lake.exists() else nullcontext():
            self._write_stamp({"arguments": arguments})
            for folder in (self.lake, self.records):
                if folder.exists():
                    shutil.rmtree(folder)
        document = yaml.safe_dump(simulated.fleet_document() | dict(extra_keys), sort_keys=False)
        self.config.write_text(document, encoding="utf-8")
        changes = [change_document(record) for record in simulated.change_records()]
        for name, content in (("ledger.json", simulated.ledger()), ("changes.json", changes)):
            (self.path / name).write_text(json.dumps(content, indent=1) + "\n", encoding="utf-8")

    def _hold_lease(self) -> AbstractContextManager[object]:
        return hold_lease(str(self.lake), "fleetgauge simulate", lambda _: None)

    def finish(self, arguments: Mapping[str, Any], result: Mapping[str, Any]) -> None:
        """Mark the simulation as finished, with its result."""
        self._write_stamp({"arguments": arguments, "made": result})

    def count_bytes(self) -> int:
        """Return the size of all files in the folder."""
        return sum(path.stat().st_size for path in self.path.rglob("*") if path.is_file())

    def _refuse_foreign_files(self) -> None:
        if self.path.exists() and not self.path.is_dir():
            raise ForeignFolderError(f"{self.path} is a file; name another folder with --to")
        paths = {path.name: path for path in self.path.iterdir()} if self.path.exists() else {}
        own = {*_FILES, *_FOLDERS} if _STAMP in paths else set()
        foreign = sorted(name for name, path in paths.items() if name not in own or path.is_symlink())
        if foreign:
            raise ForeignFolderError(
                f"{self.path}: {foreign[0]} was not written by a simulation; name another folder with --to"
            )

    def _write_stamp(self, stamp: Mapping[str, Any]) -> None:
        (self.path / _STAMP).write_text(json.dumps(stamp) + "\n", encoding="utf-8")
