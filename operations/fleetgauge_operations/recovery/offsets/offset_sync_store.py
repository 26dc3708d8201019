"""What is known of one mirrored partition, for as long as its topics live.

A mirror copies in order, so a checkpoint bounds what it does not name: records before it at the source lie
before it at the destination, records after it after. That ends where offsets go back:

- The source's alone: the mirror has begun again, and copies some records twice. Each copy is bounded by
  itself.
- The destination's: it has lost its end, which a broker may that leads without having been in sync.
- The source's end, seen by a watermark, or a topic's id: nothing known before is of any use.

One thing cannot be seen: a mirror that begins again at a record that it had copied and not told of. Until it
has copied again all that it had, such a record may lie earlier than what is known says.
"""

from fleetgauge_operations.recovery.offsets.checkpoint import (
    Checkpoint,
    Log,
    Origin,
    Route,
    TopicIds,
)
from fleetgauge_operations.recovery.offsets.replication_runs import Change, Consumed, Copies
from fleetgauge_operations.recovery.offsets.watermarks import Watermarks


class History:
    """Rows come in the order in which each origin told them; the origins among each other in any."""

    __slots__ = ("_copies", "_newest", "_told", "_watermarks", "epoch", "forgotten", "ids", "route")

    def __init__(self, route: Route, ids: TopicIds | None) -> None:
        self.route = route
        self.ids = ids
        """None: nobody knows them, so that a log that was cut cannot be told from another one."""
        self.epoch = 0
        self.forgotten = 0
        """How many checkpoints were of no use any more."""
        self._forget()

    def _forget(self) -> None:
        self._copies = Copies()
        self._watermarks = Watermarks()
        self._told: dict[Origin, Checkpoint] = {}
        self._newest: Checkpoint | None = None

    @property
    def count(self) -> int:
        """How many checkpoints are known and of use."""
        return len(self._copies)

    @property
    def newest(self) -> Checkpoint | None:
        """The row that came last; its age is how stale all of this may be."""
        return self._newest

    @property
    def last_sync(self) -> Checkpoint | None:
        """The one that MirrorMaker told last."""
        return self._told.get(Origin.SYNC)

    @property
    def latest_watermark(self) -> Checkpoint | None:
        """Its ``src_offset`` is the source's end, as it was seen last."""
        return self._watermarks.latest

    @property
    def copied_until(self) -> int:
        """All of the source before it is known to have arrived."""
        known = (self._told.get(one) for one in Origin if one is not Origin.FENCE)
        return max((one.src_offset + one.origin.names_a_record for one in known if one), default=0)

    def end_seen_before(self, src_offset: int) -> Checkpoint | None:
        """The latest look at which the source ended there or before."""
        return self._watermarks.at_most(src_offset)

    @property
    def copied_again(self) -> bool:
        """Whether some records are known to be there twice."""
        return self._copies.count > 1

    @property
    def unfinished(self) -> bool:
        """Whether an earlier copy is known to reach further than the last one yet does."""
        return self._copies.unfinished

    def renew(self, ids: TopicIds) -> Change:
        """Say which topics it is about now."""
        if ids == self.ids:
            return Change.KNOWN
        self.ids = ids
        self.epoch += 1
        return self._made_anew()

    def expire(self, log_start: int) -> None:
        """Forget copies of which nothing can be read any more, so that lookups stay short."""
        known = self.count
        self._copies.expire(log_start)
        self.forgotten += known - self.count

    def append(self, row: Checkpoint) -> Change:
        """Take one more row in. All changes but the first two begin a new epoch."""
        last = self._told.get(row.origin)
        if last and last[:2] == row[:2]:
            return Change.KNOWN
        change = self._with_record(row) if row.origin.names_a_record else self._with_watermark(row)
        if change not in (Change.KNOWN, Change.ADDED):
            self.epoch += 1
        self._told[row.origin] = self._newest = row
        return change

    def _with_record(self, row: Checkpoint) -> Change:
        last = self._told.get(row.origin)
        goes_back = last is not None and row.dst_offset <= last.dst_offset
        change = None if goes_back or self._watermarks.contradict(row) else self._copies.add(row)
        if change is None:
            change = self._gone_from(row.dst_offset)
            self._copies.add(row)
        if change is Change.COPIED_AGAIN and self._copies.brings_new:
            # No log had it when a watermark was taken that says it had.
            self._watermarks.forget_before()
        return change

    def _with_watermark(self, row: Checkpoint) -> Change:
        change, latest = Change.ADDED, self._watermarks.latest
        if self._copies.contradicts(row) or (latest and row.src_offset < latest.src_offset):
            change = self._made_anew()
        elif latest and row.dst_offset < latest.dst_offset:
            change = self._gone_from(row.dst_offset)
        self._watermarks.add(row)
        return change

    def _gone_from(self, dst_offset: int) -> Change:
        if self.ids is None:
            return self._made_anew()
        known = self.count
        self._copies.cut(dst_offset)
        self._watermarks.cut(dst_offset)
        self._told = {origin: one for origin, one in self._told.items() if one.dst_offset < dst_offset}
        self.forgotten += known - self.count
        return Change.CUT

    def _made_anew(self) -> Change:
        self.forgotten += self.count
        self._forget()
        return Change.MADE_ANEW

    def consumed(self, position: int) -> Consumed | None:
        """What lies before that destination offset, up to the first that is known to come only later."""
        return self._copies.consumed(position)

    def floor(self, src_offset: int, log: Log) -> Checkpoint | None:
        """A checkpoint at or before it, before which nobody can read that record or a later one of the
        source."""
        return self._copies.floor(src_offset, log)

    def newest_floor(self, src_offset: int, log: Log) -> Checkpoint | None:
        """As ``floor``, of the last copy that has one: an earlier copy may hold more than that one yet
        does."""
        return self._copies.newest_floor(src_offset, log)

    def watermark_before(self, dst_offset: int) -> Checkpoint | None:
        """All that the source holds before its ``src_offset`` lies before that destination offset."""
        return self._watermarks.before(dst_offset)

    def watermark_after(self, src_offset: int, log: Log) -> Checkpoint | None:
        """Before its ``dst_offset`` nobody can read that record or a later one of the source."""
        return self._watermarks.after(src_offset, log.end)

    def next_from(self, dst_offset: int) -> Checkpoint | None:
        """The first checkpoint at or after it at the destination."""
        return self._copies.next_from(dst_offset)

    def ceiling(self, src_offset: int, log: Log) -> Checkpoint | None:
        """The first checkpoint at or after it at the source that can be read."""
        return self._copies.ceiling(src_offset, log)
