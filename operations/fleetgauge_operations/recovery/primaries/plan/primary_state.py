"""Determine the primary of each service from the leases, or what is wrong with them. Pure."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from itertools import combinations

from fleetgauge_operations.recovery.primaries.plan.primary_lease import PrimaryLease


class PrimaryFindingKind(StrEnum):
    """What is wrong with the primary of a service; of several, the first in this order."""

    PRIMARY_TWO = "PRIMARY_TWO"
    """Several primaries have an active lease: both may accept writes, or one has missed its replacement."""
    PRIMARY_NONE = "PRIMARY_NONE"
    """There is no lease, or all have expired."""
    PRIMARY_UNKNOWN = "PRIMARY_UNKNOWN"
    """The primary is neither a region nor a cluster of the fleet file."""
    PRIMARY_DEAD = "PRIMARY_DEAD"
    """None of the primary's clusters is reachable."""


@dataclass(frozen=True, slots=True)
class PrimaryFinding:
    """What is wrong with the primary of a service; ``message`` is one line without the service's name."""

    kind: PrimaryFindingKind
    service: str
    message: str


@dataclass(frozen=True, slots=True)
class ClusterReachability:
    """Which clusters are reachable.

    ``regions`` maps every cluster of the fleet file to its region; ``inspected`` are the clusters that
    were contacted, and ``reachable`` those of them that answered.
    """

    regions: Mapping[str, str | None]
    inspected: frozenset[str] = frozenset()
    reachable: frozenset[str] = frozenset()

    def clusters(self, primary: str) -> frozenset[str]:
        """Return the clusters that a lease's primary stands for: those of a region, or one cluster.

        A name that is both a region and a cluster means the region. Empty if the fleet file has neither.
        """
        return self._clusters_of_region(primary) or frozenset({primary} & self.regions.keys())

    def clusters_in_same_region(self, cluster: str) -> frozenset[str]:
        """Return the clusters of a cluster's region, itself included."""
        region = self.regions.get(cluster)
        return frozenset({cluster}) | (
            self._clusters_of_region(region) if region is not None else frozenset()
        )

    def are_unreachable(self, clusters: frozenset[str]) -> bool:
        """Return whether some of the clusters were inspected, and none answered."""
        inspected = clusters & self.inspected
        return bool(inspected) and not inspected & self.reachable

    def are_same_primary(self, first: str, second: str) -> bool:
        """Return whether two leases may name the same primary, as a region and one of its clusters do."""
        return first == second or bool(self.clusters(first) & self.clusters(second))

    def _clusters_of_region(self, name: str) -> frozenset[str]:
        return frozenset(cluster for cluster, region in self.regions.items() if region == name)


@dataclass(frozen=True, slots=True)
class PrimaryState:
    """The leases of one service, newest first, and what follows from them.

    ``primary`` is the active lease if it is unambiguous, even if its clusters are unreachable or unknown.
    """

    service: str
    leases: tuple[PrimaryLease, ...]
    primary: PrimaryLease | None
    finding: PrimaryFinding | None


def evaluate_primaries(
    leases: Iterable[PrimaryLease], services: Iterable[str], reachability: ClusterReachability, now: datetime
) -> tuple[PrimaryState, ...]:
    """Return the state of each given service; leases of other services are ignored."""
    all_leases = tuple(leases)
    return tuple(
        evaluate_primary(service, all_leases, reachability, now) for service in sorted(set(services))
    )


def find_primary_problems(
    leases: Iterable[PrimaryLease], services: Iterable[str], reachability: ClusterReachability, now: datetime
) -> tuple[PrimaryFinding, ...]:
    """Return the findings on the primaries of the given services."""
    states = evaluate_primaries(leases, services, reachability, now)
    return tuple(state.finding for state in states if state.finding)


def evaluate_primary(
    service: str, leases: Iterable[PrimaryLease], reachability: ClusterReachability, now: datetime
) -> PrimaryState:
    """Return the state of one service, given leases in any order."""
    own = tuple(sorted({lease for lease in leases if lease.service == service}, key=_newest_first))
    active = [lease for lease in own if lease.is_active(now)]
    conflicting = tuple(_find_conflicts(own, active, reachability))
    primary = active[0] if active and not conflicting else None
    finding = _find_problem(service, own, conflicting, primary, reachability)
    return PrimaryState(service, own, primary, finding)


def _newest_first(lease: PrimaryLease) -> tuple[int, str, float]:
    """Sort by descending epoch; the other criteria only make the order total."""
    until_s = lease.lease_until.timestamp() if lease.lease_until else float("inf")
    return 0 if lease.epoch is None else -1 - lease.epoch, lease.primary, -until_s


def _find_conflicts(
    own: Sequence[PrimaryLease], active: Sequence[PrimaryLease], reachability: ClusterReachability
) -> Iterator[PrimaryLease]:
    """Yield the leases that name another primary than an active lease does.

    An active lease also conflicts with an expired lease of a newer epoch: its holder has missed that it was
    replaced.
    """
    is_outdated = active and own[0] not in active and active[0].epoch not in (None, own[0].epoch)
    newer = own[:1] if is_outdated else ()
    by_primary = {lease.primary: lease for lease in (*reversed(active), *newer)}
    conflicting = {
        name
        for pair in combinations(by_primary, 2)
        if not reachability.are_same_primary(*pair)
        for name in pair
    }
    return (lease for lease in by_primary.values() if lease.primary in conflicting)


def _find_problem(
    service: str,
    own: Sequence[PrimaryLease],
    conflicting: Sequence[PrimaryLease],
    primary: PrimaryLease | None,
    reachability: ClusterReachability,
) -> PrimaryFinding | None:
    if conflicting:
        descriptions = "; ".join(lease.description for lease in sorted(conflicting, key=_newest_first))
        message = f"{len(conflicting)} conflicting leases: {descriptions}"
        return PrimaryFinding(PrimaryFindingKind.PRIMARY_TWO, service, message)
    if primary is None:
        message = (
            f"all leases have expired, the last was {own[0].description}" if own else "there is no lease"
        )
        return PrimaryFinding(PrimaryFindingKind.PRIMARY_NONE, service, message)
    clusters = reachability.clusters(primary.primary)
    if not clusters:
        message = f"{primary.description}: neither a region nor a cluster of the fleet file"
        return PrimaryFinding(PrimaryFindingKind.PRIMARY_UNKNOWN, service, message)
    if reachability.are_unreachable(clusters):
        inspected = ", ".join(sorted(clusters & reachability.inspected))
        message = f"{primary.description}: unreachable: {inspected}"
        return PrimaryFinding(PrimaryFindingKind.PRIMARY_DEAD, service, message)
    return None
