"""Repair of a lake's tables: without loss before a writer begins, with loss when an operator accepts it.

A writer's own progress is repaired with loss as well: it does again what it does not know to be done.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum

import pyarrow as pa
import pyarrow.parquet as pq
from deltalake import DeltaTable
from deltalake.exceptions import DeltaError, DeltaProtocolError

from fleetgauge_core.lake.checksum_files import checksum_file, find_mismatches
from fleetgauge_core.lake.delta_table import (
    DamagedTableError,
    describe_table_error,
    open_table,
    panic_as_damage,
    store_newest_version,
)
from fleetgauge_core.lake.lake_files import LakeFiles, open_files
from fleetgauge_core.lake.log_damage import (
    CHECKPOINT_FILE,
    HINT_FILE,
    LOG_FOLDER,
    is_log_file,
    read_log_state,
)
from fleetgauge_core.lake.log_repair import apply_repair, find_repair, set_aside, set_log_aside
from fleetgauge_core.lake.newest_version import forget_newest_version, read_newest_version
from fleetgauge_core.tables import Table

_MISSING = "is missing"
_MISMATCH = "does not match its checksum file"
_UNREADABLE = "is no Parquet file"


class RepairOutcome(StrEnum):
    """What became of a table."""

    WHOLE = "whole"
    """Nothing is damaged."""
    REPAIRED = "repaired"
    """The damaged files were not needed: no row is lost."""
    LOST = "lost"
    """The table can be read without the lost commits or data files."""
    DAMAGED = "damaged"
    """It can be repaired only with loss, which was not accepted, or not at all."""


@dataclass(frozen=True, slots=True)
class TableRepair:
    """What a table's repair did or would do; ``detail`` is a sentence, empty for a whole table."""

    table: Table
    outcome: RepairOutcome
    detail: str = ""


def repair_table(lake: str, table: Table, *, accepts_loss: bool, dry_run: bool = False) -> TableRepair:
    """Repair a table: its log, its checksum files, and if a loss is accepted, its data files.

    Raises: one of DELTA_ERRORS if the lake does not answer.
    """
    try:
        delta = open_table(lake, table)
        if delta is None:
            return TableRepair(table, RepairOutcome.WHOLE)
        # Reads the statistics of the files, which a damaged checkpoint may spoil.
        with panic_as_damage():
            delta.to_pyarrow_dataset()
    except DamagedTableError as error:
        return _repair_log(lake, table, error.problem, accepts_loss, dry_run)
    except DeltaProtocolError as error:
        # The table is whole, and of a newer version of Delta than its reader.
        return TableRepair(table, RepairOutcome.DAMAGED, describe_table_error(error))
    except (DeltaError, ValueError) as error:
        return _repair_log(lake, table, describe_table_error(error), accepts_loss, dry_run)
    data = _repair_data(lake, table, delta, accepts_loss, dry_run)
    return _repair_checksum_files(lake, table, dry_run) if data.outcome is RepairOutcome.WHOLE else data


def repair_before_writing(lake: str, table: Table) -> TableRepair:
    """Repair a table's log if that loses nothing; internal tables lose what is damaged, log and data.

    Raises: one of DELTA_ERRORS if the lake does not answer.
    """
    try:
        delta = open_table(lake, table)
    except DeltaProtocolError:
        raise
    except DeltaError as error:
        problem = error.problem if isinstance(error, DamagedTableError) else describe_table_error(error)
        return _repair_log(lake, table, problem, table.is_internal, dry_run=False)
    if table.is_internal and delta is not None and not _is_readable(delta):
        return repair_table(lake, table, accepts_loss=True)
    return _repair_checksum_files(lake, table, dry_run=False)


def _repair_checksum_files(lake: str, table: Table, dry_run: bool) -> TableRepair:
    """Set aside the checksum files that a log does not match, although it is as it was written.

    Only the files that are read: the newest checkpoint, the commits since, and the hint.
    """
    files, folder = open_files(lake), f"{table.path}/{LOG_FOLDER}"
    names = files.list_sizes(folder)
    newest = max((name[:20] for name in names if CHECKPOINT_FILE.fullmatch(name)), default="")
    needed = (name for name in names if is_log_file(name) and (name >= newest or name == HINT_FILE))
    checked = [f"{folder}/{name}" for name in needed if checksum_file(name) in names]
    mismatches = find_mismatches(files, checked)
    if not mismatches:
        return TableRepair(table, RepairOutcome.WHOLE)
    if not dry_run:
        for path in mismatches:
            set_aside(files, checksum_file(path))
    different = ", ".join(checksum_file(path).rpartition("/")[2] for path in mismatches)
    return TableRepair(
        table, RepairOutcome.REPAIRED, f"the log is whole without {different}, which differ from it"
    )


def _repair_log(lake: str, table: Table, problem: str, accepts_loss: bool, dry_run: bool) -> TableRepair:
    files = open_files(lake)
    repair = find_repair(files, table.path, read_newest_version(lake, table))
    if repair is None:
        state = read_log_state(files, table.path)
        if state.newest >= 0 and not state.damage:
            return TableRepair(table, RepairOutcome.DAMAGED, problem)
        if not accepts_loss:
            return TableRepair(table, RepairOutcome.DAMAGED, f"{problem}; all rows of the table are lost")
        if not dry_run:
            set_log_aside(files, table.path)
            forget_newest_version(files, table)
        return TableRepair(table, RepairOutcome.LOST, f"{problem}; the table begins again without rows")
    without = f"without {', '.join(sorted(repair.set_aside))}" if repair.set_aside else "as it is"
    detail = f"{problem}; version {repair.version.version} is read {without}"
    if repair.loses_rows and not accepts_loss:
        return TableRepair(table, RepairOutcome.DAMAGED, f"{detail}, and later changes are lost")
    if not dry_run:
        apply_repair(files, table.path, repair)
        _accept(lake, table, files)
    return TableRepair(table, RepairOutcome.LOST if repair.loses_rows else RepairOutcome.REPAIRED, detail)


def _repair_data(
    lake: str, table: Table, delta: DeltaTable, accepts_loss: bool, dry_run: bool
) -> TableRepair:
    """Drop data files that cannot be read, and the checksum files that others do not match."""
    files = open_files(lake)
    damaged = _find_damaged_data(files, table, delta)
    if not damaged:
        return TableRepair(table, RepairOutcome.WHOLE)
    detail = " ".join(next(iter(damaged.items())))
    detail += f" (and {len(damaged) - 1} more files are damaged)" if len(damaged) > 1 else ""
    if not accepts_loss:
        return TableRepair(table, RepairOutcome.DAMAGED, f"{detail}; their rows are lost")
    if not dry_run:
        for name, problem in damaged.items():
            path = f"{table.path}/{name}"
            if problem == _MISMATCH:
                set_aside(files, checksum_file(path))
            if problem != _MISSING and not (problem == _MISMATCH and _can_be_read(files, path)):
                set_aside(files, path)
        delta.repair()
        _accept(lake, table, files)
    return TableRepair(table, RepairOutcome.LOST, f"{detail}; their rows are lost or changed")


def _find_damaged_data(files: LakeFiles, table: Table, delta: DeltaTable) -> Mapping[str, str]:
    """Return what is wrong with data files by their path within the table."""
    actions = pa.table(delta.get_add_actions(flatten=True)).select(["path", "size_bytes"]).to_pylist()
    folders = {str(action["path"]).rpartition("/")[0] for action in actions}
    present: dict[str, int] = {}
    for folder in folders:
        prefix = f"{folder}/" if folder else ""
        sizes = files.list_sizes(f"{table.path}/{folder}".rstrip("/"))
        present |= {f"{prefix}{name}": size for name, size in sizes.items()}
    problems = {}
    for name, size in ((action["path"], action["size_bytes"]) for action in actions):
        if present.get(name) != size:
            # The list of a folder may be older than the file.
            content = files.read(f"{table.path}/{name}")
            if content is None:
                problems[name] = _MISSING
            elif len(content) != size:
                problems[name] = f"has {len(content)} bytes instead of {size}"
        elif checksum_file(name) in present:
            if find_mismatches(files, [f"{table.path}/{name}"]):
                problems[name] = _MISMATCH
        elif table.small and not _can_be_read(files, f"{table.path}/{name}"):
            # Larger tables are written by Spark, with a checksum file wherever a disk may damage them.
            problems[name] = _UNREADABLE
    return problems


def _can_be_read(files: LakeFiles, path: str) -> bool:
    """Return whether a file is Parquet with values of its types.

    Raises: OSError if the store does not answer: that is no damage.
    """
    content = files.read(path)
    if content is None:
        return False
    try:
        pq.read_table(pa.BufferReader(content)).validate(full=True)
    except (pa.ArrowInvalid, OSError):
        return False
    return True


def _is_readable(delta: DeltaTable) -> bool:
    """Return whether all rows of a small table can be read now."""
    try:
        with panic_as_damage():
            delta.to_pyarrow_dataset().to_table().validate(full=True)
    except (DeltaError, pa.ArrowInvalid, OSError):
        return False
    return True


def _accept(lake: str, table: Table, files: LakeFiles) -> None:
    """Let what can be read now count as the newest version."""
    forget_newest_version(files, table)
    store_newest_version(lake, table)
