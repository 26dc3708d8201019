"""Small files of a lake beside and inside its tables, in a folder or in an object store.

Credentials and endpoints of object stores come from the environment, as for delta-rs.
"""

import os
import uuid
from collections.abc import Callable, Mapping
from contextlib import suppress
from datetime import timedelta
from functools import lru_cache
from pathlib import Path
from typing import Any, Protocol, TypeVar
from urllib.parse import urlsplit
from urllib.request import url2pathname

T = TypeVar("T")

#: The environment variables that a store is opened with.
_SETTINGS = ("AWS_", "AZURE_", "GOOGLE_")
_TIMEOUTS = {"timeout": timedelta(seconds=5), "connect_timeout": timedelta(seconds=5)}
_RETRIES = {"max_retries": 2, "retry_timeout": timedelta(seconds=10)}


class LakeFiles(Protocol):
    """Files by their path within a lake. Every method raises OSError when the lake does not answer."""

    def read(self, name: str) -> bytes | None:
        """Return the content of a file; None if there is none."""

    def write(self, name: str, content: bytes) -> None:
        """Write a file, so that a reader or a power failure finds the old or the new content."""

    def list_sizes(self, folder: str, after: str = "") -> Mapping[str, int]:
        """Return the size in bytes of each file in a folder by its name.

        ``after``: names up to this one are left out, which saves listing a long log.
        """

    def rename(self, name: str, new_name: str) -> None:
        """Rename a file."""

    def delete(self, name: str) -> None:
        """Delete a file, if there is one."""


class FolderFiles:
    """The files of a lake in a local folder."""

    def __init__(self, lake: Path) -> None:
        self._lake = lake

    def read(self, name: str) -> bytes | None:
        """Return the content of a file; None if there is none."""
        try:
            return (self._lake / name).read_bytes()
        except (FileNotFoundError, NotADirectoryError):
            return None

    def write(self, name: str, content: bytes) -> None:
        """Write a file, so that a reader or a power failure finds the old or the new content."""
        path = self._lake / name
        path.parent.mkdir(parents=True, exist_ok=True)
        temporary = path.with_name(f".{path.name}-{uuid.uuid4().hex[:8]}")
        try:
            with temporary.open("wb") as file:
                file.write(content)
                file.flush()
                os.fsync(file.fileno())
            temporary.replace(path)
        finally:
            temporary.unlink(missing_ok=True)
        # The new name is in the folder, which is written to the disk apart.
        folder = os.open(path.parent, os.O_RDONLY)
        try:
            os.fsync(folder)
        finally:
            os.close(folder)

    def list_sizes(self, folder: str, after: str = "") -> Mapping[str, int]:
        """Return the size in bytes of each file in a folder by its name; ``after`` leaves out names."""
        path = self._lake / folder
        if not path.is_dir():
            return {}
        sizes = {}
        with os.scandir(path) as entries:
            for entry in entries:
                # Another process may delete its temporary file meanwhile.
                with suppress(FileNotFoundError):
                    if entry.name > after and entry.is_file():
                        sizes[entry.name] = entry.stat().st_size
        return sizes

    def rename(self, name: str, new_name: str) -> None:
        """Rename a file."""
        (self._lake / name).rename(self._lake / new_name)

    def delete(self, name: str) -> None:
        """Delete a file, if there is one."""
        (self._lake / name).unlink(missing_ok=True)


class ObjectFiles:
    """The files of a lake at a URI, by obstore."""

    def __init__(self, store: Any) -> None:
        self._store = store

    def read(self, name: str) -> bytes | None:
        """Return the content of a file; None if there is none."""
        import obstore

        try:
            return bytes(_translate(lambda: obstore.get(self._store, name).bytes()))
        except FileNotFoundError:
            return None

    def write(self, name: str, content: bytes) -> None:
        """Write a file, so that a reader finds the old or the new content."""
        import obstore

        _translate(lambda: obstore.put(self._store, name, content))

    def list_sizes(self, folder: str, after: str = "") -> Mapping[str, int]:
        """Return the size in bytes of each file in a folder by its name; ``after`` leaves out names."""
        import obstore

        offset = f"{folder}/{after}" if after else None
        objects = _translate(lambda: obstore.list(self._store, folder, offset=offset).collect())
        sizes = {str(meta["path"]).removeprefix(f"{folder}/"): meta["size"] for meta in objects}
        return {name: size for name, size in sizes.items() if "/" not in name}

    def rename(self, name: str, new_name: str) -> None:
        """Rename a file."""
        import obstore

        _translate(lambda: obstore.rename(self._store, name, new_name))

    def delete(self, name: str) -> None:
        """Delete a file, if there is one."""
        import obstore

        try:
            _translate(lambda: obstore.delete(self._store, name))
        except FileNotFoundError:
            return


def open_files(lake: str) -> LakeFiles:
    """Return the files of a lake. Raises: OSError if nothing can be at that URI."""
    if lake.startswith("file://"):
        return FolderFiles(Path(url2pathname(urlsplit(lake).path)))
    return ObjectFiles(open_store(lake)) if "://" in lake else FolderFiles(Path(lake))


def open_store(lake: str) -> Any:
    """Return the store of obstore at the URI of a lake; a file:// folder is created.

    Raises: OSError if there can be none.
    """
    settings = ((name, value) for name, value in os.environ.items() if name.startswith(_SETTINGS))
    return _open_store(lake, tuple(sorted(settings)))


@lru_cache(maxsize=8)
def _open_store(lake: str, _settings: tuple[tuple[str, str], ...]) -> Any:
    """Return one store for all requests, because each has connections of its own.

    ``_settings`` are those of the environment, by which others open another store.
    """
    # obstore takes a twentieth of a second to import, and a lake in a folder does not need it.
    from obstore.store import from_url

    options: dict[str, Any] = {"mkdir": True}
    if not lake.startswith("file:"):
        allows_http = os.environ.get("AWS_ALLOW_HTTP", "").lower() == "true"
        options = {"client_options": _TIMEOUTS | {"allow_http": allows_http}, "retry_config": _RETRIES}
    return _translate(lambda: from_url(lake, **options))


def _translate(request: Callable[[], T]) -> T:
    from obstore.exceptions import BaseError

    try:
        return request()
    except FileNotFoundError:
        raise
    except (BaseError, ValueError) as error:
        raise OSError(str(error)) from error
