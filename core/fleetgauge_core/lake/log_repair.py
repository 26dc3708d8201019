"""Repair of a table's Delta log, by setting damaged files aside.

Every way to read the log is tried on a copy of it, the one that loses nothing first: without the hint,
without checkpoints whose commits are all there, and last without the newest commits. A way loses nothing if
it leads to the version that was stored as the newest one.
"""

import tempfile
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from itertools import count
from pathlib import Path

from deltalake import DeltaTable
from deltalake.exceptions import DeltaError, DeltaProtocolError

from fleetgauge_core.lake.checksum_files import checksum_file
from fleetgauge_core.lake.delta_table import panic_as_damage
from fleetgauge_core.lake.lake_files import LakeFiles
from fleetgauge_core.lake.log_damage import (
    CHECKPOINT_FILE,
    HINT_FILE,
    LOG_FOLDER,
    LogState,
    is_log_file,
    read_log_state,
)
from fleetgauge_core.lake.newest_version import NewestVersion, describe_version

#: A damaged checkpoint is replaced by an older one and the commits after it.
_CHECKPOINTS_TRIED = 3
#: A prefix that readers of Delta, and the vacuum of the table, take for no file of the table.
_DAMAGED = "_damaged-"


@dataclass(frozen=True, slots=True)
class LogRepair:
    """How a log becomes readable: the files to set aside, and the version that can then be read.

    ``loses_rows``: a commit is lost, so that rows are missing or deleted ones are back.
    """

    set_aside: tuple[str, ...]
    loses_rows: bool
    version: NewestVersion


def find_repair(files: LakeFiles, table_path: str, stored: NewestVersion | None) -> LogRepair | None:
    """Return how the log of a table becomes readable; None if it cannot, for want of commits.

    ``stored`` is the newest version that was written, if that is known. Raises: OSError.
    """
    state = read_log_state(files, table_path)
    with tempfile.TemporaryDirectory() as folder:
        copied = _copy_log(files, table_path, Path(folder, LOG_FOLDER))
        lossless = [names for names in _list_lossless(state) if copied.issuperset(names)]
        for names in lossless:
            version = _open_without(Path(folder), names)
            if version and _is_complete(version, stored, state):
                return LogRepair(tuple(names), loses_rows=False, version=version)
        for names in [*_list_lossy(state, copied), *lossless]:
            version = _open_without(Path(folder), names)
            if version:
                return LogRepair(tuple(names), loses_rows=True, version=version)
    return None


def apply_repair(files: LakeFiles, table_path: str, repair: LogRepair) -> None:
    """Rename the files that are set aside. Raises: OSError."""
    _set_log_files_aside(files, table_path, repair.set_aside)


def set_log_aside(files: LakeFiles, table_path: str) -> None:
    """Rename all files of a log, so that the table begins again. Raises: OSError."""
    names = filter(is_log_file, files.list_sizes(f"{table_path}/{LOG_FOLDER}"))
    _set_log_files_aside(files, table_path, names)


def _set_log_files_aside(files: LakeFiles, table_path: str, names: Iterable[str]) -> None:
    folder = f"{table_path}/{LOG_FOLDER}"
    present = files.list_sizes(folder)
    # The hint first and the newest commit next, so that an interruption leaves no gap in the log.
    for name in sorted(names, key=lambda name: (name == HINT_FILE, name), reverse=True):
        for each in (name, *_list_companions(name)):
            if each in present:
                set_aside(files, f"{folder}/{each}")


def set_aside(files: LakeFiles, path: str) -> None:
    """Rename a file so that nothing reads it any more; no earlier one is replaced. Raises: OSError."""
    folder, slash, name = path.rpartition("/")
    taken = files.list_sizes(folder)
    names = (f"{_DAMAGED}{number or ''}{'-' if number else ''}{name}" for number in count())
    files.rename(path, f"{folder}{slash}{next(new for new in names if new not in taken)}")


def _list_companions(name: str) -> tuple[str, ...]:
    """Return Hadoop's checksum file of a log file, and for a commit the version's checksum file of Spark.

    They would refuse another file that is written under the same name.
    """
    companions = (checksum_file(name),)
    return (*companions, f"{name[:20]}.crc", f".{name[:20]}.crc.crc") if name != HINT_FILE else companions


def _is_complete(version: NewestVersion, stored: NewestVersion | None, state: LogState) -> bool:
    if stored and stored.table_id == version.table_id and stored.version >= version.version:
        return version == stored
    return not state.damaged_commits


def _list_lossless(state: LogState) -> Iterator[Sequence[str]]:
    """Yield which files to set aside, of those whose content is in others too."""
    yield ()
    yield (HINT_FILE,)
    checkpoints = [name for _, (name, _) in sorted(state.checkpoints.items(), reverse=True)]
    for newest in range(1, len(checkpoints) + 1):
        yield (*checkpoints[:newest], HINT_FILE)
        yield tuple(checkpoints[:newest])


def _list_lossy(state: LogState, copied: set[str]) -> Iterator[Sequence[str]]:
    """Yield the files from the first damaged commit on."""
    damaged = state.damaged_commits
    if damaged:
        first = damaged[0].version
        later = sorted(name for name in copied if name != HINT_FILE and int(name[:20]) >= first)
        yield (*later, *([HINT_FILE] if HINT_FILE in copied else []))


def _copy_log(files: LakeFiles, table_path: str, target: Path) -> set[str]:
    """Copy what any way of reading the log needs, and return the names."""
    target.mkdir()
    folder = f"{table_path}/{LOG_FOLDER}"
    names = set(filter(is_log_file, files.list_sizes(folder)))
    checkpoints = sorted(filter(CHECKPOINT_FILE.fullmatch, names), reverse=True)
    oldest = int(checkpoints[_CHECKPOINTS_TRIED - 1][:20]) if len(checkpoints) >= _CHECKPOINTS_TRIED else 0
    wanted = {name for name in names if name == HINT_FILE or int(name[:20]) >= oldest}
    for name in wanted:
        (target / name).write_bytes(files.read(f"{folder}/{name}") or b"")
    return wanted


def _open_without(table: Path, names: Sequence[str]) -> NewestVersion | None:
    """Return the version that is read without some files; None if none can be read."""
    log = table / LOG_FOLDER
    for name in names:
        (log / name).rename(table / name)
    try:
        with panic_as_damage():
            delta = DeltaTable(str(table))
            # Reads the statistics of the files, which a damaged checkpoint may spoil.
            with suppress(DeltaProtocolError):
                delta.to_pyarrow_dataset()
            return describe_version(delta)
    except (DeltaError, ValueError):
        return None
    finally:
        for name in names:
            (table / name).rename(log / name)
