"""Hadoop's checksum files, `.NAME.crc` beside each file that Spark writes to a folder.

Spark refuses a file that does not match; delta-rs neither reads nor writes them. Format: the magic `crc` and
a zero byte, the number of bytes per checksum, and a CRC-32 for each so many bytes, all in network byte order.
Source: Hadoop's ChecksumFileSystem and DataChecksum.
"""

import struct
import zlib
from collections.abc import Iterable

from fleetgauge_core.lake.lake_files import LakeFiles

_HEADER = struct.Struct(">4si")
_MAGIC = b"crc\0"


def checksum_file(path: str) -> str:
    """Return the path of the checksum file of a file."""
    folder, slash, name = path.rpartition("/")
    return f"{folder}{slash}.{name}.crc"


def find_mismatches(files: LakeFiles, paths: Iterable[str]) -> list[str]:
    """Return the files that do not match their checksum files; one without it matches. Raises: OSError."""
    return [path for path in paths if not _matches(files, path)]


def _matches(files: LakeFiles, path: str) -> bool:
    checksums = files.read(checksum_file(path))
    content = files.read(path)
    if checksums is None or content is None:
        return True
    if len(checksums) < _HEADER.size:
        return False
    magic, chunk = _HEADER.unpack_from(checksums)
    if magic != _MAGIC or chunk <= 0:
        return False
    sums = [zlib.crc32(content[start : start + chunk]) for start in range(0, len(content), chunk)]
    return checksums[_HEADER.size :] == struct.pack(f">{len(sums)}I", *sums)
