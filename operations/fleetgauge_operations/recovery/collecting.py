"""Look at every mirror, learn what is new, and keep it in the lake."""

import logging
from collections.abc import Callable

from fleetgauge_operations.recovery.known import Fact, Known
from fleetgauge_operations.recovery.learning import learned
from fleetgauge_operations.recovery.looking import MirrorEye
from fleetgauge_operations.recovery.store import CheckpointStore
from fleetgauge_probes.fleet import Fleet
from fleetgauge_probes.kafka import KafkaUnavailableError

_log = logging.getLogger("fleetgauge.recover")


class Collector:
    """A mirror of which an end is silent is left out, until it is there again."""

    def __init__(self, fleet: Fleet, store: CheckpointStore, now_ms: Callable[[], int]) -> None:
        self._store = store
        self._eyes = {
            f"{mirror.source} to {mirror.destination}": MirrorEye(fleet, mirror, store, now_ms)
            for mirror in fleet.recovery.mirrors
        }
        self._waiting: list[Fact] = []
        self._read_until: dict[str, int] = {}

    def start(self) -> None:
        """Read what is known already. Raises KafkaUnavailableError for secrets, and KeptTableError."""
        for eye in self._eyes.values():
            eye.start()
        self.known = Known(self._store.facts())
        self._next_ordinal = self._store.next_ordinal()

    def stop(self) -> None:
        for eye in self._eyes.values():
            eye.stop()

    def look(self) -> dict[str, str]:
        """Learn what is new. By mirror, why nothing could be seen of it. Raises KeptTableError."""
        unseen = {}
        for name, eye in self._eyes.items():
            try:
                seen = eye.look()
            except KafkaUnavailableError as error:
                _log.warning("%s: %s", name, error)
                unseen[name] = str(error)
                continue
            self._waiting += learned(self.known, seen.look)
            self._read_until |= seen.read_until
        return unseen

    def keep(self) -> int:
        """Write what was learned and is not in the lake yet; how many rows. Raises KeptTableError."""
        count = len(self._waiting)
        if count:
            self._store.append(self._waiting, self._next_ordinal, self._read_until)
            self._next_ordinal += count
            self._waiting = []
        return count
