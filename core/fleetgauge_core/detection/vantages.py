"""What one vantage sees and others do not: a path of its own, or the vantage itself, is ill.

A vantage is contradicted when it sees a broker gone and most others that have spoken since see it there. It
remains so until it sees the broker itself, says nothing more, or is joined by the others.
"""

from collections.abc import Iterable, Mapping, Set
from dataclasses import dataclass, replace

from fleetgauge_core.detection.presence import Sighting, most
from fleetgauge_core.detection.thresholds import Thresholds

#: A vantage and the broker that it alone does not reach.
Path = tuple[str, int]


@dataclass(frozen=True, slots=True)
class Lone:
    """Every such path, and the vantages of which it is so of most brokers."""

    contradicted: frozenset[Path] = frozenset()
    ill: frozenset[str] = frozenset()

    @property
    def paths(self) -> frozenset[Path]:
        """Those of vantages that are otherwise well."""
        return frozenset(path for path in self.contradicted if path[0] not in self.ill)

    def unreached(self, vantage: str) -> list[int]:
        """The brokers that it alone does not reach."""
        return sorted(broker_id for v, broker_id in self.contradicted if v == vantage)

    def by_broker(self) -> dict[int, frozenset[str]]:
        """The vantages that alone do not reach it."""
        brokers = {broker_id for _, broker_id in self.contradicted}
        return {b: frozenset(v for v, broker in self.contradicted if broker == b) for b in brokers}

    def after(
        self, sights: Mapping[int, Mapping[str, Sighting]], heard: Set[str], limits: Thresholds
    ) -> "Lone":
        """What is so now, by broker and vantage. Of a vantage that was not heard yet, what was so before."""
        nobody_gone = all(one.gone_since is None for seen in sights.values() for one in seen.values())
        if nobody_gone and not self.contradicted and not self.ill:
            # As nearly always, and a fleet has thousands of pulses in each second.
            return self
        found = {
            (vantage, broker_id)
            for broker_id, seen in sights.items()
            for vantage in seen
            if _is_contradicted(vantage, seen, (vantage, broker_id) in self.contradicted, limits)
        }
        seen_by = {vantage: sum(vantage in seen for seen in sights.values()) for vantage in heard}
        alone = {vantage: sum(v == vantage for v, _ in found) for vantage in heard}
        return Lone(
            frozenset(found | {path for path in self.contradicted if path[0] not in heard}),
            frozenset(v for v in heard if alone[v] > 1 and 2 * alone[v] > seen_by[v]) | (self.ill - heard),
        )

    def of(self, vantages: Set[str]) -> "Lone":
        """What is so of these alone: one that an earlier watch heard may never speak again."""
        if self.ill <= vantages and all(vantage in vantages for vantage, _ in self.contradicted):
            return self
        paths = frozenset(path for path in self.contradicted if path[0] in vantages)
        return Lone(paths, self.ill & vantages)

    def restored(self, vantage: str, brokers: Iterable[int], *, ill: bool, stands: bool) -> "Lone":
        """As an earlier watch said: of an ill vantage what it alone did not reach, or of one path."""
        paths = frozenset((vantage, broker_id) for broker_id in brokers)
        if not ill:
            return replace(
                self, contradicted=self.contradicted | paths if stands else self.contradicted - paths
            )
        of_others = frozenset(path for path in self.contradicted if path[0] != vantage)
        others = self.ill - {vantage}
        return Lone(of_others | paths, others | {vantage} if stands else others)


def _is_contradicted(vantage: str, seen: Mapping[str, Sighting], was: bool, limits: Thresholds) -> bool:
    own, others = seen[vantage], [one for v, one in seen.items() if v != vantage]
    if own.gone_since is None:
        return False
    if was:
        return not most(one.signs.gone for one in others)
    # Neither does another speak of a moment before, nor this one of a moment before the broker's return.
    return most(
        one.there_since is not None
        and one.at - own.gone_since >= limits.agreed
        and own.at - one.there_since >= limits.agreed
        for one in others
    )
