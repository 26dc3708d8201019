"""Whether the secrets and certificates of several clusters can be read."""

from collections.abc import Callable, Mapping

from fleetgauge_core.fleet import ClusterAccess
from fleetgauge_core.kafka.credentials import ensure_credentials_readable
from fleetgauge_core.kafka.errors import CredentialsUnreadableError
from fleetgauge_core.runtime.health_server import ProcessHealth
from fleetgauge_core.runtime.part_status import PartFault
from fleetgauge_core.runtime.shutdown import ShutdownFlag

#: Pause before credentials that could not be read are read again.
_RETRY_S = 1.0


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


def require_readable_credentials(
    telemetry: ClusterAccess | None, clusters: Mapping[str, ClusterAccess]
) -> None:
    """Read the credentials of the telemetry cluster, if there is one, and of clusters by their ID.

    Raises: CredentialsUnreadableError for the first of them that cannot be read.
    """
    named = {f"cluster {cluster_id}": access for cluster_id, access in clusters.items()}
    for name, access in (({"telemetry": telemetry} if telemetry else {}) | named).items():
        try:
            ensure_credentials_readable(access)
        except CredentialsUnreadableError as error:
            raise CredentialsUnreadableError(f"{name}: {error}", error.reason) from error


def wait_for_readable_credentials(
    telemetry: ClusterAccess,
    health: ProcessHealth,
    shutdown: ShutdownFlag,
    remedy: str,
    idle: Callable[[], object] = lambda: None,
) -> bool:
    """Wait until the telemetry cluster's credentials can be read; return False if told to end before.

    Meanwhile the cluster is reported as faulty, with its ``remedy``, and ``idle`` is called.
    """
    while not shutdown.is_set():
        health.record_heartbeat()
        idle()
        try:
            ensure_credentials_readable(telemetry)
        except CredentialsUnreadableError as error:
            message = f"{error}; {remedy}"
            health.parts.update("telemetry", PartFault.CREDENTIALS, {"telemetry": message})
            shutdown.wait(_RETRY_S)
        else:
            health.parts.update("telemetry", PartFault.CREDENTIALS, {})
            return True
    return False
