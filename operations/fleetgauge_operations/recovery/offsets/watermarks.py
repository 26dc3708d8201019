"""Watermarks of one mirrored partition: both offsets ascend, or stay."""

from array import array
from bisect import bisect_right

from fleetgauge_operations.recovery.offsets.checkpoint import Checkpoint, Origin


class Watermarks:
    """Two lists, as each half of a watermark answers a question of its own.

    An idle source has a new one with every look. Of those at one source offset, the latest says most about
    what follows and the earliest about what went before; the others are not kept.
    """

    __slots__ = ("_after", "_before", "_latest")

    def __init__(self) -> None:
        self._after = _Pairs(Origin.FENCE)
        self._before = _Pairs(Origin.IDLE_WATERMARK)
        self._latest: Checkpoint | None = None

    @property
    def latest(self) -> Checkpoint | None:
        return self._latest

    def add(self, row: Checkpoint) -> None:
        """No offset may lie before the latest's."""
        self._latest = row
        if self._after.ends_at(row.src_offset):
            self._after.keep(-1)
        self._after.append(row)
        if row.origin is Origin.IDLE_WATERMARK and not self._before.ends_at(row.src_offset):
            self._before.append(row)

    def cut(self, dst_offset: int) -> None:
        """Forget what lies after it."""
        for half in (self._after, self._before):
            half.keep(half.count_dst(dst_offset))
        self._latest = self._after.last(len(self._after))

    def forget_before(self) -> None:
        """What they say of records before them."""
        self._before.keep(0)

    def contradict(self, record: Checkpoint) -> bool:
        """Whether it was to lie after one of them, and does not."""
        if self._latest is None:
            return False
        found = self.at_most(record.src_offset)
        return found is not None and record.dst_offset < found.dst_offset

    def at_most(self, src_offset: int) -> Checkpoint | None:
        """The latest at or before that source offset."""
        return self._after.last(self._after.count_src(src_offset))

    def after(self, src_offset: int, end: int) -> Checkpoint | None:
        """Before whose ``dst_offset``, up to ``end``, lies no record from that source offset on."""
        return self._after.last(min(self._after.count_src(src_offset), self._after.count_dst(end)))

    def before(self, dst_offset: int) -> Checkpoint | None:
        """All records before whose ``src_offset`` lie before that destination offset, if they ever arrive."""
        return self._before.last(self._before.count_dst(dst_offset))


class _Pairs:
    __slots__ = ("_dst", "_observed_ms", "_origin", "_src")

    def __init__(self, origin: Origin) -> None:
        self._origin = origin
        self._src, self._dst, self._observed_ms = array("q"), array("q"), array("q")

    def append(self, row: Checkpoint) -> None:
        self._src.append(row.src_offset)
        self._dst.append(row.dst_offset)
        self._observed_ms.append(row.observed_ms)

    def __len__(self) -> int:
        return len(self._src)

    def keep(self, count: int) -> None:
        """The first so many; of all but the last ones, counted as slices do."""
        for column in (self._src, self._dst, self._observed_ms):
            del column[count:]

    def ends_at(self, src_offset: int) -> bool:
        return bool(self._src) and self._src[-1] == src_offset

    def count_src(self, src_offset: int) -> int:
        return bisect_right(self._src, src_offset)

    def count_dst(self, dst_offset: int) -> int:
        return bisect_right(self._dst, dst_offset)

    def last(self, count: int) -> Checkpoint | None:
        """The last of the first so many."""
        if not count:
            return None
        at = count - 1
        return Checkpoint(self._src[at], self._dst[at], self._observed_ms[at], self._origin)
