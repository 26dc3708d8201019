"""Look at every mirror, learn what is new, and keep it in the lake."""

import logging
from collections.abc import Callable

from fleetgauge_operations.recovery.known import Fact, Known
from fleetgauge_operations.recovery.learning import learned
from fleetgauge_operations.recovery.looking import MirrorEye
from fleetgauge_operations.recovery.store import CheckpointStore, StoreLostError
from fleetgauge_probes.fleet import Fleet
from fleetgauge_probes.kafka import KafkaUnavailableError

_log = logging.getLogger("fleetgauge.recover")

#: Some 300 MB of memory.
_WAITING_AT_MOST = 1_000_000


class Collector:
    """A mirror of which an end is silent is left out, until it is there again."""

    def __init__(
        self,
        fleet: Fleet,
        store: CheckpointStore,
        now_ms: Callable[[], int],
        watermark_every_ms: int = 0,
    ) -> None:
        self._store = store
        self._watermark_every_ms = watermark_every_ms
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
        kept = self._store.read()
        self.known = Known(kept.facts)
        self._next_ordinal = kept.next_ordinal

    def stop(self) -> None:
        for eye in self._eyes.values():
            eye.stop()

    def look(self) -> bool:
        """Learn what is new; whether anything could be seen. Raises KeptTableError."""
        seen_of = 0
        for name, eye in self._eyes.items():
            try:
                seen = eye.look()
            except KafkaUnavailableError as error:
                _log.warning("%s: %s", name, error)
                continue
            seen_of += 1
            self._waiting += learned(self.known, seen.look, self._watermark_every_ms)
            self._read_until |= seen.read_until
        return seen_of > 0

    def keep(self) -> int:
        """Write what was learned and is not in the lake yet; how many rows.

        Raises KeptTableError, and StoreLostError where it will never be.
        """
        if len(self._waiting) > _WAITING_AT_MOST:
            raise StoreLostError(f"{len(self._waiting):,} rows wait for a lake that takes none")
        count = len(self._waiting)
        if count:
            self._store.append(self._waiting, self._next_ordinal, self._read_until)
            self._next_ordinal += count
            self._waiting = []
        return count
