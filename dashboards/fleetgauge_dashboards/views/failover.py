"""Assess whether the groups and producers of one cluster could continue in another now, and at what cost."""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum

from fleetgauge_dashboards.units import format_count, format_duration
from fleetgauge_dashboards.views.drills import DrilledGroup, DrillSummary, summarize_latest_drill
from fleetgauge_dashboards.views.findings import OpenFinding
from fleetgauge_dashboards.views.groups import GroupReadiness
from fleetgauge_dashboards.views.mirrors import MirrorHealth, MirrorLag
from fleetgauge_dashboards.views.producers import ProducerStatus, compute_headroom
from fleetgauge_dashboards.views.recovery_freshness import RecoveryFreshness, assess_freshness_at


class FailoverAnswer(StrEnum):
    """The answer to the question "fail over now?".

    Values are written to downloaded files and do not change; ``label`` and ``sign`` are what pages show.
    """

    YES = "YES"
    NO = "NO"
    UNKNOWN = "NOBODY KNOWS"

    @property
    def sign(self) -> str:
        """Return a symbol that distinguishes the answer without colour."""
        return {FailoverAnswer.YES: "●", FailoverAnswer.NO: "▲"}.get(self, "◌")

    @property
    def label(self) -> str:
        """Return the word for a person."""
        return "UNKNOWN" if self is FailoverAnswer.UNKNOWN else self.value


@dataclass(frozen=True, slots=True)
class RecoverySnapshot:
    """The latest observations of all pairs of clusters."""

    mirrors: Sequence[MirrorLag]
    groups: Sequence[GroupReadiness]
    producers: Sequence[ProducerStatus]
    findings: Sequence[OpenFinding]
    drills: Sequence[DrilledGroup]


@dataclass(frozen=True, slots=True)
class FailoverEvidence:
    """The observations that decide the answer for one pair; a sum is None where a group's value is unknown.

    ``mirrors`` lead into the passive cluster, ``producers`` reach the clusters of its region. ``headroom`` is
    the share of its capacity left after a failover, None where unknown. ``unreachable`` is the active
    cluster, if it does not answer while the passive one does, with the unreachable clusters of its region.
    The values of its groups are then the last observed, because nothing can be consumed from an unreachable
    cluster.
    """

    active: str
    passive: str
    freshness: RecoveryFreshness
    unreachable: frozenset[str]
    groups: int
    ready: int
    unknown: int
    replay_at_most: int | None
    lost_at_most: int | None
    rto_ms: int | None
    never_drilled: int
    reasons: tuple[tuple[str, int], ...]
    mirrors: tuple[MirrorLag, ...]
    producers: tuple[ProducerStatus, ...]
    headroom: float | None
    has_capacity: bool
    findings: tuple[OpenFinding, ...]
    last_drill: DrillSummary | None

    @property
    def name(self) -> str:
        """Return the pair's name, active to passive."""
        return f"{self.active} to {self.passive}"


@dataclass(frozen=True, slots=True)
class FailoverAssessment:
    """The answer for one pair, its explanation and its evidence."""

    answer: FailoverAnswer
    explanation: tuple[str, ...]
    evidence: FailoverEvidence


def assess_failovers(
    snapshot: RecoverySnapshot, pairs: Sequence[tuple[str, str]], regions: Mapping[str, str], now: datetime
) -> tuple[FailoverAssessment, ...]:
    """Assess the ``pairs`` of the fleet file, by name.

    If the fleet file has no pairs, those of the observed groups and drills are assessed.
    """
    observed = {(group.active, group.passive) for group in snapshot.groups} | {
        group.pair for group in snapshot.drills
    }
    assessed = (gather_evidence(snapshot, pair, regions, now) for pair in sorted(set(pairs) or observed))
    return tuple(FailoverAssessment(*answer_failover(evidence), evidence) for evidence in assessed)


def gather_evidence(
    snapshot: RecoverySnapshot, pair: tuple[str, str], regions: Mapping[str, str], now: datetime
) -> FailoverEvidence:
    """Select the observations about the pair."""
    active, passive = pair
    groups = [group for group in snapshot.groups if (group.active, group.passive) == pair]
    until = max((group.until for group in groups), default=None)
    active_region, passive_region = (_region(cluster, regions) for cluster in pair)
    mirrors_in = tuple(mirror for mirror in snapshot.mirrors if mirror.destination == passive)
    return FailoverEvidence(
        active=active,
        passive=passive,
        freshness=assess_freshness_at(until, now),
        unreachable=_unreachable_clusters(pair, active_region, snapshot.mirrors),
        groups=len(groups),
        ready=sum(group.ready is True for group in groups),
        unknown=sum(group.ready is None for group in groups),
        replay_at_most=_sum(group.replay_at_most for group in groups),
        lost_at_most=_sum(group.lost_at_most for group in groups),
        rto_ms=max((group.rto_ms for group in groups if group.rto_ms is not None), default=None),
        never_drilled=sum(group.rto_ms is None for group in groups),
        reasons=_reasons(groups),
        mirrors=mirrors_in,
        producers=tuple(
            status
            for status in snapshot.producers
            if status.cluster_id in passive_region and status.has_tracers
        ),
        headroom=compute_headroom(snapshot.producers, passive_region, active_region | passive_region),
        has_capacity=any(
            status.capacity_records_per_s is not None
            for status in snapshot.producers
            if status.cluster_id in passive_region
        ),
        findings=tuple(
            finding for finding in snapshot.findings if _concerns(finding, pair, mirrors_in, passive_region)
        ),
        last_drill=summarize_latest_drill(snapshot.drills, pair),
    )


def answer_failover(evidence: FailoverEvidence) -> tuple[FailoverAnswer, tuple[str, ...]]:
    """Answer for one pair, with the explanation.

    Unknown where there is no data about its groups; NO where an observation argues against it; YES only where
    everything that counts is known. Unknown values never count in favour, and what failed together with the
    active cluster does not count against.
    """
    if evidence.freshness.age is None:
        return FailoverAnswer.UNKNOWN, ("no data about its consumer groups",)
    if not evidence.freshness.is_now and not evidence.unreachable:
        return FailoverAnswer.UNKNOWN, (
            f"no data about its consumer groups for {format_duration(evidence.freshness.age)}",
        )
    objections, unknowns, consequences = (
        tuple(_objections(evidence)),
        tuple(_unknowns(evidence)),
        tuple(_consequences_of_outage(evidence.freshness.age, evidence)),
    )
    if objections:
        return FailoverAnswer.NO, objections + unknowns + consequences
    if unknowns:
        return FailoverAnswer.UNKNOWN, unknowns + consequences
    return FailoverAnswer.YES, consequences


def _objections(evidence: FailoverEvidence) -> Iterator[str]:
    not_ready = evidence.groups - evidence.ready - evidence.unknown
    if not_ready:
        yield f"{not_ready:,} of {format_count(evidence.groups, 'group')} not ready"
    for mirror in evidence.mirrors:
        if mirror.state is MirrorHealth.STALE and mirror.source not in evidence.unreachable:
            yield f"mirror {mirror.name} has stalled"
        if mirror.state is MirrorHealth.LOOP:
            yield f"mirror {mirror.name} copies records in a loop"
    for status in evidence.producers:
        if status.is_current and status.can_produce is False:
            yield f"producers at {status.vantage} cannot write to {status.cluster_id}"
    if evidence.headroom is not None and evidence.headroom < 0:
        yield f"{evidence.passive}'s region lacks the capacity for the load of both regions"
    for finding in evidence.findings:
        if finding.is_page and finding.cluster_id not in evidence.unreachable:
            yield f"open finding: {finding.summary or finding.kind}"


def _unknowns(evidence: FailoverEvidence) -> Iterator[str]:
    if evidence.unknown:
        yield f"unknown: whether {format_count(evidence.unknown, 'group')} can resume there"
    if not evidence.mirrors:
        yield f"no mirror into {evidence.passive} observed"
    for mirror in evidence.mirrors:
        if mirror.state is MirrorHealth.UNKNOWN:
            yield f"unknown: the state of mirror {mirror.name}"
    if evidence.has_capacity and evidence.headroom is None:
        yield f"unknown: whether {evidence.passive}'s region has capacity for the load of both regions"
    for status in evidence.producers:
        if not status.is_current or status.can_produce is None:
            yield f"unknown: whether producers at {status.vantage} can write to {status.cluster_id}"


def _consequences_of_outage(age: timedelta, evidence: FailoverEvidence) -> Iterator[str]:
    """Yield what follows from the active cluster being unreachable."""
    if not evidence.unreachable:
        return
    yield f"{evidence.active} has been unreachable for {format_duration(age)}; groups are as last observed"
    for mirror in evidence.mirrors:
        if mirror.state is MirrorHealth.STALE and mirror.source in evidence.unreachable:
            yield f"mirror {mirror.name} has stalled; records not yet copied remain in {mirror.source}"


def _unreachable_clusters(
    pair: tuple[str, str], active_region: frozenset[str], mirrors: Sequence[MirrorLag]
) -> frozenset[str]:
    active, passive = pair
    silent = {cluster for mirror in mirrors if mirror.now for cluster in mirror.silent}
    return active_region & silent if active in silent and passive not in silent else frozenset()


def _region(cluster_id: str, regions: Mapping[str, str]) -> frozenset[str]:
    """Return the clusters of the cluster's region, itself included.

    Only itself where no region is configured.
    """
    region = regions.get(cluster_id)
    same_region = {
        other_id
        for other_id, other_region in regions.items()
        if region is not None and other_region == region
    }
    return frozenset({cluster_id, *same_region})


def _concerns(
    finding: OpenFinding, pair: tuple[str, str], mirrors: Iterable[MirrorLag], passive_region: frozenset[str]
) -> bool:
    """Return whether the finding concerns the pair.

    A finding of two clusters does if they are the pair or a mirror into the passive one; a finding of one
    cluster if that is in the passive region. A loop concerns its source, and missing headroom the cluster
    that lacks it.
    """
    if finding.kind == "MIRROR_LOOP":
        return finding.cluster_id in {mirror.source for mirror in mirrors}
    if finding.other_id and finding.kind != "NO_HEADROOM":
        directions = {pair, *((mirror.source, mirror.destination) for mirror in mirrors)}
        return (finding.cluster_id, finding.other_id) in directions
    return finding.cluster_id in passive_region


def _reasons(groups: Iterable[GroupReadiness]) -> tuple[tuple[str, int], ...]:
    """Return each reason with the number of groups that have it, most frequent first."""
    counts = Counter(reason for group in groups for reason in group.reasons)
    return tuple(sorted(counts.items(), key=lambda reason: (-reason[1], reason[0])))


def _sum(values: Iterable[int | None]) -> int | None:
    """Return the sum; None where a value is unknown or there is no value."""
    all_values = list(values)
    present = [value for value in all_values if value is not None]
    return sum(present) if present and len(present) == len(all_values) else None
