"""MirrorMaker 2's own memory of offset syncs and what it translates by them (Kafka's OffsetSyncStore, 4.x),
as a peer.

It has 64 places a partition. The first has the newest sync; each further one may be about twice as old as
the one before it, and keeps what it has for as long as that is so. All are overwritten when the source
rewinds, and with every sync while it still reads its topic after a start.
"""

from typing import NamedTuple

PLACES = 64


class Sync(NamedTuple):
    upstream: int
    downstream: int


class OffsetSyncStore:
    """Of one partition. ``started``: it has read its topic to the end once."""

    def __init__(self, started: bool = True) -> None:
        self.started = started
        self.places: list[Sync] = []

    def kept(self) -> list[Sync]:
        """The different ones, oldest first."""
        return list(dict.fromkeys(reversed(self.places)))

    def translate(self, upstream: int) -> int | None:
        """The offset to read next; -1 before all that is kept, None without anything."""
        if not self.started or not self.places:
            return None
        found = next((one for one in self.places if one.upstream <= upstream), None)
        if found is None:
            return -1
        return found.downstream + (found.upstream < upstream)

    def sync(self, upstream: int, downstream: int) -> None:
        newest = Sync(upstream, downstream)
        if not self.started or not self.places or self.places[0].upstream > upstream:
            self.places = [newest] * PLACES
        else:
            self.places = _updated(self.places, newest)


def _updated(old: list[Sync], newest: Sync) -> list[Sync]:
    places = [newest, *old[1:]]
    candidate, taken = newest, 0
    for here in range(1, PLACES):
        before = here - 1
        while True:
            one = old[taken]
            apart = _apart(places[before], one, before)
            fits = (
                apart
                and _near(places[before], one, before, here)
                and (here + 1 == PLACES or _apart(one, places[here + 1], here))
            )
            useless = not apart or (taken + 1 < PLACES and one is old[taken + 1])
            if fits:
                candidate = one
            if fits or useless:
                taken += 1
            if not useless or taken >= here:
                break
        if _near(places[before], places[here], before, here):
            break
        places[here] = candidate
    return places


def _near(younger: Sync, older: Sync, i: int, j: int) -> bool:
    """Not so far apart that places i and j may not hold them."""
    return younger is older or younger.upstream <= older.upstream + 2**j - 2**i


def _apart(younger: Sync, older: Sync, i: int) -> bool:
    """So far apart that both are worth a place."""
    return younger is older or younger.upstream >= older.upstream + 2 ** max(i - 2, 0)
