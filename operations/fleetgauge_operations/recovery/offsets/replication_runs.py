"""Checkpoints of one mirrored partition, copy by copy.

A mirror that begins again at an older source offset copies some records twice. Within each copy both
offsets ascend, and each follows the one before it at the destination.
"""

from array import array
from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from enum import StrEnum
from typing import NamedTuple

from fleetgauge_operations.recovery.offsets.checkpoint import Checkpoint, Log, Origin

_ORIGINS = tuple(Origin)


class Change(StrEnum):
    """What a row made of what was known."""

    KNOWN = "known"
    ADDED = "added"
    COPIED_AGAIN = "copied_again"
    """The mirror had begun again. What was known stays true of the earlier copies."""
    CUT = "cut"
    """The destination has lost its end, and what was known of that is forgotten."""
    MADE_ANEW = "made_anew"
    """Offsets mean something else than before, and all that was known is forgotten."""


class Copy:
    """Never empty. Arrays, as there are millions of rows; lookups are binary searches."""

    __slots__ = ("_dst", "_observed_ms", "_origin", "_src", "is_cut")

    def __init__(self, first: Checkpoint) -> None:
        self.is_cut = False
        """What lay behind its last checkpoint is gone, and may not have been copied again."""
        self._src = array("q", (first.src_offset,))
        self._dst = array("q", (first.dst_offset,))
        self._observed_ms = array("q", (first.observed_ms,))
        self._origin = array("b", (_ORIGINS.index(first.origin),))

    def __len__(self) -> int:
        return len(self._src)

    def __getitem__(self, index: int) -> Checkpoint:
        origin = _ORIGINS[self._origin[index]]
        return Checkpoint(self._src[index], self._dst[index], self._observed_ms[index], origin)

    @property
    def last_src(self) -> int:
        return self._src[-1]

    @property
    def last_dst(self) -> int:
        return self._dst[-1]

    def append(self, row: Checkpoint) -> None:
        """Both offsets lie beyond the last."""
        self._src.append(row.src_offset)
        self._dst.append(row.dst_offset)
        self._observed_ms.append(row.observed_ms)
        self._origin.append(_ORIGINS.index(row.origin))

    def insert(self, row: Checkpoint) -> Change | None:
        """None if it contradicts its neighbours."""
        at = bisect_left(self._dst, row.dst_offset)
        if at < len(self) and self._dst[at] == row.dst_offset:
            return Change.KNOWN if self._src[at] == row.src_offset else None
        if at and self._src[at - 1] >= row.src_offset:
            return None
        if at < len(self) and self._src[at] <= row.src_offset:
            return None
        self._src.insert(at, row.src_offset)
        self._dst.insert(at, row.dst_offset)
        self._observed_ms.insert(at, row.observed_ms)
        self._origin.insert(at, _ORIGINS.index(row.origin))
        return Change.ADDED

    def cut(self, dst_offset: int) -> None:
        """Forget what lies there or after."""
        at = bisect_left(self._dst, dst_offset)
        for column in (self._src, self._dst, self._observed_ms, self._origin):
            del column[at:]
        self.is_cut = True

    def floor_src(self, src_offset: int, end: int) -> Checkpoint | None:
        """The latest at or before it at the source, of those that lie before ``end``."""
        at = min(bisect_right(self._src, src_offset), bisect_left(self._dst, end))
        return self[at - 1] if at else None

    def floor_dst(self, dst_offset: int) -> Checkpoint | None:
        """The latest at or before it at the destination."""
        at = bisect_right(self._dst, dst_offset)
        return self[at - 1] if at else None

    def ceiling_src(self, src_offset: int) -> Checkpoint | None:
        """The first at or after it at the source."""
        at = bisect_left(self._src, src_offset)
        return self[at] if at < len(self) else None

    def ceiling_dst(self, dst_offset: int) -> Checkpoint | None:
        """The first at or after it at the destination."""
        at = bisect_left(self._dst, dst_offset)
        return self[at] if at < len(self) else None

    def src_of_nth_after(self, src_offset: int, n: int) -> int | None:
        """Of the nth checkpoint beyond that source offset."""
        at = bisect_right(self._src, src_offset) + n - 1
        return self._src[at] if at < len(self) else None


class Consumed(NamedTuple):
    """All of a source before ``next_src`` is, or will never arrive; ``by``: from which that follows."""

    next_src: int
    by: Checkpoint


class Copies:
    """All copies of one source in one log, in the order in which they lie there."""

    __slots__ = ("_copies", "_unseen_src")

    def __init__(self) -> None:
        self._copies: list[Copy] = []
        self._unseen_src = 0
        """Records before it may lie where nothing is known of any more."""

    def __len__(self) -> int:
        return sum(map(len, self._copies))

    @property
    def count(self) -> int:
        """How many copies are known of."""
        return len(self._copies)

    @property
    def unfinished(self) -> bool:
        """Whether an earlier copy is known to reach further than the last."""
        return any(copy.last_src > self._copies[-1].last_src for copy in self._copies)

    @property
    def brings_new(self) -> bool:
        """Whether the last copy begins with what no earlier one is known to have had."""
        begin = self._copies[-1][0].src_offset
        return not any(copy[0].src_offset <= begin <= copy.last_src + 1 for copy in self._copies[:-1])

    def add(self, row: Checkpoint) -> Change | None:
        """None if it contradicts what is known."""
        if not self._copies:
            self._copies.append(Copy(row))
            return Change.ADDED
        last = self._copies[-1]
        if row.dst_offset <= last.last_dst:
            return self._insert(row)
        if row.src_offset > last.last_src and not last.is_cut:
            last.append(row)
            return Change.ADDED
        self._copies.append(Copy(row))
        return Change.COPIED_AGAIN

    def _insert(self, row: Checkpoint) -> Change | None:
        """Of an origin that is slower to tell: it ends a copy, begins the next one, or lies within."""
        at = sum(copy[0].dst_offset <= row.dst_offset for copy in self._copies)
        near = self._copies[max(at - 1, 0) : at + 1]
        return next((change for copy in near if (change := copy.insert(row))), None)

    def cut(self, dst_offset: int) -> None:
        """Forget what lies there or after. What comes next may be copied again, of what was not told."""
        first = self._copies[0][0] if self._copies else None
        self._copies = [copy for copy in self._copies if copy[0].dst_offset < dst_offset]
        if self._copies:
            self._copies[-1].cut(dst_offset)
        elif first:
            self._unseen_src = max(self._unseen_src, first.src_offset)

    def expire(self, dst_offset: int) -> None:
        """Forget copies that lie before it as a whole."""
        while len(self._copies) > 1 and self._copies[1][0].dst_offset <= dst_offset:
            del self._copies[0]

    def consumed(self, position: int) -> Consumed | None:
        """What lies before that destination offset, up to the first that is known to come only later.

        A mirror may begin again before what its log holds, and bring what that never had.
        """
        behind = sum(copy[0].dst_offset <= position for copy in self._copies)
        reached = [one for copy in self._copies[:behind] if (one := copy.floor_dst(position))]
        if not reached:
            return None
        # The record at the position itself is still to be read.
        ends = [one.src_offset + (one.dst_offset < position) for one in reached]
        begins = [copy[0] for copy in self._copies]
        done = sorted(zip((one.src_offset for one in begins), ends, strict=False))
        to_come = [ends[-1], *(one.src_offset for one in begins[behind:])]
        next_src = min(_first_not_in(done, one) for one in to_come)
        known = [one for one in (*reached, *begins[behind:]) if one.src_offset <= next_src]
        return Consumed(next_src, max(known, key=lambda one: (one.src_offset, -one.dst_offset)))

    def floor(self, src_offset: int, log: Log) -> Checkpoint | None:
        """A checkpoint at or before it, before which nobody can read that record or a later one of the
        source."""
        found = None
        if src_offset < self._unseen_src:
            return None
        for number, copy in enumerate(self._copies):
            here = copy.floor_src(src_offset, log.end)
            found = here or found
            if not (self._is_gone(number, log) or (here and self._is_passed(number, src_offset))):
                break
        return found

    def newest_floor(self, src_offset: int, log: Log) -> Checkpoint | None:
        """The latest at or before it, in the last copy that has one."""
        found = (copy.floor_src(src_offset, log.end) for copy in reversed(self._copies))
        return next((one for one in found if one), None)

    def ceiling(self, src_offset: int, log: Log) -> Checkpoint | None:
        """The first at or after it that can be read."""
        found = (copy.ceiling_src(max(src_offset, self._first_kept(copy, log))) for copy in self._copies)
        return next((one for one in found if one and one.dst_offset < log.end), None)

    def next_from(self, dst_offset: int) -> Checkpoint | None:
        """The first at or after that destination offset."""
        found = (copy.ceiling_dst(dst_offset) for copy in self._copies)
        return next((one for one in found if one), None)

    def contradicts(self, watermark: Checkpoint) -> bool:
        """Whether a record that was to lie after it is known before it."""
        beyond = (copy.ceiling_src(watermark.src_offset) for copy in self._copies)
        return any(one and one.dst_offset < watermark.dst_offset for one in beyond)

    def _first_kept(self, copy: Copy, log: Log) -> int:
        kept = copy.ceiling_dst(log.start)
        return kept.src_offset if kept else copy[-1].src_offset + 1

    def _is_gone(self, number: int, log: Log) -> bool:
        """Whether all of a copy lies before the log's start."""
        following = self._copies[number + 1 : number + 2]
        return any(copy[0].dst_offset <= log.start for copy in following)

    def _is_passed(self, number: int, src_offset: int) -> bool:
        """Whether a copy is known to hold nothing from that source offset on.

        After its last checkpoint there is room for so many records, and it copied them in order.
        Checkpoints of later copies name records that it would have had to copy first: beyond the last of as
        many it cannot have come.
        """
        copy, later = self._copies[number], self._copies[number + 1 :]
        if not later or copy.last_src >= src_offset:
            return False
        room = later[0][0].dst_offset - copy.last_dst - 1
        if not room or copy.is_cut:
            return not room
        reach = (one.src_of_nth_after(copy.last_src, room) for one in later)
        return any(one is not None and one < src_offset for one in reach)


def _first_not_in(spans: Sequence[tuple[int, int]], src_offset: int) -> int:
    """The first from that offset on; ``spans``: from, to before, in order."""
    for begin, end in spans:
        if begin <= src_offset:
            src_offset = max(src_offset, end)
    return src_offset
