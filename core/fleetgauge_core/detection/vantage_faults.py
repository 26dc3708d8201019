"""Faults of a vantage or of its network path to a broker: what one vantage observes and the others do not.

A vantage is contradicted about a broker if it does not reach the broker while most other vantages with a
later observation reach it. It remains contradicted until it reaches the broker itself, sends no more pulses,
or most other vantages do not reach the broker either.
"""

from collections.abc import Iterable, Mapping, Set
from dataclasses import dataclass, replace

from fleetgauge_core.detection.broker_liveness import VantageObservation, is_majority
from fleetgauge_core.detection.thresholds import Thresholds

#: A vantage and a broker.
VantagePath = tuple[str, int]


@dataclass(frozen=True, slots=True)
class VantageFaults:
    """The contradicted paths of a cluster, and the vantages that are contradicted about most brokers."""

    contradicted_paths: frozenset[VantagePath] = frozenset()
    faulty_vantages: frozenset[str] = frozenset()

    @property
    def faulty_paths(self) -> frozenset[VantagePath]:
        """The contradicted paths of vantages that are not faulty themselves."""
        return frozenset(path for path in self.contradicted_paths if path[0] not in self.faulty_vantages)

    def list_unreached_brokers(self, vantage: str) -> list[int]:
        """Return the brokers about which the vantage is contradicted, ascending."""
        return sorted(broker_id for source, broker_id in self.contradicted_paths if source == vantage)

    def vantages_by_broker(self) -> dict[int, frozenset[str]]:
        """Return the contradicted vantages by broker."""
        broker_ids = {broker_id for _, broker_id in self.contradicted_paths}
        return {
            broker_id: frozenset(
                vantage for vantage, target in self.contradicted_paths if target == broker_id
            )
            for broker_id in broker_ids
        }

    def update(
        self,
        observations: Mapping[int, Mapping[str, VantageObservation]],
        heard_vantages: Set[str],
        limits: Thresholds,
    ) -> "VantageFaults":
        """Return the faults that follow from fresh observations, by broker and vantage.

        Restored faults of a vantage that has not sent a pulse since are kept.
        """
        all_reachable = all(
            observation.unreachable_since is None
            for by_vantage in observations.values()
            for observation in by_vantage.values()
        )
        if all_reachable and not self.contradicted_paths and not self.faulty_vantages:
            # The usual case; a large fleet sends thousands of pulses per second.
            return self
        contradicted = {
            (vantage, broker_id)
            for broker_id, by_vantage in observations.items()
            for vantage in by_vantage
            if _is_contradicted(vantage, by_vantage, (vantage, broker_id) in self.contradicted_paths, limits)
        }
        observed_brokers = {
            vantage: sum(vantage in by_vantage for by_vantage in observations.values())
            for vantage in heard_vantages
        }
        contradicted_brokers = {
            vantage: sum(source == vantage for source, _ in contradicted) for vantage in heard_vantages
        }
        faulty = frozenset(
            vantage
            for vantage in heard_vantages
            if contradicted_brokers[vantage] > 1
            and 2 * contradicted_brokers[vantage] > observed_brokers[vantage]
        )
        not_heard = {path for path in self.contradicted_paths if path[0] not in heard_vantages}
        return VantageFaults(
            frozenset(contradicted | not_heard), faulty | (self.faulty_vantages - heard_vantages)
        )

    def restrict_to(self, vantages: Set[str]) -> "VantageFaults":
        """Return the faults of these vantages only: a restored vantage may never send a pulse again."""
        if self.faulty_vantages <= vantages and all(
            vantage in vantages for vantage, _ in self.contradicted_paths
        ):
            return self
        paths = frozenset(path for path in self.contradicted_paths if path[0] in vantages)
        return VantageFaults(paths, self.faulty_vantages & vantages)

    def with_restored_finding(
        self, vantage: str, broker_ids: Iterable[int], *, is_vantage_faulty: bool, is_open: bool
    ) -> "VantageFaults":
        """Return the faults after a stored finding: of a faulty vantage and its brokers, or of one path."""
        paths = frozenset((vantage, broker_id) for broker_id in broker_ids)
        if not is_vantage_faulty:
            contradicted = self.contradicted_paths
            return replace(self, contradicted_paths=contradicted | paths if is_open else contradicted - paths)
        other_paths = frozenset(path for path in self.contradicted_paths if path[0] != vantage)
        other_vantages = self.faulty_vantages - {vantage}
        return VantageFaults(other_paths | paths, other_vantages | {vantage} if is_open else other_vantages)


def _is_contradicted(
    vantage: str,
    by_vantage: Mapping[str, VantageObservation],
    was_contradicted: bool,
    limits: Thresholds,
) -> bool:
    own = by_vantage[vantage]
    others = [observation for other, observation in by_vantage.items() if other != vantage]
    if own.unreachable_since is None:
        return False
    if was_contradicted:
        return not is_majority(other.signs.is_unreachable for other in others)
    # The other's observation must be later than this vantage's loss of the broker, and this vantage's
    # observation later than the broker's return as seen by the other.
    return is_majority(
        other.reachable_since is not None
        and other.at - own.unreachable_since >= limits.agreed
        and own.at - other.reachable_since >= limits.agreed
        for other in others
    )
