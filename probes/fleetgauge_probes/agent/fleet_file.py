"""The fleet file of a running agent: read again when it has changed."""

import logging
from pathlib import Path

from fleetgauge_core.fleet import (
    Cluster,
    Fleet,
    FleetFileError,
    load,
    stamp,
)

_log = logging.getLogger("fleetgauge.probe")


class FleetFile:
    """What the file said when it could last be read."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def read(self) -> Fleet:
        """For the first time. Raises FleetFileError."""
        self._stamp = stamp(self._path)
        self.fleet = load(self._path)
        return self.fleet

    def clusters(self) -> tuple[Cluster, ...]:
        """As the file has them now; as it last had them while it cannot be read."""
        now = stamp(self._path)
        if now not in (None, self._stamp):
            self._stamp = now
            try:
                self.fleet = self._taken(load(self._path))
            except FleetFileError as error:
                _log.error("%s; going on with what it said before", error)
        return self.fleet.clusters

    def _taken(self, fleet: Fleet) -> Fleet:
        # Clusters are taken as they are now, and the rest of these are none of the agent's business.
        as_before = {key: getattr(self.fleet, key) for key in ("clusters", "notifiers", "page_url")}
        if fleet.model_copy(update=as_before) != self.fleet:
            _log.warning("%s: what changed beside clusters takes a restart of the agent", self._path)
        _log.info("%s: %d clusters from now on", self._path, len(fleet.clusters))
        return self.fleet.model_copy(update={"clusters": fleet.clusters})
