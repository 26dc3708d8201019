"""The fleet file of a running agent, reloaded when it changes."""

import logging
from pathlib import Path

from fleetgauge_core.fleet import (
    Cluster,
    Fleet,
    FleetFileError,
    load_fleet,
    read_file_version,
)

_log = logging.getLogger("fleetgauge.probe")

#: Keys that the agent applies while it runs, or does not use at all.
_NO_RESTART_KEYS = ("clusters", "notifiers", "page_url")


class FleetFile:
    """A fleet file and the fleet that it described when it could last be read."""

    def __init__(self, path: Path) -> None:
        """Prepare to read ``path``; ``load`` reads it for the first time."""
        self._path = path

    def load(self) -> Fleet:
        """Read the file for the first time and return its fleet.

        Raises: FleetFileError when the file cannot be read or is not valid.
        """
        self._file_version = read_file_version(self._path)
        self.fleet = load_fleet(self._path)
        return self.fleet

    def current_clusters(self) -> tuple[Cluster, ...]:
        """Return the file's clusters, reading it again if it changed.

        While the file is missing or not valid, the previous clusters are returned and the error is logged.
        """
        file_version = read_file_version(self._path)
        if file_version not in (None, self._file_version):
            self._file_version = file_version
            try:
                self.fleet = self._apply_clusters(load_fleet(self._path))
            except FleetFileError as error:
                _log.error("%s; continuing with the previous clusters", error)
        return self.fleet.clusters

    def _apply_clusters(self, fleet: Fleet) -> Fleet:
        """Return the previous fleet with the new clusters; other changes need a restart."""
        unchanged = {key: getattr(self.fleet, key) for key in _NO_RESTART_KEYS}
        if fleet.model_copy(update=unchanged) != self.fleet:
            _log.warning("%s: changes to other keys than clusters need a restart of the agent", self._path)
        _log.info("%s: reloaded, %d clusters", self._path, len(fleet.clusters))
        return self.fleet.model_copy(update={"clusters": fleet.clusters})
