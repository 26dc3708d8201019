"""Whether two clusters hold the same of what both are copies of, partition by partition. Pure."""

from collections.abc import Sequence
from dataclasses import dataclass

from fleetgauge_core.fleet.recovery import Recovery
from fleetgauge_operations.recovery.offsets.checkpoint import Route
from fleetgauge_operations.recovery.offsets.mirror_state import Known
from fleetgauge_operations.recovery.offsets.offset_sync_store import History
from fleetgauge_operations.recovery.plan.sync_decision import Pair


@dataclass(frozen=True, slots=True)
class Copied:
    """What a cluster has of a source's partition: all before ``until``, as far as is known.

    ``in_window``: how many of the records that came to the source since the window began; None if nobody had
    looked by then. ``silent_s``: for how long the mirror has neither copied it nor had nothing to copy.
    """

    until: int
    in_window: int | None
    silent_s: float | None


@dataclass(frozen=True, slots=True)
class Comparison:
    """One partition of a source in two clusters. None: nobody knows."""

    source: str
    topic: str
    partition: int
    active: Copied | None
    passive: Copied | None

    @property
    def apart(self) -> int | None:
        """By how many of the source's records the two differ, those of before the window too."""
        return abs(self.active.until - self.passive.until) if self.active and self.passive else None

    @property
    def silent_s(self) -> float | None:
        """Of the mirror of which that is longer."""
        both = [one.silent_s if one else None for one in (self.active, self.passive)]
        heard = [one for one in both if one is not None]
        return max(heard) if len(heard) == len(both) else None


@dataclass(frozen=True, slots=True)
class _End:
    """What a cluster has, before it is known when the window began."""

    until: int
    heard_ms: int | None
    history: History | None


def compared(pair: Pair, recovery: Recovery, known: Known, now_ms: int, window_s: float) -> list[Comparison]:
    """Of all partitions that both are copies of, or one of the other, but for our own tracers'."""
    found = []
    for source in sorted(recovery.in_common(pair.active, pair.passive)):
        for topic, partition in sorted(_partitions(source, pair, recovery, known)):
            both = [
                _copy(Route(source, cluster, topic, partition), known, now_ms, recovery.limits.stale_s)
                for cluster in (pair.active, pair.passive)
            ]
            found.append(_comparison(source, topic, partition, both, now_ms, window_s))
    if recovery.between(pair.active, pair.passive):
        for history in mirrored(pair.active, pair.passive, recovery, known):
            route = history.route
            both = [_original(history, known), _copied(history, known)]
            found.append(_comparison(route.source, route.topic, route.partition, both, now_ms, window_s))
    return found


def mirrored(source: str, destination: str, recovery: Recovery, known: Known) -> list[History]:
    """Of each partition that is known to be copied, but for our own tracers'."""
    own = recovery.tracers.topic if recovery.tracers else None
    return [one for one in known.between(source, destination) if one.route.topic != own]


def end_at(history: History, at_ms: int) -> int | None:
    """Where the source ended at the last look until then; None if nobody had looked."""
    latest = history.latest_watermark
    if latest is None:
        return None
    found, low, high = None, 0, latest.src_offset
    # The later a look, the later the end: the last end of which the look is not too late.
    while low <= high:
        middle = (low + high) // 2
        seen = history.end_seen_before(middle)
        if seen and seen.observed_ms > at_ms:
            high = seen.src_offset - 1
        else:
            found, low = seen or found, middle + 1
    return found.src_offset if found else None


def _partitions(source: str, pair: Pair, recovery: Recovery, known: Known) -> set[tuple[str, int]]:
    mirrors = [recovery.between(source, cluster) for cluster in (pair.active, pair.passive)]
    return {
        (one.route.topic, one.route.partition)
        for cluster in (pair.active, pair.passive)
        for one in mirrored(source, cluster, recovery, known)
        if all(mirror and mirror.takes(one.route.topic) for mirror in mirrors)
    }


def _comparison(
    source: str, topic: str, partition: int, both: Sequence[_End | None], now_ms: int, window_s: float
) -> Comparison:
    histories = [one.history for one in both if one and one.history]
    if len({one.ids.source for one in histories if one.ids}) > 1:
        # One of them is still about the topic that had the name before.
        return Comparison(source, topic, partition, None, None)
    seen = [end_at(one, now_ms - round(1000 * window_s)) for one in histories]
    begin = max((one for one in seen if one is not None), default=None)
    active, passive = (_since(one, begin, now_ms) if one else None for one in both)
    return Comparison(source, topic, partition, active, passive)


def _since(end: _End, begin: int | None, now_ms: int) -> Copied:
    in_window = None if begin is None else max(0, end.until - begin)
    return Copied(end.until, in_window, None if end.heard_ms is None else (now_ms - end.heard_ms) / 1000)


def _copy(route: Route, known: Known, now_ms: int, stale_s: float) -> _End | None:
    history = known.history(route)
    if history:
        return _copied(history, known)
    looked_ms = known.looked_ms(route.source, route.destination)
    if looked_ms is None or now_ms - looked_ms > 1000 * stale_s:
        return None
    # It was looked at, and there is no such topic there yet.
    return _End(0, looked_ms, None)


def _copied(history: History, known: Known) -> _End | None:
    if history.latest_watermark is None:
        return None
    return _End(history.copied_until, known.kept_up_ms(history.route), history)


def _original(history: History, known: Known) -> _End | None:
    """The source itself has all until its end."""
    latest, route = history.latest_watermark, history.route
    looked_ms = known.looked_ms(route.source, route.destination)
    return _End(latest.src_offset, looked_ms, history) if latest else None
