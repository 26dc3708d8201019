"""The objects of a shared lease in the store of a lake, by obstore: S3, Azure, Google or a mounted folder.

Credentials and endpoints come from the environment, as for delta-rs.
"""

from collections.abc import Callable
from typing import Any

import obstore
from obstore.exceptions import AlreadyExistsError, BaseError, NotSupportedError

from fleetgauge_core.lake.delta_table import describe_table_error
from fleetgauge_core.lake.lake_files import open_store
from fleetgauge_core.lake.shared_lease import NoConditionalWritesError, StoreUnavailableError

_FOLDER = "_checkpoints/leases"
_ERRORS = (BaseError, OSError, ValueError)


class StoredLeaseObjects:
    """Numbered objects in a folder of a store."""

    def __init__(self, store: Any) -> None:
        self._store = store

    def list_numbers(self) -> list[int]:
        """Return the numbers of all objects. Raises: StoreUnavailableError."""
        objects = _translate(lambda: obstore.list(self._store, _FOLDER).collect())
        names = [str(meta["path"]).rsplit("/", 1)[-1].removesuffix(".json") for meta in objects]
        return [int(name) for name in names if name.isdecimal()]

    def read(self, number: int) -> str:
        """Return the content of an object; empty if there is none. Raises: StoreUnavailableError."""
        try:
            return bytes(obstore.get(self._store, _name(number)).bytes()).decode(errors="replace")
        except FileNotFoundError:
            return ""
        except _ERRORS as error:
            raise StoreUnavailableError(describe_table_error(error)) from error

    def create(self, number: int, content: str) -> bool:
        """Create an object; return False if it exists.

        Raises: NoConditionalWritesError; StoreUnavailableError.
        """
        try:
            obstore.put(self._store, _name(number), content.encode(), mode="create")
        except AlreadyExistsError:
            return False
        # obstore raises Python's own NotImplementedError for an operation that a kind of store lacks.
        except (NotImplementedError, NotSupportedError) as error:
            raise NoConditionalWritesError(describe_table_error(error)) from error
        except _ERRORS as error:
            if "NotImplemented" in str(error):
                raise NoConditionalWritesError(describe_table_error(error)) from error
            raise StoreUnavailableError(describe_table_error(error)) from error
        return True

    def replace(self, number: int, content: str) -> None:
        """Write an object again. Raises: StoreUnavailableError."""
        _translate(lambda: obstore.put(self._store, _name(number), content.encode()))

    def delete(self, number: int) -> None:
        """Delete an object. Raises: StoreUnavailableError."""
        _translate(lambda: obstore.delete(self._store, _name(number)))


def open_lease_objects(lake: str) -> StoredLeaseObjects:
    """Return the objects of the lease of a lake at a URI. Raises: StoreUnavailableError."""
    return StoredLeaseObjects(_translate(lambda: open_store(lake)))


def _name(number: int) -> str:
    return f"{_FOLDER}/{number:012}.json"


def _translate(request: Callable[[], Any]) -> Any:
    try:
        return request()
    except _ERRORS as error:
        raise StoreUnavailableError(describe_table_error(error)) from error
