"""Conditions that prevent or endanger a failover now, derived from the current minute rows."""

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, Literal, NamedTuple

from fleetgauge_core.fleet.recovery import Recovery
from fleetgauge_operations.recovery.readiness.plan.minutes import MinuteRow

#: Maximum number of group ids in one line.
_MAX_NAMED = 5


class ConditionKind(StrEnum):
    """The kind of a condition, which is also the kind of its finding."""

    MIRROR_STALE = "MIRROR_STALE"
    """The mirror has made no progress for too long, although it may have records to replicate."""
    MIRROR_BEHIND = "MIRROR_BEHIND"
    """The replication lag exceeds the recovery point objective (RPO)."""
    MIRROR_LOOP = "MIRROR_LOOP"
    """Mirrors replicate records of a cluster back to it."""
    GROUPS_NOT_READY = "GROUPS_NOT_READY"
    PRODUCERS_CUT_OFF = "PRODUCERS_CUT_OFF"
    """A mirrored cluster acknowledges no tracer of a vantage."""
    NO_HEADROOM = "NO_HEADROOM"
    """A cluster lacks the capacity to take over another cluster's load."""
    PRIMARY_TWO = "PRIMARY_TWO"
    PRIMARY_NONE = "PRIMARY_NONE"
    PRIMARY_DEAD = "PRIMARY_DEAD"
    PRIMARY_UNKNOWN = "PRIMARY_UNKNOWN"
    PRIMARIES_UNREAD = "PRIMARIES_UNREAD"
    """The store of primary leases cannot be read."""

    @property
    def severity(self) -> Literal["page", "ticket"]:
        """``page`` if it needs attention at once, ``ticket`` if today is soon enough."""
        return "page" if self in _PAGES else "ticket"


_PAGES = (
    ConditionKind.MIRROR_BEHIND,
    ConditionKind.MIRROR_LOOP,
    ConditionKind.PRIMARY_TWO,
    ConditionKind.PRIMARY_NONE,
    ConditionKind.PRIMARY_DEAD,
)
#: Reasons why a group is not ready that are explained by a stale or lagging mirror.
_REASONS_OF_MIRRORS = frozenset({"stale", "unknown_lag", "loss"})


class ConditionKey(NamedTuple):
    """What identifies a condition for as long as it lasts.

    ``other`` is a second cluster, or empty. ``subject`` is what else distinguishes it, for example a service.
    """

    kind: ConditionKind
    cluster: str
    other: str = ""
    subject: str = ""


@dataclass(frozen=True, slots=True)
class ReadinessCondition:
    """A condition: ``summary`` in one line, ``details`` in more, and ``evidence``, the numbers for JSON."""

    key: ConditionKey
    summary: str
    details: tuple[str, ...] = ()
    evidence: Mapping[str, Any] = field(default_factory=dict)


def check_mirror_minute(row: MinuteRow, recovery: Recovery) -> Iterator[ReadinessCondition]:
    """Yield the conditions that a row of recovery/mirror_minutes shows."""
    source, destination = row["source"], row["destination"]
    mirror = f"mirror from {source} to {destination}"
    evidence = {name: value for name, value in row.items() if name not in ("minute", "day")}
    if row["partitions"] and not row["fresh"]:
        silence = "the progress of at least one partition is unknown"
        if row["silent_s"] is not None:
            silence = f"at least one partition has made no progress for {row['silent_s']:.0f} s"
        yield ReadinessCondition(
            ConditionKey(ConditionKind.MIRROR_STALE, source, destination),
            f"{mirror} makes no progress",
            (silence,),
            evidence,
        )
    behind_s = row["behind_s"] if row["behind_s"] is not None else row["behind_s_at_most"]
    if behind_s is not None and behind_s > recovery.objectives.rpo_s:
        yield ReadinessCondition(
            ConditionKey(ConditionKind.MIRROR_BEHIND, source, destination),
            f"{mirror} lags {behind_s:.0f} s behind, more than the RPO of {recovery.objectives.rpo_s:g} s",
            (f"a failover of {source} now would lose {_format_bound(row['behind_at_most'])} records",),
            evidence,
        )
    if row["looped"]:
        yield ReadinessCondition(
            ConditionKey(ConditionKind.MIRROR_LOOP, source),
            f"mirrors replicate records of {source} back to it in a loop",
            (f"{row['looped']} tracers were seen twice in {source}",),
            evidence,
        )


def check_group_minutes(
    active: str, passive: str, rows: Sequence[MinuteRow], mirror_conditions: Collection[ConditionKey]
) -> Iterator[ReadinessCondition]:
    """Yield the condition of all groups of a cluster pair, from their rows of recovery/group_minutes.

    Reasons that a stale or lagging mirror into ``passive`` explains are ignored: it has its own finding.
    """
    is_explained = any(key.other == passive for key in mirror_conditions)
    explained = _REASONS_OF_MIRRORS if is_explained else frozenset()
    reasons_by_group = {
        row["group_id"]: frozenset(row["reasons"].split(",")) for row in rows if not row["ready"]
    }
    unexplained = {group: reasons for group, reasons in reasons_by_group.items() if reasons - explained}
    if not unexplained:
        return
    counts = Counter(reason for reasons in unexplained.values() for reason in reasons)
    groups = ", ".join(sorted(unexplained)[:_MAX_NAMED]) + (", ..." if len(unexplained) > _MAX_NAMED else "")
    yield ReadinessCondition(
        ConditionKey(ConditionKind.GROUPS_NOT_READY, active, passive),
        f"{len(unexplained)} of {len(rows)} groups of {active} are not ready for a failover to {passive}",
        (groups, *(f"{reason}: {count} groups" for reason, count in counts.most_common())),
        {"groups": sorted(unexplained), "reasons": dict(counts)},
    )


def check_producer_minutes(rows: Iterable[MinuteRow]) -> Iterator[ReadinessCondition]:
    """Yield the clusters that acknowledge no tracers, from the rows of recovery/producer_minutes."""
    for row in rows:
        if row["sent"] > 1 and not row["acknowledged"]:
            yield ReadinessCondition(
                ConditionKey(ConditionKind.PRODUCERS_CUT_OFF, row["cluster_id"], subject=row["vantage"]),
                f"{row['cluster_id']} acknowledges no records from {row['vantage']}",
                (f"none of {row['sent']} tracers was acknowledged",),
                {name: row[name] for name in ("vantage", "sent", "acknowledged")},
            )


def check_headroom_minutes(rows: Sequence[MinuteRow]) -> Iterator[ReadinessCondition]:
    """Yield the clusters that lack the capacity to take over the load of the most loaded other cluster.

    Clusters without a configured capacity are not checked.
    """
    rates = {row["cluster_id"]: row["records_per_s"] for row in rows}
    for row in rows:
        cluster, own, capacity = row["cluster_id"], row["records_per_s"], row["capacity_records_per_s"]
        other_rates = {other: rate for other, rate in rates.items() if other != cluster and rate is not None}
        if capacity is None or own is None or not other_rates:
            continue
        largest = max(other_rates, key=lambda other: (other_rates[other], other))
        if own + other_rates[largest] > capacity:
            yield ReadinessCondition(
                ConditionKey(ConditionKind.NO_HEADROOM, cluster, largest),
                f"{cluster} lacks the capacity to take over {largest}'s load",
                (
                    f"{own:.0f} + {other_rates[largest]:.0f} records/s exceed its capacity of "
                    f"{capacity:.0f} records/s",
                ),
                {
                    "records_per_s": own,
                    "other_records_per_s": other_rates[largest],
                    "capacity": capacity,
                },
            )


def _format_bound(number: int | None) -> str:
    return "an unknown number of" if number is None else f"at most {number:,}"
