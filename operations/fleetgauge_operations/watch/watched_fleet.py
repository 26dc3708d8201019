"""The fleet file of the watch, and the report of those of its parts that cannot be used."""

from collections.abc import Callable
from pathlib import Path
from threading import Event

from fleetgauge_core.fleet import Fleet, SecretError, Telemetry, require_telemetry
from fleetgauge_core.fleet.fleet_file import FleetFile
from fleetgauge_core.fleet.usable_fleet import list_messages
from fleetgauge_core.kafka.credentials_monitor import require_readable_credentials
from fleetgauge_core.runtime.part_status import PartFault, PartStatus
from fleetgauge_operations.notify.fleet_faults import report_unreadable_secrets, require_readable_secrets

_CHECK_INTERVAL_S = 1.0
_SECRETS_INTERVAL_S = 5.0
_ENTRY_REMEDY = "correct it: until then it is left out, or stays as it was"


class WatchedFleet:
    """The fleet file while the watch runs. For use by a single thread, but for ``check_secrets``."""

    def __init__(
        self, config: Path, parts: PartStatus, elapsed_s: Callable[[], float], *, strict: bool = False
    ) -> None:
        """Prepare to read the file; ``load`` reads it for the first time."""
        self._parts = parts
        self._elapsed_s = elapsed_s
        self._strict = strict
        self._check_at_s = 0.0
        # The watch connects to the telemetry cluster alone.
        applied_keys = Fleet.model_fields.keys() - {"telemetry"}
        self._file = FleetFile(config, elapsed_s, applied_keys=applied_keys, connects=False, strict=strict)

    @property
    def fleet(self) -> Fleet:
        """The fleet as of the last ``load`` or ``refresh``."""
        return self._file.fleet

    @property
    def generation(self) -> int:
        """Counts the changes of the fleet, and of the entries that cannot be used."""
        return self._file.generation

    def load(self) -> Telemetry:
        """Read the file and return its telemetry cluster.

        Raises: FleetFileError. If every part must be usable, also CredentialsUnreadableError and SecretError.
        """
        telemetry = require_telemetry(self._file.load(), self._file.path)
        if self._strict:
            require_readable_credentials(telemetry.access, {})
            require_readable_secrets(self.fleet.notifiers)
            for source in self.fleet.change_sources:
                source.token.read()
        self._report_faults()
        return telemetry

    def may_list(self, cluster_id: str) -> bool:
        """Return whether the file lists the cluster, or has a bad entry that may be the cluster's."""
        return self._file.may_list(cluster_id)

    def refresh(self) -> Fleet:
        """Return the fleet, after reading the file again if it changed; checks once a second."""
        if self._elapsed_s() >= self._check_at_s:
            self._check_at_s = self._elapsed_s() + _CHECK_INTERVAL_S
            self._file.refresh()
            self._report_faults()
        return self.fleet

    def check_secrets(self, stopping: Event) -> None:
        """Report the notifiers and sources of changes whose secrets cannot be read, until stopped.

        For a thread of its own: loading certificates takes too long for the one that detects.
        """
        while True:
            report_unreadable_secrets(self.fleet.notifiers, self._parts)
            self._report_unreadable_tokens()
            if stopping.wait(_SECRETS_INTERVAL_S):
                return

    def _report_unreadable_tokens(self) -> None:
        messages = {}
        for source in self.fleet.change_sources:
            try:
                source.token.read()
            except SecretError as error:
                messages[source.name] = f"{error}; provide it: until then it can report no change"
        self._parts.update("change_source", PartFault.CREDENTIALS, messages)

    def _report_faults(self) -> None:
        for part in ("cluster", "notifier", "change_source"):
            messages = list_messages(self._file.problems, part, _ENTRY_REMEDY)
            self._parts.update(part, PartFault.ENTRY, messages)
