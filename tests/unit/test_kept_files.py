"""Every file that Fleetgauge keeps, damaged in every way, with the outcomes that tests/damage.md lists."""

import gzip
import json
import re
import sqlite3
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from shutil import copy, copytree

import pytest

from fleetgauge_core.lake.lease import LeaseError, hold_lease
from fleetgauge_core.lake.lease_objects import open_lease_objects
from fleetgauge_core.lake.newest_version import NewestVersion, decode_version, version_file
from fleetgauge_core.lake.shared_lease import LeaseHolder, LeaseLostError, LeaseTakenError, SharedLease
from fleetgauge_core.lake.table_repair import RepairOutcome
from fleetgauge_core.tables import DRILLS
from fleetgauge_operations.replay.incident import Incident, IncidentError
from fleetgauge_pipelines.io import jars
from fleetgauge_pipelines.io.jars import fetch_jars
from fleetgauge_pipelines.jobs.simulate_folder import ForeignFolderError, SimulatedFolder
from fleetgauge_probes.agent.spool import Spool, SpoolError
from tests import damage
from tests.damage import Damage
from tests.probe_minutes import record
from tests.unit.core.lake.test_damaged_log import (
    CHECKPOINT,
    CHECKPOINT_FILE,
    COMMITS,
    HINT,
    log_file,
    make_whole_lake,
    repair_or_explain,
)
from tests.unit.operations.replay.sample_incidents import build_hang_pulses, build_incident
from tests.unit.pipelines.io.test_jars import CONTENT, JAR, Repository
from tests.unit.pipelines.simulation.histories import history

TABLE = Path(__file__).parents[1] / "damage.md"
HOLDER = LeaseHolder("fleetgauge stream", "ann", 1, datetime(2026, 4, 1, 12, tzinfo=UTC))
OTHER = LeaseHolder("fleetgauge backfill", "bob", 2, datetime(2026, 4, 1, 12, tzinfo=UTC))


def read_table() -> dict[tuple[str, str], str]:
    """Return the outcome by file and damage."""
    lines = [line.split("|")[1:-1] for line in TABLE.read_text().splitlines() if line.startswith("|")]
    (_, *damages), _, *rows = ([cell.strip() for cell in line] for line in lines)
    return {
        (file, name): outcome
        for file, *outcomes in rows
        for name, outcome in zip(damages, outcomes, strict=True)
        if outcome != "–"
    }


def refused(error: Exception, pattern: str) -> str:
    """Return the outcome of a file that a process does not accept, with one line that says why."""
    assert "\n" not in str(error)
    assert re.search(pattern, str(error))
    return "refused"


class Case(ABC):
    """A kept file: how to make it, and how the next process uses it and what comes out.

    ``older`` and ``newer`` are the methods of those that can be replaced by another version of themselves.
    """

    file: str

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    @property
    def path(self) -> Path:
        return self.folder / self.file

    @abstractmethod
    def use(self) -> str:
        """Return the outcome, in the words of the table."""


class LakeFile(Case):
    def __init__(self, folder: Path, file: str = HINT) -> None:
        super().__init__(make_whole_lake(folder / "lake"))
        self.file = file
        self.is_needed = file in (CHECKPOINT_FILE, log_file(CHECKPOINT + 1), log_file(COMMITS))
        self.content = self.path.read_bytes() if self.path.is_file() else b""

    def use(self) -> str:
        outcomes = {
            RepairOutcome.WHOLE: "whole",
            RepairOutcome.REPAIRED: "repaired",
            RepairOutcome.DAMAGED: "refused",
        }
        outcome = outcomes[repair_or_explain(self.folder)]
        if outcome == "whole" and self.is_needed and self.path.read_bytes() != self.content:
            return "unseen"
        return outcome

    def set_hint(self, version: int) -> None:
        hint = json.loads(self.path.read_text())
        self.path.write_text(json.dumps(hint | {"version": version}))

    def older(self) -> None:
        if self.file == HINT:
            self.set_hint(CHECKPOINT - 1)
        elif self.file == version_file(DRILLS):
            self.set_version(-2)
        elif self.file == DRILLS.path:
            for version in (COMMITS, COMMITS - 1):
                (self.folder / log_file(version)).unlink()
        else:
            copy(self.folder / log_file(int(self.path.stem) - 1), self.path)

    def newer(self) -> None:
        if self.file == HINT:
            self.set_hint(COMMITS + 9)
        else:
            self.set_version(5)

    def set_version(self, more: int) -> None:
        stored = decode_version(self.path.read_bytes())
        assert stored is not None
        changed = NewestVersion(stored.table_id, stored.version + more, stored.files)
        self.path.write_bytes(changed.encode())


class FolderLease(Case):
    file = "_checkpoints/lease"

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        self.stack = ExitStack()
        self.lease = self.stack.enter_context(hold_lease(str(folder), "fleetgauge stream", print))

    def use(self) -> str:
        with self.stack:
            try:
                with hold_lease(str(self.folder), "fleetgauge backfill", print) as other:
                    other.confirm()
            except LeaseError:
                self.lease.confirm()
                return "whole"
            with pytest.raises(LeaseLostError, match=r"^[^\n]+ start again$"):
                self.lease.confirm()
            return "refused"


class SharedLeaseObject(Case):
    file = "_checkpoints/leases/000000000001.json"

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        self.now_s = 0.0
        self.objects = open_lease_objects(f"file://{folder}")
        self.ann = SharedLease(self.objects, HOLDER, lambda: self.now_s)
        self.ann.acquire(print)
        self.first = self.path.read_bytes()
        self.ann.renew()

    def older(self) -> None:
        self.path.write_bytes(self.first)

    def newer(self) -> None:
        copy(self.path, self.path.with_name("000000000099.json"))

    def use(self) -> str:
        bob = SharedLease(self.objects, OTHER, lambda: self.now_s, self.wait)
        try:
            bob.acquire(lambda _: None)
        except LeaseTakenError:
            self.ann.confirm()
            return "repaired"
        self.ann.renew()
        with pytest.raises(LeaseLostError, match=r"^[^\n]+$"):
            self.ann.confirm()
        bob.confirm()
        return "refused"

    def wait(self, seconds: float) -> None:
        self.now_s += seconds
        if self.now_s % 10 == 0:
            self.ann.renew()


class SpoolFile(Case):
    state = "killed"
    records = 300

    def __init__(self, folder: Path) -> None:
        super().__init__(folder / self.state)
        spool = Spool(folder / "spool", 10**8)
        spool.open()
        for first in range(0, self.records, 10):
            spool.store([record(sequence) for sequence in range(first, first + 10)], [])
            if first == self.records // 2:
                copytree(folder / "spool", folder / "older")
        if self.state == "killed":
            copytree(folder / "spool", self.folder)
        spool.close()
        if self.state == "ended":
            copytree(folder / "spool", self.folder)
            # An ended agent leaves no write-ahead log.
            earlier = Spool(folder / "older", 10**8)
            earlier.open()
            earlier.close()

    def older(self) -> None:
        copy(self.folder.with_name("older") / self.file, self.path)

    def newer(self) -> None:
        connection = sqlite3.connect(self.path)
        connection.execute("PRAGMA user_version = 2")
        connection.close()

    def use(self) -> str:
        spool = Spool(self.folder, 10**8)
        try:
            spool.open()
        except SpoolError as error:
            return refused(error, "but this agent supports version 1$")
        values = [each.value for each in spool.read_closed(0, self.records + 1)]
        spool.close()
        if any(path.name.startswith("damaged-") for path in self.folder.iterdir()):
            return "set aside"
        written = [record(sequence).encode() for sequence in range(self.records)]
        if values == written:
            return "whole"
        if values == written[: len(values)]:
            return "lost"
        assert len(values) == self.records
        return "unseen"


class SpoolOfAKilledAgent(SpoolFile):
    file = "records.sqlite"


class LogOfAKilledAgent(SpoolFile):
    file = "records.sqlite-wal"


class SpoolAfterACheckpoint(SpoolOfAKilledAgent):
    """SQLite copies the log into the file once it has 1,000 pages, and then begins to write it anew."""

    records = 1500


class LogAfterACheckpoint(LogOfAKilledAgent):
    records = 1500


class SpoolOfAnEndedAgent(SpoolFile):
    state = "ended"
    file = "records.sqlite"


class CachedJar(Case):
    def __init__(self, folder: Path) -> None:
        super().__init__(folder / "jars")
        self.file = str(JAR.path)
        self.lock = folder / "some.lock.toml"
        entry = f'groupId = "{JAR.group}"\nartifactId = "{JAR.artifact}"\nversion = "{JAR.version}"\n'
        self.lock.write_text(f'[[dependencies]]\n{entry}sha256 = "{JAR.sha256}"\n')
        self.fetch()

    def fetch(self) -> int:
        repository = Repository(CONTENT)
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(jars, "_from_maven", lambda: repository.fetch)
            fetch_jars(self.lock, self.folder.parent, lambda _: None)
        return repository.requests

    def older(self) -> None:
        self.path.write_bytes(b"the jar of another version")

    newer = older

    def use(self) -> str:
        requests = self.fetch()
        assert self.path.read_bytes() == CONTENT
        return "repaired" if requests else "whole"


class SimulationStamp(Case):
    file = "simulation.json"

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        simulated = SimulatedFolder(folder)
        simulated.begin({"seed": 1}, history(), {})
        simulated.finish({"seed": 1}, {"clusters": 3})

    def older(self) -> None:
        self.path.write_text(json.dumps({"arguments": {"seed": 1}}))

    def newer(self) -> None:
        self.path.write_text(json.dumps([]))

    def use(self) -> str:
        try:
            result = SimulatedFolder(self.folder).read_result({"seed": 1})
        except ForeignFolderError as error:
            return refused(error, "name another folder")
        # Without a result the history is simulated again.
        return "whole" if result == {"clusters": 3} else "repaired"


class IncidentFile(Case):
    file = "hang.incident.gz"

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        self.incident = build_incident(build_hang_pulses(), note="disk full")
        self.incident.write(self.path)

    def newer(self) -> None:
        first, *lines = gzip.decompress(self.path.read_bytes()).decode().split("\n")
        header = json.dumps(json.loads(first) | {"fleetgauge_incident": 2})
        self.path.write_bytes(gzip.compress("\n".join([header, *lines]).encode()))

    def use(self) -> str:
        try:
            read = Incident.read(self.path)
        except IncidentError as error:
            return refused(error, f"^{self.path}: ")
        assert read == self.incident
        return "whole"


CASES: Mapping[str, Callable[[Path], Case]] = {
    "table log: `_last_checkpoint`": LakeFile,
    "table log: a checkpoint": partial(LakeFile, file=CHECKPOINT_FILE),
    "table log: a commit that a checkpoint replaces": partial(LakeFile, file=log_file(CHECKPOINT)),
    "table log: a commit": partial(LakeFile, file=log_file(CHECKPOINT + 1)),
    "table log: the newest commit": partial(LakeFile, file=log_file(COMMITS)),
    "table: its folder": partial(LakeFile, file=DRILLS.path),
    "`_versions`: the version of a table": partial(LakeFile, file=version_file(DRILLS)),
    "`_checkpoints/lease` of a lake in a folder": FolderLease,
    "`_checkpoints/leases` of a lake at a URI": SharedLeaseObject,
    "spool of a killed agent: `records.sqlite`": SpoolOfAKilledAgent,
    "spool of a killed agent: `records.sqlite-wal`": LogOfAKilledAgent,
    "spool of a killed agent, after a checkpoint: `records.sqlite`": SpoolAfterACheckpoint,
    "spool of a killed agent, after a checkpoint: `records.sqlite-wal`": LogAfterACheckpoint,
    "spool of an ended agent: `records.sqlite`": SpoolOfAnEndedAgent,
    "cache: a jar": CachedJar,
    "`simulation.json` of a simulated history": SimulationStamp,
    "an incident file": IncidentFile,
}


@pytest.mark.parametrize(("file", "kind"), list(read_table()))
def test_the_outcome_is_that_of_the_table(tmp_path: Path, file: str, kind: str) -> None:
    case = CASES[file](tmp_path)
    if kind in ("older", "newer"):
        getattr(case, kind)()
    else:
        make: Damage = getattr(damage, kind)
        make(case.path)
    # What comes of one bit depends on its place.
    assert case.use() in read_table()[file, kind].split(", or ")


def test_the_table_has_all_files_and_an_undamaged_file_is_whole(tmp_path: Path) -> None:
    assert {file for file, _ in read_table()} == CASES.keys()
    for number, (file, make) in enumerate(CASES.items()):
        folder = tmp_path / str(number)
        folder.mkdir()
        # Another process waits for the holder's next renewal.
        expected = "repaired" if file == "`_checkpoints/leases` of a lake at a URI" else "whole"
        assert make(folder).use() == expected
