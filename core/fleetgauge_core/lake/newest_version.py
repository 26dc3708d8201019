"""The newest version of each table, kept a second time in a folder of the lake, `_versions`.

Motivation: a commit that a power failure emptied, or that is gone, is no error to readers of Delta: they show
the state before it as the newest one.

Approach: after each commit, its writer stores the version and a digest of the data files that it consists of.
A reader that finds an older version, or other files at that version, says so instead. A newer version is
none of these: its writer has not stored it yet, or ended before it did.

Internal tables are left out: a command that finds an older progress does some of its work again.
"""

import hashlib
import json
import zlib
from dataclasses import asdict, dataclass

import pyarrow as pa
import pyarrow.compute as pc
from deltalake import DeltaTable

from fleetgauge_core.lake.lake_files import LakeFiles, open_files
from fleetgauge_core.tables import Table

#: Of the digest: a later version of the libraries may render paths or partitions otherwise.
_FORMAT = 1
_HASHED = ("path", "size_bytes")


@dataclass(frozen=True, slots=True)
class NewestVersion:
    """A version of a table: the table's ID in Delta, the version's number, and a digest of its data files."""

    table_id: str
    version: int
    files: str

    def encode(self) -> bytes:
        """Return it as JSON with a checksum."""
        document = asdict(self) | {"format": _FORMAT}
        return json.dumps(document | {"checksum": _checksum(document)}).encode()


def decode_version(content: bytes) -> NewestVersion | None:
    """Return the stored version; None if the file is damaged or has another format."""
    try:
        document = json.loads(content)
        is_right = document.pop("checksum") == _checksum(document)
        is_right = document.pop("format") == _FORMAT and is_right
        version = NewestVersion(**document)
    except (ValueError, KeyError, TypeError, AttributeError):
        return None
    return version if is_right else None


def describe_version(delta: DeltaTable) -> NewestVersion:
    """Return the version that has been opened."""
    return NewestVersion(str(delta.metadata().id), delta.version(), _hash_files(delta))


def read_newest_version(lake: str, table: Table) -> NewestVersion | None:
    """Return what the last writer stored; None if nothing was stored, or the file is damaged.

    A damaged file is written anew by the table's next commit. Raises: OSError if the lake does not answer.
    """
    content = None if table.is_internal else open_files(lake).read(version_file(table))
    return decode_version(content) if content else None


def write_newest_version(lake: str, table: Table, committed: NewestVersion) -> None:
    """Store a version, unless a later commit of another writer is stored. Raises: OSError."""
    stored = read_newest_version(lake, table)
    is_later = stored and stored.table_id == committed.table_id and stored.version > committed.version
    if not (table.is_internal or is_later):
        open_files(lake).write(version_file(table), committed.encode())


def forget_newest_version(files: LakeFiles, table: Table) -> None:
    """Let the table's present state count as the newest one. Raises: OSError."""
    files.delete(version_file(table))


def version_file(table: Table) -> str:
    """Return the path of the file within the lake."""
    return f"_versions/{table.path}.json"


def _checksum(document: dict[str, object]) -> int:
    return zlib.crc32(json.dumps(document, sort_keys=True).encode())


def _hash_files(delta: DeltaTable) -> str:
    """Return a digest of the table's data files; it is the same for one version by commits and checkpoint."""
    actions = pa.table(delta.get_add_actions(flatten=True))
    partitions = sorted(name for name in actions.column_names if name.startswith("partition."))
    columns = [
        pc.coalesce(actions[name].cast(pa.string()), pa.scalar("")) for name in (*_HASHED, *partitions)
    ]
    lines = pc.binary_join_element_wise(*columns, "\t")
    return hashlib.sha256("\n".join(sorted(lines.to_pylist())).encode()).hexdigest()[:32]
