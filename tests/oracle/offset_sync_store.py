"""A model of MirrorMaker 2's OffsetSyncStore (Kafka 4.x): its offset syncs and how it translates offsets.

It keeps up to 64 syncs per partition. The first slot has the newest sync; each further slot may hold a sync
about twice as old as the previous one, and keeps its sync as long as that holds. All slots are overwritten
when the source rewinds, and by every sync while the store still reads its topic after a start.
"""

from typing import NamedTuple

SLOTS = 64


class Sync(NamedTuple):
    upstream: int
    downstream: int


class OffsetSyncStore:
    """The store of one partition; ``started``: it has read its topic to the end once."""

    def __init__(self, started: bool = True) -> None:
        self.started = started
        self.slots: list[Sync] = []

    def kept(self) -> list[Sync]:
        """Return the distinct syncs, oldest first."""
        return list(dict.fromkeys(reversed(self.slots)))

    def translate(self, upstream: int) -> int | None:
        """Return the downstream offset to resume from; -1 before the oldest sync, None without syncs."""
        if not self.started or not self.slots:
            return None
        latest = next((sync for sync in self.slots if sync.upstream <= upstream), None)
        if latest is None:
            return -1
        return latest.downstream + (latest.upstream < upstream)

    def sync(self, upstream: int, downstream: int) -> None:
        newest = Sync(upstream, downstream)
        if not self.started or not self.slots or self.slots[0].upstream > upstream:
            self.slots = [newest] * SLOTS
        else:
            self.slots = _insert(self.slots, newest)


def _insert(old: list[Sync], newest: Sync) -> list[Sync]:
    slots = [newest, *old[1:]]
    candidate, position = newest, 0
    for slot in range(1, SLOTS):
        before = slot - 1
        while True:
            sync = old[position]
            distinct = _is_worth_keeping(slots[before], sync, before)
            fits = (
                distinct
                and _is_within_distance(slots[before], sync, before, slot)
                and (slot + 1 == SLOTS or _is_worth_keeping(sync, slots[slot + 1], slot))
            )
            useless = not distinct or (position + 1 < SLOTS and sync is old[position + 1])
            if fits:
                candidate = sync
            if fits or useless:
                position += 1
            if not useless or position >= slot:
                break
        if _is_within_distance(slots[before], slots[slot], before, slot):
            break
        slots[slot] = candidate
    return slots


def _is_within_distance(younger: Sync, older: Sync, i: int, j: int) -> bool:
    """Return whether the syncs are close enough for slots i and j."""
    return younger is older or younger.upstream <= older.upstream + 2**j - 2**i


def _is_worth_keeping(younger: Sync, older: Sync, i: int) -> bool:
    """Return whether the syncs are far enough apart to occupy both slots."""
    return younger is older or younger.upstream >= older.upstream + 2 ** max(i - 2, 0)
