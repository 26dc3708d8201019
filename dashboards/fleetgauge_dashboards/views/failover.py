"""Could one cluster's groups and producers go on in another now, and what would that cost?"""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum

from fleetgauge_dashboards.units import count, duration
from fleetgauge_dashboards.views.drills import Drill, DrilledGroup, last_drill
from fleetgauge_dashboards.views.findings import OpenFinding
from fleetgauge_dashboards.views.groups import GroupNow
from fleetgauge_dashboards.views.mirrors import MirrorNow, MirrorState
from fleetgauge_dashboards.views.producers import ProducersNow, headroom
from fleetgauge_dashboards.views.recovery_freshness import Told, told_until


class Answer(StrEnum):
    """To "fail over now?"; the symbol says it without colour."""

    YES = "YES"
    NO = "NO"
    NOBODY_KNOWS = "NOBODY KNOWS"

    @property
    def sign(self) -> str:
        return {"YES": "●", "NO": "▲"}.get(self.value, "◌")


@dataclass(frozen=True, slots=True)
class Known:
    """All that was told last, of every pair."""

    mirrors: Sequence[MirrorNow]
    groups: Sequence[GroupNow]
    producers: Sequence[ProducersNow]
    findings: Sequence[OpenFinding]
    drills: Sequence[DrilledGroup]


@dataclass(frozen=True, slots=True)
class Evidence:
    """What the answer about one pair is made of. Sums are None where one of the groups is not known.

    ``mirrors`` lead into the passive cluster, ``producers`` are tried in the clusters of its region.
    ``headroom`` is the share of its capacity left after taking over, None where that is not known.
    ``out_of_sight``: the active cluster, if it does not answer and the passive one does, and whatever of its
    region is silent with it; its groups are as they were then, for where nobody can read nothing is consumed.
    """

    active: str
    passive: str
    told: Told
    out_of_sight: frozenset[str]
    groups: int
    ready: int
    unknown: int
    replay_at_most: int | None
    lost_at_most: int | None
    rto_ms: int | None
    never_drilled: int
    reasons: tuple[tuple[str, int], ...]
    mirrors: tuple[MirrorNow, ...]
    producers: tuple[ProducersNow, ...]
    headroom: float | None
    has_capacity: bool
    findings: tuple[OpenFinding, ...]
    last_drill: Drill | None

    @property
    def name(self) -> str:
        return f"{self.active} to {self.passive}"


@dataclass(frozen=True, slots=True)
class Failover:
    """The answer for one pair, why, and on what evidence."""

    answer: Answer
    because: tuple[str, ...]
    evidence: Evidence


def failovers(
    known: Known, pairs: Sequence[tuple[str, str]], regions: Mapping[str, str], now: datetime
) -> tuple[Failover, ...]:
    """Of the ``pairs`` of the fleet file, or without any of those that groups or drills tell of. By name."""
    seen = {(one.active, one.passive) for one in known.groups} | {one.pair for one in known.drills}
    found = (evidence(known, pair, regions, now) for pair in sorted(set(pairs) or seen))
    return tuple(Failover(*answer(one), one) for one in found)


def evidence(known: Known, pair: tuple[str, str], regions: Mapping[str, str], now: datetime) -> Evidence:
    active, passive = pair
    own = [one for one in known.groups if (one.active, one.passive) == pair]
    until = max((one.until for one in own), default=None)
    here, there = (_region(cluster, regions) for cluster in pair)
    into = tuple(one for one in known.mirrors if one.destination == passive)
    return Evidence(
        active=active,
        passive=passive,
        told=told_until(until, now),
        out_of_sight=_out_of_sight(pair, here, known.mirrors),
        groups=len(own),
        ready=sum(one.ready is True for one in own),
        unknown=sum(one.ready is None for one in own),
        replay_at_most=_sum(one.replay_at_most for one in own),
        lost_at_most=_sum(one.lost_at_most for one in own),
        rto_ms=max((one.rto_ms for one in own if one.rto_ms is not None), default=None),
        never_drilled=sum(one.rto_ms is None for one in own),
        reasons=_reasons(own),
        mirrors=into,
        producers=tuple(one for one in known.producers if one.cluster_id in there and one.was_tried),
        headroom=headroom(known.producers, there, here | there),
        has_capacity=any(
            one.capacity_records_per_s is not None for one in known.producers if one.cluster_id in there
        ),
        findings=tuple(one for one in known.findings if _concerns(one, pair, into, there)),
        last_drill=last_drill(known.drills, pair),
    )


def answer(of: Evidence) -> tuple[Answer, tuple[str, ...]]:
    """NOBODY KNOWS where nothing is told of its groups; NO where anything speaks against; YES only where all
    that counts is known. What is not known never speaks for it; what died with the cluster, not against it.
    """
    if of.told.age is None:
        return Answer.NOBODY_KNOWS, ("nothing is told of its groups",)
    if not of.told.is_now and not of.out_of_sight:
        return Answer.NOBODY_KNOWS, (f"nothing has been told of its groups for {duration(of.told.age)}",)
    against, unknown, gone = tuple(_against(of)), tuple(_not_known(of)), tuple(_gone(of.told.age, of))
    if against:
        return Answer.NO, against + unknown + gone
    if unknown:
        return Answer.NOBODY_KNOWS, unknown + gone
    return Answer.YES, gone


def _against(of: Evidence) -> Iterator[str]:
    not_ready = of.groups - of.ready - of.unknown
    if not_ready:
        yield f"{not_ready:,} of {count(of.groups, 'group')} not ready"
    for mirror in of.mirrors:
        if mirror.state is MirrorState.STALE and mirror.source not in of.out_of_sight:
            yield f"the mirror {mirror.name} stands still"
        if mirror.state is MirrorState.LOOP:
            yield f"records of {mirror.name} go round"
    for one in of.producers:
        if one.now and one.get_through is False:
            yield f"no producer at {one.vantage} gets anything into {one.cluster_id}"
    if of.headroom is not None and of.headroom < 0:
        yield f"{of.passive}'s region could not take the load of both"
    for finding in of.findings:
        if finding.is_page and finding.cluster_id not in of.out_of_sight:
            yield f"open finding: {finding.summary or finding.kind}"


def _not_known(of: Evidence) -> Iterator[str]:
    if of.unknown:
        yield f"not known: whether {count(of.unknown, 'group')} could go on there"
    if not of.mirrors:
        yield f"no mirror into {of.passive} is told of"
    for mirror in of.mirrors:
        if mirror.state is MirrorState.UNKNOWN:
            yield f"not known: how the mirror {mirror.name} is"
    if of.has_capacity and of.headroom is None:
        yield f"not known: whether {of.passive}'s region could take the load of both"
    for one in of.producers:
        if not one.now or one.get_through is None:
            yield f"not known: whether producers at {one.vantage} can go on in {one.cluster_id}"


def _gone(age: timedelta, of: Evidence) -> Iterator[str]:
    """What is so because the active cluster is out of sight."""
    if not of.out_of_sight:
        return
    yield f"{of.active} has not been seen for {duration(age)}: its groups are as they were then"
    for mirror in of.mirrors:
        if mirror.state is MirrorState.STALE and mirror.source in of.out_of_sight:
            yield f"the mirror {mirror.name} stands still: what it has not copied stays in {mirror.source}"


def _out_of_sight(
    pair: tuple[str, str], here: frozenset[str], mirrors: Sequence[MirrorNow]
) -> frozenset[str]:
    active, passive = pair
    silent = {cluster for one in mirrors if one.now for cluster in one.silent}
    return here & silent if active in silent and passive not in silent else frozenset()


def _region(cluster_id: str, regions: Mapping[str, str]) -> frozenset[str]:
    """The clusters of its region, itself included; where nobody said which that is, it alone."""
    region = regions.get(cluster_id)
    near = {one for one, own in regions.items() if region is not None and own == region}
    return frozenset({cluster_id, *near})


def _concerns(
    one: OpenFinding, pair: tuple[str, str], into: Iterable[MirrorNow], there: frozenset[str]
) -> bool:
    """Of two clusters: they are this pair, or a mirror into the passive one. Of one: it is there.

    What goes round does so for its source; what has no room has none for whoever else.
    """
    if one.kind == "MIRROR_LOOP":
        return one.cluster_id in {mirror.source for mirror in into}
    if one.other_id and one.kind != "NO_HEADROOM":
        ways = {pair, *((mirror.source, mirror.destination) for mirror in into)}
        return (one.cluster_id, one.other_id) in ways
    return one.cluster_id in there


def _reasons(groups: Iterable[GroupNow]) -> tuple[tuple[str, int], ...]:
    """Each with how many groups have it, most first."""
    counted = Counter(reason for one in groups for reason in one.reasons)
    return tuple(sorted(counted.items(), key=lambda one: (-one[1], one[0])))


def _sum(values: Iterable[int | None]) -> int | None:
    """None where one of them is not known, or there is none."""
    every = list(values)
    known = [value for value in every if value is not None]
    return sum(known) if known and len(known) == len(every) else None
