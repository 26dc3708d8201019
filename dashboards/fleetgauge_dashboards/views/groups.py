"""Assess what a failover of each consumer group would cost now, and since when the group is ready or not."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from math import inf

import pyarrow as pa
import pyarrow.compute as pc

from fleetgauge_dashboards.links import MINUTE
from fleetgauge_dashboards.reader.table import Row
from fleetgauge_dashboards.views.freshness import STALE_AFTER
from fleetgauge_dashboards.views.recovery_freshness import select_latest_rows

_KEY = ("active", "passive", "group_id")

#: The text of each reason that makes a group not ready, by its name in tables and in JSON.
REASON_TEXTS = {
    "connected": "the group has active members there",
    "unknown_topic": "the topic does not exist there",
    "made_anew": "the topic was deleted and created again",
    "stale": "replication has stalled",
    "unbounded": "no offset mapping at or before its position",
    "possible_loss": "unread records may be missing there",
    "backwards": "its committed offset there is further ahead",
    "failed": "its offset could not be committed",
    "replay": "too many records would be consumed twice",
    "loss": "too many records would be lost",
    "unknown_lag": "the replication lag is unknown",
    "nothing_committed": "it has committed no offset",
    "not_written": "its offsets are not being synced there",
    "producers_cut_off": "producers cannot reach the cluster",
    "headroom": "not enough capacity for the load there",
}


@dataclass(frozen=True, slots=True)
class GroupReadiness:
    """A consumer group at ``until``, the end of its pair's newest minute; None where a value is unknown.

    The group has been ready, or not ready, without a break from ``since`` on; with ``or_before`` it may have
    been so earlier, because the rows that were read begin there. ``*_at_most`` are upper bounds in records or
    seconds.
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


def describe_reason(reason: str) -> str:
    """Return the text of a reason; an unknown reason is its own text."""
    return REASON_TEXTS.get(reason, reason)


def parse_reasons(text: str | None) -> tuple[str, ...]:
    """Return the reasons in a column ``reasons``, which are separated by commas."""
    return tuple(word for part in (text or "").split(",") if (word := part.strip()))


def latest_group_readiness(
    rows: pa.Table, pairs: Sequence[tuple[str, str]] = ()
) -> tuple[GroupReadiness, ...]:
    """Return the newest readiness of each consumer group, worst first.

    Groups are those of the ``pairs`` in the fleet file, or of all pairs if there are none. A group that is
    missing from its pair's newest minutes no longer exists and is left out.
    """
    parts = [_of_pair(rows, pair) for pair in sorted(set(pairs))] or [rows]
    newest = [row for part in parts for row in select_latest_rows(part, _KEY)]
    until: dict[tuple[str, str], datetime] = {}
    for row in newest:
        pair = (row["active"], row["passive"])
        until[pair] = max(until.get(pair, row["minute"]), row["minute"])
    since, oldest = _since(rows), pc.min(rows["minute"]).as_py()
    groups = [
        _group(row, since[row["active"], row["passive"], row["group_id"]], oldest)
        for row in newest
        if until[row["active"], row["passive"]] - row["minute"] <= STALE_AFTER
    ]
    return sort_groups_worst_first(groups)


def _of_pair(rows: pa.Table, pair: tuple[str, str]) -> pa.Table:
    active, passive = (pc.equal(rows[name], cluster) for name, cluster in zip(_KEY[:2], pair, strict=True))
    return rows.filter(pc.and_(active, passive))


def sort_groups_worst_first(groups: Iterable[GroupReadiness]) -> tuple[GroupReadiness, ...]:
    """Return the groups, worst first.

    Not ready comes before unknown before ready, then more records lost, then more consumed again.
    """
    return tuple(
        sorted(
            groups,
            key=lambda group: (
                {False: 0, None: 1, True: 2}[group.ready],
                -_or_infinity(group.lost_at_most),
                -_or_infinity(group.replay_at_most),
                group.active,
                group.passive,
                group.group_id,
            ),
        )
    )


def _or_infinity(records: int | None) -> float:
    """Return infinity for an unknown number of records, which may be any."""
    return inf if records is None else records


def _group(row: Row, since: datetime, oldest: datetime) -> GroupReadiness:
    return GroupReadiness(
        active=row["active"],
        passive=row["passive"],
        group_id=row["group_id"],
        until=row["minute"] + MINUTE,
        ready=row["ready"],
        reasons=parse_reasons(row["reasons"]),
        replay=row["replay"],
        replay_at_most=row["replay_at_most"],
        lost_at_most=row["lost_at_most"],
        lost_s_at_most=row["lost_s_at_most"],
        rto_ms=row["rto_ms"],
        since=since,
        or_before=since - oldest <= STALE_AFTER,
    )


def _since(rows: pa.Table) -> dict[tuple[str, ...], datetime]:
    """Return for each group the first minute of its current run of equal readiness; a long gap ends a run."""
    if not len(rows):
        return {}
    names = (*_KEY, "minute", "ready")
    ordered = rows.select(names).sort_by([(name, "ascending") for name in names[:-1]]).combine_chunks()
    begins = pa.concat_arrays([pa.array([True]), pc.invert(_continues_run(ordered)).combine_chunks()])
    last = ordered.filter(begins).group_by(list(_KEY)).aggregate([("minute", "max")])
    return {tuple(row[name] for name in _KEY): row["minute_max"].astimezone(UTC) for row in last.to_pylist()}


def _continues_run(ordered: pa.Table) -> pa.ChunkedArray:
    """Return for each row but the first whether it continues the run of the row before it.

    That is, it has the same group and readiness and follows soon after.
    """
    before, after = ordered.slice(0, len(ordered) - 1), ordered.slice(1)
    is_adjacent = pc.less_equal(
        pc.subtract(after["minute"], before["minute"]), pa.scalar(STALE_AFTER, pa.duration("us"))
    )
    same_key: Sequence[pa.ChunkedArray] = [pc.equal(before[name], after[name]) for name in _KEY]
    ready_values = [pc.fill_null(pc.cast(part["ready"], pa.int8()), -1) for part in (before, after)]
    continues = pc.and_(is_adjacent, pc.equal(*ready_values))
    for is_same in same_key:
        continues = pc.and_(continues, is_same)
    return continues
