"""What speaks against a failover now, as far as the minutes say."""

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, Literal, NamedTuple

from fleetgauge_core.fleet.recovery import Recovery
from fleetgauge_operations.recovery.readiness.plan.minutes import Row

#: Groups that a line names.
_NAMED = 5


class Kind(StrEnum):
    """By the name that scripts and receivers see."""

    MIRROR_STALE = "MIRROR_STALE"
    """It has neither copied anything for long, nor had nothing to copy."""
    MIRROR_BEHIND = "MIRROR_BEHIND"
    """What its source is given would be lost for longer than the objective says."""
    MIRROR_LOOP = "MIRROR_LOOP"
    """Records of its source come back to it."""
    GROUPS_NOT_READY = "GROUPS_NOT_READY"
    PRODUCERS_CUT_OFF = "PRODUCERS_CUT_OFF"
    """From a vantage nothing is acknowledged by a cluster that is mirrored."""
    NO_HEADROOM = "NO_HEADROOM"
    """A region could not carry what another one carries as well."""
    PRIMARY_TWO = "PRIMARY_TWO"
    PRIMARY_NONE = "PRIMARY_NONE"
    PRIMARY_DEAD = "PRIMARY_DEAD"
    PRIMARY_UNKNOWN = "PRIMARY_UNKNOWN"
    PRIMARIES_UNREAD = "PRIMARIES_UNREAD"
    """The store that says who is primary cannot be read."""

    @property
    def severity(self) -> Literal["page", "ticket"]:
        """``page``: now, as it gets worse by the minute; ``ticket``: today."""
        return "page" if self in _PAGES else "ticket"


_PAGES = (Kind.MIRROR_BEHIND, Kind.MIRROR_LOOP, Kind.PRIMARY_TWO, Kind.PRIMARY_NONE, Kind.PRIMARY_DEAD)
#: What a mirror that is stale or behind explains of groups.
_OF_MIRRORS = frozenset({"stale", "unknown_lag", "loss"})


class Whom(NamedTuple):
    """What a condition is about; the same for as long as it lasts. ``other``: another cluster, or nothing.

    ``subject``: whatever else tells it from its like, as a service.
    """

    kind: Kind
    cluster: str
    other: str = ""
    subject: str = ""


@dataclass(frozen=True, slots=True)
class Condition:
    """``summary``: in one line; ``words``: more lines; ``evidence``: the numbers, for JSON."""

    whom: Whom
    summary: str
    words: tuple[str, ...] = ()
    evidence: Mapping[str, Any] = field(default_factory=dict)


def of_mirror(row: Row, recovery: Recovery) -> Iterator[Condition]:
    """Of a mirror's minute."""
    source, destination = row["source"], row["destination"]
    between = f"the mirror from {source} to {destination}"
    shown = {name: value for name, value in row.items() if name not in ("minute", "day")}
    if row["partitions"] and not row["fresh"]:
        silent = "nothing was ever heard of a partition"
        if row["silent_s"] is not None:
            silent = f"for {row['silent_s']:.0f} s it has neither copied a partition nor had nothing to copy"
        yield Condition(
            Whom(Kind.MIRROR_STALE, source, destination), f"{between} stands still", (silent,), shown
        )
    late_s = row["behind_s"] if row["behind_s"] is not None else row["behind_s_at_most"]
    if late_s is not None and late_s > recovery.objectives.rpo_s:
        yield Condition(
            Whom(Kind.MIRROR_BEHIND, source, destination),
            f"{between} is {late_s:.0f} s behind, beyond {recovery.objectives.rpo_s:g} s",
            (f"at most {_said(row['behind_at_most'])} records would be lost with {source} now",),
            shown,
        )
    if row["looped"]:
        yield Condition(
            Whom(Kind.MIRROR_LOOP, source),
            f"records of {source} come back to it: mirrors send them round",
            (f"{row['looped']} tracers were seen twice in {source}",),
            shown,
        )


def of_groups(
    active: str, passive: str, rows: Sequence[Row], behind: Collection[Whom]
) -> Iterator[Condition]:
    """Of all groups of a pair. ``behind``: conditions of mirrors, which explain some of them."""
    explained = _OF_MIRRORS if any(one.other == passive for one in behind) else frozenset()
    against = {row["group_id"]: frozenset(row["reasons"].split(",")) for row in rows if not row["ready"]}
    left = {group: reasons for group, reasons in against.items() if reasons - explained}
    if not left:
        return
    counts = Counter(reason for reasons in left.values() for reason in reasons)
    named = ", ".join(sorted(left)[:_NAMED]) + (", ..." if len(left) > _NAMED else "")
    yield Condition(
        Whom(Kind.GROUPS_NOT_READY, active, passive),
        f"{len(left)} of {len(rows)} groups of {active} could not go on in {passive}",
        (named, *(f"{reason}: {count} groups" for reason, count in counts.most_common())),
        {"groups": sorted(left), "reasons": dict(counts)},
    )


def of_producers(rows: Iterable[Row]) -> Iterator[Condition]:
    """Of every cluster's minute."""
    for row in rows:
        if row["sent"] > 1 and not row["acknowledged"]:
            yield Condition(
                Whom(Kind.PRODUCERS_CUT_OFF, row["cluster_id"], subject=row["vantage"]),
                f"producers at {row['vantage']} could not go on in {row['cluster_id']}",
                (f"none of {row['sent']} tracers was acknowledged",),
                {name: row[name] for name in ("vantage", "sent", "acknowledged")},
            )


def of_headroom(rows: Sequence[Row]) -> Iterator[Condition]:
    """Each cluster whose capacity is known is to carry, besides its own, what the one that has most does."""
    rates = {row["cluster_id"]: row["records_per_s"] for row in rows}
    for row in rows:
        cluster, own, capacity = row["cluster_id"], row["records_per_s"], row["capacity_records_per_s"]
        others = {other: rate for other, rate in rates.items() if other != cluster and rate is not None}
        if capacity is None or own is None or not others:
            continue
        largest = max(others, key=lambda other: (others[other], other))
        if own + others[largest] > capacity:
            yield Condition(
                Whom(Kind.NO_HEADROOM, cluster, largest),
                f"{cluster} could not carry {largest}'s load as well",
                (f"{own:.0f} and {others[largest]:.0f} records/s, of {capacity:.0f} that it takes",),
                {"records_per_s": own, "other_records_per_s": others[largest], "capacity": capacity},
            )


def _said(number: int | None) -> str:
    return "nobody knows how many" if number is None else f"{number:,}"
