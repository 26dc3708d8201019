"""The objects of a shared lease in the store of a lake, by obstore: S3, Azure, Google or a mounted folder.

Credentials and endpoints come from the environment, as for delta-rs.
"""

from collections.abc import Callable
from typing import Any, TypeVar

import obstore
from obstore.exceptions import AlreadyExistsError, BaseError, NotSupportedError

from fleetgauge_core.lake.delta_table import describe_table_error
from fleetgauge_core.lake.lake_files import ObjectFiles, open_store
from fleetgauge_core.lake.shared_lease import NoConditionalWritesError, StoreUnavailableError

T = TypeVar("T")

_FOLDER = "_checkpoints/leases"


class StoredLeaseObjects:
    """Numbered objects in a folder of a store. Every method raises StoreUnavailableError."""

    def __init__(self, store: Any) -> None:
        self._store = store
        self._files = ObjectFiles(store)

    def list_numbers(self) -> list[int]:
        """Return the numbers of all objects."""
        names = (name.removesuffix(".json") for name in _translate(lambda: self._files.list_sizes(_FOLDER)))
        return [int(name) for name in names if name.isdecimal()]

    def read(self, number: int) -> str:
        """Return the content of an object; empty if there is none."""
        return (_translate(lambda: self._files.read(_name(number))) or b"").decode(errors="replace")

    def create(self, number: int, content: str) -> bool:
        """Create an object; return False if it exists. Raises: NoConditionalWritesError."""
        try:
            obstore.put(self._store, _name(number), content.encode(), mode="create")
        except AlreadyExistsError:
            return False
        # obstore raises Python's own NotImplementedError where a kind of store has no conditional writes.
        except (NotImplementedError, NotSupportedError) as error:
            raise NoConditionalWritesError(describe_table_error(error)) from error
        except (BaseError, OSError, ValueError) as error:
            is_refused = "NotImplemented" in str(error)
            error_class = NoConditionalWritesError if is_refused else StoreUnavailableError
            raise error_class(describe_table_error(error)) from error
        return True

    def replace(self, number: int, content: str) -> None:
        """Write an object again."""
        _translate(lambda: self._files.write(_name(number), content.encode()))

    def delete(self, number: int) -> None:
        """Delete an object."""
        _translate(lambda: self._files.delete(_name(number)))


def open_lease_objects(lake: str) -> StoredLeaseObjects:
    """Return the objects of the lease of a lake at a URI. Raises: StoreUnavailableError."""
    return StoredLeaseObjects(_translate(lambda: open_store(lake)))


def _name(number: int) -> str:
    return f"{_FOLDER}/{number:012}.json"


def _translate(request: Callable[[], T]) -> T:
    try:
        return request()
    except OSError as error:
        raise StoreUnavailableError(describe_table_error(error)) from error
