"""Which parts of the fleet file a process cannot use: bad entries, and secrets that cannot be read."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from fleetgauge_core.fleet import ClusterAccess, Notifier, SecretError, load_fleet
from fleetgauge_core.fleet.usable_fleet import UsableFleet, list_messages, load_usable_fleet
from fleetgauge_core.http import HttpFailureError, ReceiverEndpoint
from fleetgauge_core.kafka.credentials_monitor import CredentialsMonitor, require_readable_credentials
from fleetgauge_core.runtime.part_status import PartFault, PartStatus
from fleetgauge_operations.notify.receivers import Receiver, receiver_key

_ENTRY_REMEDY = "correct it and restart this process: until then it is left out"
_NOTIFIER_REMEDY = "provide it: until then its notifications wait"
_CLUSTER_REMEDY = "provide it: until then the cluster is left out"


def load_reported_fleet(config: Path, parts: PartStatus, *, strict: bool) -> UsableFleet:
    """Return what is usable of a fleet file, and report the rest.

    Raises: FleetFileError for a file that cannot be used; if ``strict``, also for a bad entry.
    """
    loaded = UsableFleet(load_fleet(config)) if strict else load_usable_fleet(config)
    for part in ("cluster", "notifier"):
        parts.update(part, PartFault.ENTRY, list_messages(loaded.problems, part, _ENTRY_REMEDY))
    return loaded


@dataclass(slots=True)
class FleetFaults:
    """Reports which of these clusters, by name, and notifiers have secrets that cannot be read."""

    clusters: Mapping[str, ClusterAccess]
    notifiers: Iterable[Notifier]
    parts: PartStatus
    telemetry: ClusterAccess | None = None
    _monitor: CredentialsMonitor = field(default_factory=CredentialsMonitor)

    def require_none(self) -> None:
        """Read all secrets. Raises: CredentialsUnreadableError; SecretError for a notifier's."""
        require_readable_credentials(self.telemetry, self.clusters)
        require_readable_secrets(self.notifiers)

    def update(self) -> None:
        """Report the parts that cannot be used now."""
        telemetry = {"telemetry": self.telemetry} if self.telemetry else {}
        for part, accesses in (("cluster", self.clusters), ("telemetry", telemetry)):
            unreadable = self._monitor.find_unreadable(accesses)
            messages = {name: f"{message}; {_CLUSTER_REMEDY}" for name, message in unreadable.items()}
            self.parts.update(part, PartFault.CREDENTIALS, messages)
        report_unreadable_secrets(self.notifiers, self.parts)


def name_notifier(notifier: Notifier) -> str:
    """Return a notifier's name or host; while neither is known, its kind and a part of its key."""
    try:
        return notifier.name or Receiver(notifier).host
    except SecretError:
        return f"{notifier.kind} {receiver_key(notifier)[:6]}"


def require_readable_secrets(notifiers: Iterable[Notifier]) -> None:
    """Read the secrets of all notifiers. Raises: SecretError for the first one that cannot be read."""
    for name, message in _find_unreadable_secrets(notifiers).items():
        raise SecretError(f"notifier {name}: {message}")


def report_unreadable_secrets(notifiers: Iterable[Notifier], parts: PartStatus) -> None:
    """Report the notifiers with a secret that cannot be read."""
    messages = {
        name: f"{message}; {_NOTIFIER_REMEDY}"
        for name, message in _find_unreadable_secrets(notifiers).items()
    }
    parts.update("notifier", PartFault.CREDENTIALS, messages)


def _find_unreadable_secrets(notifiers: Iterable[Notifier]) -> dict[str, str]:
    """Return why a secret or certificate cannot be used, by the name of each such notifier."""
    messages = {}
    for notifier in notifiers:
        try:
            ReceiverEndpoint(notifier).check_settings()
        except (SecretError, HttpFailureError) as error:
            messages[name_notifier(notifier)] = f"{notifier.kind}: {error}"
    return messages
