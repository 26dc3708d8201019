"""The fleet file of a running process, reloaded when it changes."""

import logging
from collections.abc import Callable, Collection
from pathlib import Path

from fleetgauge_core.fleet.load import FleetFileError, load_fleet
from fleetgauge_core.fleet.model import Fleet
from fleetgauge_core.fleet.usable_fleet import (
    EntryProblem,
    UsableFleet,
    keep_previous_entries,
    load_usable_fleet,
)

_log = logging.getLogger("fleetgauge.fleet")

#: How long a file must stay as it is before it is read: a half-written one may be valid.
_SETTLED_S = 1.0


class FleetFile:
    """A fleet file, and the fleet that it described when it could last be read. For use by a single thread.

    A cluster, a notifier or a source of changes that is bad at the first load is left out; one that becomes
    bad later stays as it was. With ``strict``, a file with a bad entry is refused as a whole.
    """

    def __init__(
        self,
        path: Path,
        elapsed_s: Callable[[], float],
        *,
        applied_keys: Collection[str],
        unused_keys: Collection[str] = (),
        connects: bool = True,
        strict: bool = False,
    ) -> None:
        """Prepare to read ``path``; ``load`` reads it for the first time.

        The process applies changes of ``applied_keys``, and does not use ``unused_keys``; a change of any
        other key is logged, because it requires a restart. ``elapsed_s`` reads a monotonic clock.
        ``connects`` is false if the process uses no address of a cluster.
        """
        self.path = path
        self._elapsed_s = elapsed_s
        self._applied_keys = applied_keys
        self._unused_keys = unused_keys
        self._connects = connects
        self._strict = strict
        self._pending: tuple[object, float] | None = None
        self._not_applied: dict[str, object] = {}
        self.generation = 0
        """Counts the changes of the fleet and of the problems."""
        self.problems: tuple[EntryProblem, ...] = ()
        """The entries that could not be used when the file was last read."""

    def load(self) -> Fleet:
        """Read the file for the first time and return its fleet.

        Raises: FleetFileError when the file cannot be read or is not valid.
        """
        self._version = _read_version(self.path)
        self.fleet, self.problems = self._read()
        return self.fleet

    def refresh(self) -> Fleet:
        """Return the fleet, after reading the file again if it changed and has settled.

        While the file is missing or not valid, the previous fleet is returned and the error is logged once.
        """
        version, now_s = _read_version(self.path), self._elapsed_s()
        if version in (None, self._version):
            self._pending = None
        elif self._pending is None or self._pending[0] != version:
            self._pending = version, now_s
        elif now_s - self._pending[1] >= _SETTLED_S:
            self._version, self._pending = version, None
            try:
                self._adopt(self._read(self.fleet))
            except FleetFileError as error:
                _log.error("%s; continuing with the previous fleet", error)
        return self.fleet

    def may_list(self, cluster_id: str) -> bool:
        """Return whether the file lists the cluster, or has a bad entry that may be the cluster's."""
        loaded = UsableFleet(self.fleet, self.problems)
        if loaded.has_unknown_cluster or cluster_id in loaded.unusable_ids:
            return True
        return any(cluster.id == cluster_id for cluster in self.fleet.clusters)

    def _read(self, previous: Fleet | None = None) -> UsableFleet:
        if self._strict:
            return UsableFleet(load_fleet(self.path))
        return load_usable_fleet(self.path, connects=self._connects, previous=previous)

    def _adopt(self, loaded: UsableFleet) -> None:
        """Apply the changes that need no restart, and log whether there are others."""
        new = keep_previous_entries(self.fleet, loaded)
        not_applied = {
            key: getattr(new, key)
            for key in Fleet.model_fields
            if key not in self._applied_keys
            and key not in self._unused_keys
            and getattr(new, key) != getattr(self.fleet, key)
        }
        if not_applied and not_applied != self._not_applied:
            _log.warning("%s: a change of %s needs a restart", self.path, ", ".join(not_applied))
        self._not_applied = not_applied
        fleet = self.fleet.model_copy(update={key: getattr(new, key) for key in self._applied_keys})
        if fleet == self.fleet and loaded.problems == self.problems:
            return
        self.fleet, self.problems, self.generation = fleet, loaded.problems, self.generation + 1
        _log.info("%s: reloaded, %d clusters", self.path, len(self.fleet.clusters))


def _read_version(path: Path) -> tuple[int, int, int, int] | None:
    """Return what differs once the file, or one to which it links, has changed; None if there is none.

    The time of the last status change shows that a file became readable, the size that it grew within one
    tick of the file system's clock.
    """
    try:
        status = path.stat()
    except OSError:
        return None
    return status.st_mtime_ns, status.st_ctime_ns, status.st_size, status.st_ino
