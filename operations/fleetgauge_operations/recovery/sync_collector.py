"""Look at every mirror, learn what is new, and keep it in the lake."""

import logging
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

from fleetgauge_core.fleet import Fleet
from fleetgauge_core.kafka import Extents, KafkaUnavailableError
from fleetgauge_operations.recovery.checkpoint_store import CheckpointStore, StoreLostError
from fleetgauge_operations.recovery.mirror_observer import CLIENT_ID, MirrorEye
from fleetgauge_operations.recovery.offsets.checkpoint import Checkpoint, Route
from fleetgauge_operations.recovery.offsets.mirror_state import Fact, Known
from fleetgauge_operations.recovery.offsets.sync_ingest import learned

_log = logging.getLogger("fleetgauge.recover")

#: Some 300 MB of memory.
_WAITING_AT_MOST = 1_000_000


class Collector:
    """A mirror of which an end is silent is left out of a look."""

    def __init__(
        self,
        fleet: Fleet,
        store: CheckpointStore,
        now_ms: Callable[[], int],
        watermark_every_ms: int = 0,
    ) -> None:
        self._store = store
        self._watermark_every_ms = watermark_every_ms
        mirrors = fleet.recovery.mirrors
        clusters = {cluster for one in mirrors for cluster in (one.source, one.destination)}
        self._extents = {one: Extents(fleet.cluster(one).access, CLIENT_ID) for one in sorted(clusters)}
        self._eyes = [MirrorEye(fleet, mirror, self._extents, store, now_ms) for mirror in mirrors]
        self._waiting: list[Fact] = []
        self.answering: frozenset[str] = frozenset()
        """The clusters that answered at the last look."""
        self.ends: dict[str, dict[tuple[str, int], int]] = {}
        """By source, where its mirrored partitions ended at the last look, if that could be seen."""
        self._read_until: dict[str, int] = {}

    def start(self) -> None:
        """Read what is known already. Raises KafkaUnavailableError for secrets, and TableStoreError."""
        for extents in self._extents.values():
            extents.start()
        kept = self._store.read()
        self.known = Known(kept.facts)
        self._next_ordinal = kept.next_ordinal

    def stop(self) -> None:
        for eye in self._eyes:
            eye.stop()

    def look(self) -> bool:
        """Learn what is new; whether anything could be seen. Raises TableStoreError."""
        names, seen_of = self._topics(), 0
        self.answering, self.ends = frozenset(names), {}
        for eye in self._eyes:
            mirror = eye.mirror
            if mirror.source in names:
                taken = filter(mirror.takes, names[mirror.source])
                self.known.has_topics(mirror.source, mirror.destination, taken)
            if mirror.source not in names or mirror.destination not in names:
                continue
            try:
                seen = eye.look(names[mirror.source])
            except KafkaUnavailableError as error:
                _log.warning("%s to %s: %s", mirror.source, mirror.destination, error)
                continue
            seen_of += 1
            self._waiting += learned(self.known, seen.look, self._watermark_every_ms)
            ends = {place: one.source for place, one in seen.look.ends.items()}
            self.ends[mirror.source] = self.ends.get(mirror.source, {}) | ends
            self._read_until |= seen.read_until
        return seen_of > 0

    def _topics(self) -> dict[str, frozenset[str]]:
        """By cluster that answers. All are asked at once, so that a region that is dead costs one wait."""
        with ThreadPoolExecutor(len(self._extents) or 1) as asking:
            asked = {one: asking.submit(extents.names) for one, extents in self._extents.items()}
        found = {}
        for cluster, future in asked.items():
            try:
                found[cluster] = future.result()
            except KafkaUnavailableError as error:
                _log.warning("%s: %s", cluster, error)
        return found

    def learn(self, route: Route, checkpoint: Checkpoint) -> None:
        """What somebody else has seen, of topics as they were at the last look."""
        ids = self.known.ids(route)
        if ids and (fact := self.known.learn(route, ids, checkpoint)):
            self._waiting.append(fact)

    def keep(self) -> int:
        """Write what was learned and is not in the lake yet; how many rows.

        Raises TableStoreError, and StoreLostError where it will never be.
        """
        if len(self._waiting) > _WAITING_AT_MOST:
            raise StoreLostError(f"{len(self._waiting):,} rows wait for a lake that takes none")
        count = len(self._waiting)
        if count:
            self._store.append(self._waiting, self._next_ordinal, self._read_until)
            self._next_ordinal += count
            self._waiting = []
        return count
