"""Watermarks of one mirrored partition, with both offsets in ascending order."""

from array import array
from bisect import bisect_right

from fleetgauge_operations.recovery.offsets.checkpoint import Checkpoint, CheckpointOrigin


class Watermarks:
    """Watermarks and fences in two lists, because each half of a watermark answers another question.

    An idle source produces a watermark with every observation. Of those at one source offset, the latest is
    the tightest bound for later records and the earliest is the tightest for earlier records; the others are
    dropped.
    """

    __slots__ = ("_after", "_before", "_latest")

    def __init__(self) -> None:
        self._after = _OffsetPairs(CheckpointOrigin.FENCE)
        self._before = _OffsetPairs(CheckpointOrigin.IDLE_WATERMARK)
        self._latest: Checkpoint | None = None

    @property
    def latest(self) -> Checkpoint | None:
        """The watermark or fence added last."""
        return self._latest

    def append(self, watermark: Checkpoint) -> None:
        """Add a watermark or fence, neither of whose offsets is lower than the latest one's."""
        self._latest = watermark
        if self._after.ends_at(watermark.src_offset):
            self._after.truncate(-1)
        self._after.append(watermark)
        if watermark.origin is CheckpointOrigin.IDLE_WATERMARK and not self._before.ends_at(
            watermark.src_offset
        ):
            self._before.append(watermark)

    def truncate(self, dst_offset: int) -> None:
        """Discard the watermarks beyond that destination offset."""
        for pairs in (self._after, self._before):
            pairs.truncate(pairs.count_dst(dst_offset))
        self._latest = self._after.get_last(len(self._after))

    def discard_lower_halves(self) -> None:
        """Discard what the watermarks state about records before them."""
        self._before.truncate(0)

    def is_contradicted_by(self, record: Checkpoint) -> bool:
        """Return whether a record that must lie after a watermark lies before it."""
        if self._latest is None:
            return False
        watermark = self.at_or_before(record.src_offset)
        return watermark is not None and record.dst_offset < watermark.dst_offset

    def at_or_before(self, src_offset: int) -> Checkpoint | None:
        """Return the latest watermark or fence at or before that source offset."""
        return self._after.get_last(self._after.count_src(src_offset))

    def after(self, src_offset: int, end: int) -> Checkpoint | None:
        """Return the latest watermark or fence that bounds records from that source offset on.

        None of these records lies before its ``dst_offset``, which is at most ``end``.
        """
        return self._after.get_last(min(self._after.count_src(src_offset), self._after.count_dst(end)))

    def before(self, dst_offset: int) -> Checkpoint | None:
        """Return the latest watermark at or before that destination offset.

        All records before its ``src_offset`` lie before that destination offset, if they are replicated.
        """
        return self._before.get_last(self._before.count_dst(dst_offset))


class _OffsetPairs:
    """Ascending pairs of offsets in arrays, which are compact and can be searched by bisection."""

    __slots__ = ("_dst", "_observed_ms", "_origin", "_src")

    def __init__(self, origin: CheckpointOrigin) -> None:
        self._origin = origin
        self._src, self._dst, self._observed_ms = array("q"), array("q"), array("q")

    def append(self, watermark: Checkpoint) -> None:
        self._src.append(watermark.src_offset)
        self._dst.append(watermark.dst_offset)
        self._observed_ms.append(watermark.observed_ms)

    def __len__(self) -> int:
        return len(self._src)

    def truncate(self, count: int) -> None:
        """Keep the first ``count`` pairs, or all but the last ``-count`` if it is negative."""
        for column in (self._src, self._dst, self._observed_ms):
            del column[count:]

    def ends_at(self, src_offset: int) -> bool:
        return bool(self._src) and self._src[-1] == src_offset

    def count_src(self, src_offset: int) -> int:
        return bisect_right(self._src, src_offset)

    def count_dst(self, dst_offset: int) -> int:
        return bisect_right(self._dst, dst_offset)

    def get_last(self, count: int) -> Checkpoint | None:
        """Return the last of the first ``count`` pairs."""
        if not count:
            return None
        index = count - 1
        return Checkpoint(self._src[index], self._dst[index], self._observed_ms[index], self._origin)
