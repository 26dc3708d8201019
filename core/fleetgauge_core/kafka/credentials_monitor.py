"""Whether the secrets and certificates of several clusters can be read."""

from collections.abc import Mapping

from fleetgauge_core.fleet import ClusterAccess
from fleetgauge_core.kafka.credentials import ensure_credentials_readable
from fleetgauge_core.kafka.errors import CredentialsUnreadableError


class CredentialsMonitor:
    """Finds clusters with unreadable credentials, and reads those of the others only when a file changed."""

    def __init__(self) -> None:
        self._readable: dict[ClusterAccess, object] = {}

    def find_unreadable(self, accesses: Mapping[str, ClusterAccess]) -> dict[str, str]:
        """Return why the credentials cannot be read, by the name of each such cluster."""
        messages: dict[str, str] = {}
        for name, access in accesses.items():
            versions = access.file_versions()
            if None not in versions and self._readable.get(access) == versions:
                continue
            try:
                ensure_credentials_readable(access)
            except CredentialsUnreadableError as error:
                messages[name] = str(error)
            else:
                self._readable[access] = versions
        return messages


def require_readable_credentials(accesses: Mapping[str, ClusterAccess]) -> None:
    """Read the credentials of all clusters; the keys name them in the error.

    Raises: CredentialsUnreadableError for the first cluster whose credentials cannot be read.
    """
    for name, access in accesses.items():
        try:
            ensure_credentials_readable(access)
        except CredentialsUnreadableError as error:
            raise CredentialsUnreadableError(f"{name}: {error}", error.reason) from error
