"""Which is the one primary of each service, by what claims say, or what is wrong. Pure."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from itertools import combinations

from fleetgauge_operations.recovery.primaries.plan.primary_lease import Claim


class Kind(StrEnum):
    """By the name that scripts see; of one service the first that is so."""

    PRIMARY_TWO = "PRIMARY_TWO"
    """More than one claims it: both take writes, or one has not heard that it is not the primary any more."""
    PRIMARY_NONE = "PRIMARY_NONE"
    """Nobody claims it, or all leases are over."""
    PRIMARY_UNKNOWN = "PRIMARY_UNKNOWN"
    """It is neither a region nor a cluster of the fleet file."""
    PRIMARY_DEAD = "PRIMARY_DEAD"
    """None of its clusters answers."""


@dataclass(frozen=True, slots=True)
class Finding:
    """``words``: one line, without the service's name."""

    kind: Kind
    service: str
    words: str


@dataclass(frozen=True, slots=True)
class Reach:
    """``regions``: of every cluster of the fleet file, by its id. ``answering``: which of those that are
    ``looked_at`` do so now.
    """

    regions: Mapping[str, str | None]
    looked_at: frozenset[str] = frozenset()
    answering: frozenset[str] = frozenset()

    def clusters(self, primary: str) -> frozenset[str]:
        """What a claim means: a region's clusters, or the one of that id; a name that is both is a region's.

        None: the fleet file has neither.
        """
        return self._of(primary) or frozenset({primary} & self.regions.keys())

    def around(self, cluster: str) -> frozenset[str]:
        """The clusters of its region, itself included."""
        region = self.regions.get(cluster)
        return frozenset({cluster}) | (self._of(region) if region is not None else frozenset())

    def are_dead(self, clusters: frozenset[str]) -> bool:
        """Whether none answers; of those at which nobody looks, nobody knows."""
        seen = clusters & self.looked_at
        return bool(seen) and not seen & self.answering

    def may_be_one(self, one: str, other: str) -> bool:
        """Whether two claims mean the same: a region and a cluster of it do."""
        return one == other or bool(self.clusters(one) & self.clusters(other))

    def _of(self, region: str) -> frozenset[str]:
        return frozenset(cluster for cluster, its in self.regions.items() if its == region)


@dataclass(frozen=True, slots=True)
class Standing:
    """One service. ``claims``: all of it, the newest first; ``primary``: the one whose claim holds, if it is
    one, though it may be dead or unknown.
    """

    service: str
    claims: tuple[Claim, ...]
    primary: Claim | None
    finding: Finding | None


def judged(
    claims: Iterable[Claim], services: Iterable[str], reach: Reach, now: datetime
) -> tuple[Standing, ...]:
    """Every service that is asked for; claims of others are not looked at."""
    known = tuple(claims)
    return tuple(standing(service, known, reach, now) for service in sorted(set(services)))


def findings(
    claims: Iterable[Claim], services: Iterable[str], reach: Reach, now: datetime
) -> tuple[Finding, ...]:
    """What is wrong with whom."""
    return tuple(one.finding for one in judged(claims, services, reach, now) if one.finding)


def standing(service: str, claims: Iterable[Claim], reach: Reach, now: datetime) -> Standing:
    """One service's, in whatever order claims come."""
    own = tuple(sorted({one for one in claims if one.service == service}, key=_age))
    held = [one for one in own if one.holds(now)]
    at_odds = tuple(_at_odds(own, held, reach))
    primary = held[0] if held and not at_odds else None
    return Standing(service, own, primary, _fault(service, own, at_odds, primary, reach))


def _age(claim: Claim) -> tuple[int, str, float]:
    """The highest epoch first; the rest only so that there is an order."""
    until_s = claim.lease_until.timestamp() if claim.lease_until else float("inf")
    return 0 if claim.epoch is None else -1 - claim.epoch, claim.primary, -until_s


def _at_odds(own: Sequence[Claim], held: Sequence[Claim], reach: Reach) -> Iterator[Claim]:
    """Those that mean another primary than another one that holds does.

    A claim that is held beyond its epoch is at odds with the newer one too, if that one's lease is over: who
    holds it has not heard of that.
    """
    outlived = held and own[0] not in held and held[0].epoch not in (None, own[0].epoch)
    claimed = own[:1] if outlived else ()
    newest = {one.primary: one for one in (*reversed(held), *claimed)}
    against = {name for pair in combinations(newest, 2) if not reach.may_be_one(*pair) for name in pair}
    return (one for one in newest.values() if one.primary in against)


def _fault(
    service: str, own: Sequence[Claim], at_odds: Sequence[Claim], primary: Claim | None, reach: Reach
) -> Finding | None:
    if at_odds:
        all_of_them = "; ".join(one.words for one in sorted(at_odds, key=_age))
        return Finding(Kind.PRIMARY_TWO, service, f"{len(at_odds)} claim it: {all_of_them}")
    if primary is None:
        over = f"all leases are over, the last one too: {own[0].words}" if own else "nobody claims it"
        return Finding(Kind.PRIMARY_NONE, service, over)
    clusters = reach.clusters(primary.primary)
    if not clusters:
        neither = f"{primary.words}: that is neither a region nor a cluster of the fleet file"
        return Finding(Kind.PRIMARY_UNKNOWN, service, neither)
    if reach.are_dead(clusters):
        silent = f"{primary.words}: nothing answers of {', '.join(sorted(clusters & reach.looked_at))}"
        return Finding(Kind.PRIMARY_DEAD, service, silent)
    return None
