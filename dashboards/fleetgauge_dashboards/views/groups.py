"""What a failover of each group would cost now, and since when it is ready or not."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from math import inf

import pyarrow as pa
import pyarrow.compute as pc

from fleetgauge_dashboards.links import MINUTE
from fleetgauge_dashboards.reader.table import Row
from fleetgauge_dashboards.views.freshness import STALE_AFTER
from fleetgauge_dashboards.views.recovery_freshness import newest_of_each

_KEY = ("active", "passive", "group_id")

#: What speaks against a group, by the name that tables and scripts have for it.
REASONS = {
    "connected": "somebody reads in the group there",
    "unknown_topic": "no such topic there",
    "made_anew": "its topic was made anew",
    "stale": "the mirror stands still",
    "unbounded": "nothing is known at or before its position",
    "possible_loss": "what it has not read may be gone there",
    "backwards": "it lies further on there",
    "failed": "its position could not be written",
    "replay": "it would read more again than the limit",
    "loss": "more would be lost than the limit",
    "unknown_lag": "nobody knows what has got across",
    "nothing_committed": "it has committed nothing",
    "not_written": "nobody writes its position there",
    "producers_cut_off": "producers could not go on there",
    "headroom": "the load would be too much there",
}


@dataclass(frozen=True, slots=True)
class GroupNow:
    """A group at the end of its pair's newest minute, ``until``; None: nobody knows.

    ``since``: from when on it was told to be ready, or not, without a break; ``or_before``: it may have been
    so earlier, for what is read begins then.
    """

    active: str
    passive: str
    group_id: str
    until: datetime
    ready: bool | None
    reasons: tuple[str, ...]
    replay: int | None
    replay_at_most: int | None
    lost_at_most: int | None
    lost_s_at_most: float | None
    rto_ms: int | None
    since: datetime
    or_before: bool


def in_words(reason: str) -> str:
    return REASONS.get(reason, reason)


def reasons_of(text: str | None) -> tuple[str, ...]:
    """Of a column ``reasons``."""
    return tuple(word for part in (text or "").split(",") if (word := part.strip()))


def groups_now(rows: pa.Table, pairs: Sequence[tuple[str, str]] = ()) -> tuple[GroupNow, ...]:
    """Of the ``pairs`` of the fleet file, or without any of those that were told of lately; worst first.

    Of each pair those that its own newest minute tells of: others are gone.
    """
    parts = [_of_pair(rows, pair) for pair in sorted(set(pairs))] or [rows]
    newest = [row for part in parts for row in newest_of_each(part, _KEY)]
    until: dict[tuple[str, str], datetime] = {}
    for row in newest:
        pair = (row["active"], row["passive"])
        until[pair] = max(until.get(pair, row["minute"]), row["minute"])
    since, oldest = _since(rows), pc.min(rows["minute"]).as_py()
    found = [
        _group(row, since[row["active"], row["passive"], row["group_id"]], oldest)
        for row in newest
        if until[row["active"], row["passive"]] - row["minute"] <= STALE_AFTER
    ]
    return worst_first(found)


def _of_pair(rows: pa.Table, pair: tuple[str, str]) -> pa.Table:
    active, passive = (pc.equal(rows[name], one) for name, one in zip(_KEY[:2], pair, strict=True))
    return rows.filter(pc.and_(active, passive))


def worst_first(groups: Iterable[GroupNow]) -> tuple[GroupNow, ...]:
    """Not ready before what nobody knows before ready; then by what may be lost, and read again."""
    return tuple(
        sorted(
            groups,
            key=lambda one: (
                {False: 0, None: 1, True: 2}[one.ready],
                -_or_all(one.lost_at_most),
                -_or_all(one.replay_at_most),
                one.active,
                one.passive,
                one.group_id,
            ),
        )
    )


def _or_all(records: int | None) -> float:
    """What nobody knows may be any number."""
    return inf if records is None else records


def _group(row: Row, since: datetime, oldest: datetime) -> GroupNow:
    return GroupNow(
        active=row["active"],
        passive=row["passive"],
        group_id=row["group_id"],
        until=row["minute"] + MINUTE,
        ready=row["ready"],
        reasons=reasons_of(row["reasons"]),
        replay=row["replay"],
        replay_at_most=row["replay_at_most"],
        lost_at_most=row["lost_at_most"],
        lost_s_at_most=row["lost_s_at_most"],
        rto_ms=row["rto_ms"],
        since=since,
        or_before=since - oldest <= STALE_AFTER,
    )


def _since(rows: pa.Table) -> dict[tuple[str, ...], datetime]:
    """Of each group the first minute of its last run of the same answer; a long silence ends a run."""
    if not len(rows):
        return {}
    names = (*_KEY, "minute", "ready")
    ordered = rows.select(names).sort_by([(name, "ascending") for name in names[:-1]]).combine_chunks()
    begins = pa.concat_arrays([pa.array([True]), pc.invert(_goes_on(ordered)).combine_chunks()])
    last = ordered.filter(begins).group_by(list(_KEY)).aggregate([("minute", "max")])
    return {tuple(row[name] for name in _KEY): row["minute_max"].astimezone(UTC) for row in last.to_pylist()}


def _goes_on(ordered: pa.Table) -> pa.ChunkedArray:
    """Of each row but the first, whether it says what the one before says, of the same group, soon after."""
    before, after = ordered.slice(0, len(ordered) - 1), ordered.slice(1)
    soon = pc.less_equal(
        pc.subtract(after["minute"], before["minute"]), pa.scalar(STALE_AFTER, pa.duration("us"))
    )
    same: Sequence[pa.ChunkedArray] = [pc.equal(before[name], after[name]) for name in _KEY]
    answers = [pc.fill_null(pc.cast(part["ready"], pa.int8()), -1) for part in (before, after)]
    goes_on = pc.and_(soon, pc.equal(*answers))
    for one in same:
        goes_on = pc.and_(goes_on, one)
    return goes_on
