"""Which file of a table's Delta log is damaged, and what can still be read without it.

The log is in the folder `_delta_log`: a commit a version, from time to time a checkpoint, which replaces all
commits before it, and `_last_checkpoint`, a hint that every reader can do without. Source: Delta Transaction
Log Protocol, sections "Delta Log Entries", "Checkpoints" and "Last Checkpoint File".
"""

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field

import pyarrow as pa
import pyarrow.parquet as pq

from fleetgauge_core.lake.lake_files import LakeFiles

LOG_FOLDER = "_delta_log"
HINT_FILE = "_last_checkpoint"

COMMIT_FILE = re.compile(r"(\d{20})\.json")
CHECKPOINT_FILE = re.compile(r"(\d{20})\.checkpoint(?:\..*)?\.parquet")


@dataclass(frozen=True, slots=True)
class DamagedLogFile:
    """A damaged file of a table's log; ``problem`` follows its name in a sentence."""

    name: str
    version: int
    problem: str

    def __str__(self) -> str:
        return f"{LOG_FOLDER}/{self.name} {self.problem}"


@dataclass(frozen=True, slots=True)
class LogState:
    """The files of a table's log.

    ``checkpoints`` has the problem of each version's checkpoint, or None for a whole one. ``commits`` has the
    same for each commit that no whole checkpoint replaces. ``hint`` is the problem of the hint.
    """

    checkpoints: Mapping[int, tuple[str, str | None]] = field(default_factory=dict)
    commits: Mapping[int, str | None] = field(default_factory=dict)
    hint: str | None = None

    @property
    def base(self) -> int:
        """The version of the newest whole checkpoint; -1 if there is none, and all commits are needed."""
        whole = (version for version, (_, problem) in self.checkpoints.items() if problem is None)
        return max(whole, default=-1)

    @property
    def newest(self) -> int:
        """The version of the newest file, damaged or not; -1 if there is none."""
        return max((*self.commits, *self.checkpoints), default=-1)

    @property
    def damaged_checkpoints(self) -> list[DamagedLogFile]:
        """The damaged checkpoints that are newer than the newest whole one."""
        return [
            DamagedLogFile(name, version, problem)
            for version, (name, problem) in sorted(self.checkpoints.items())
            if problem and version > self.base
        ]

    @property
    def damaged_commits(self) -> list[DamagedLogFile]:
        """The commits that are damaged or missing between the newest whole checkpoint and the newest file."""
        problems = {
            version: self.commits.get(version, "is missing")
            for version in range(self.base + 1, self.newest + 1)
        }
        return [
            DamagedLogFile(commit_file(version), version, problem)
            for version, problem in problems.items()
            if problem
        ]

    @property
    def damage(self) -> list[DamagedLogFile]:
        """All damaged files; those first without which rows are missing."""
        hint = [DamagedLogFile(HINT_FILE, -1, self.hint)] if self.hint else []
        return [*self.damaged_commits, *self.damaged_checkpoints, *hint]


def commit_file(version: int) -> str:
    """Return the name of a commit's file."""
    return f"{version:020}.json"


def is_log_file(name: str) -> bool:
    """Return whether a file of the log folder is a commit, a checkpoint or the hint."""
    return name == HINT_FILE or bool(COMMIT_FILE.fullmatch(name) or CHECKPOINT_FILE.fullmatch(name))


def read_log_state(files: LakeFiles, table_path: str) -> LogState:
    """Read a table's log: its checkpoints, and the commits since the newest whole one. Raises: OSError."""
    folder = f"{table_path}/{LOG_FOLDER}"
    names = files.list_sizes(folder)

    def read(name: str) -> bytes:
        return files.read(f"{folder}/{name}") or b""

    checkpoints: dict[int, tuple[str, str | None]] = {}
    for name in sorted(filter(CHECKPOINT_FILE.fullmatch, names), reverse=True):
        checkpoints[int(name[:20])] = (name, _find_checkpoint_problem(read(name)))
        if checkpoints[int(name[:20])][1] is None:
            break
    state = LogState(checkpoints)
    versions = [int(match[1]) for match in map(COMMIT_FILE.fullmatch, names) if match]
    commits = {
        version: _find_commit_problem(read(commit_file(version)))
        for version in versions
        if version > state.base
    }
    hint = _find_hint_problem(read(HINT_FILE), names) if HINT_FILE in names else None
    return LogState(checkpoints, commits, hint)


def find_empty_commit(files: LakeFiles, table_path: str) -> DamagedLogFile | None:
    """Return the first empty commit after the newest checkpoint, by the sizes alone. Raises: OSError."""
    folder = f"{table_path}/{LOG_FOLDER}"
    checkpoint = _parse_hint(files.read(f"{folder}/{HINT_FILE}") or b"")
    sizes = files.list_sizes(folder, "" if checkpoint is None else f"{checkpoint:020}")
    base = max((int(name[:20]) for name in sizes if CHECKPOINT_FILE.fullmatch(name)), default=-1)
    empty = (int(name[:20]) for name, size in sizes.items() if COMMIT_FILE.fullmatch(name) and not size)
    version = min((version for version in empty if version > base), default=None)
    if version is None:
        return None
    return DamagedLogFile(commit_file(version), version, "is empty")


def _find_checkpoint_problem(content: bytes) -> str | None:
    if not content:
        return "is empty"
    try:
        table = pq.read_table(pa.BufferReader(content))
        table.validate(full=True)
        for action in filter(None, table["add"].to_pylist()):
            json.loads(action.get("stats") or "{}")
    except (pa.ArrowException, OSError, KeyError, ValueError, TypeError):
        return "is cut or damaged"
    return None


def _find_commit_problem(content: bytes) -> str | None:
    if not content.strip():
        return "is empty"
    for number, line in enumerate(lines := content.splitlines()):
        try:
            if not isinstance(json.loads(line), dict):
                raise ValueError("not an action")
        except ValueError:
            return "is cut" if number == len(lines) - 1 else "is damaged"
    return None


def _find_hint_problem(content: bytes, names: Mapping[str, int]) -> str | None:
    version = _parse_hint(content)
    if version is None:
        return "is damaged" if content.strip() else "is empty"
    if any(name.startswith(f"{version:020}.checkpoint") for name in names):
        return None
    return f"points to the checkpoint {version}, which is missing"


def _parse_hint(content: bytes) -> int | None:
    try:
        return int(json.loads(content)["version"])
    except (ValueError, KeyError, TypeError):
        return None
