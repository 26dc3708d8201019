"""What is to be decided before a region that failed is gone back to (Confluent Replicator's fail-back)."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from fleetgauge_operations.recovery.offsets.checkpoint import Log


@dataclass(frozen=True, slots=True)
class Span:
    """Offsets from ``first`` to before ``end``."""

    first: int
    end: int

    def __len__(self) -> int:
        return self.end - self.first


@dataclass(frozen=True, slots=True)
class Stranded:
    """Records of the primary that the secondary does not have."""

    count: int
    bytes: int
    first_ms: int
    """The times of the oldest and the youngest, since 1970."""
    last_ms: int
    offsets: tuple[int, ...]
    """The first of them, as a sample; what is in them is nobody's business here."""


NONE_STRANDED = Stranded(0, 0, 0, 0, ())


@dataclass(frozen=True, slots=True)
class Returning:
    """One partition. ``at_risk``: of the primary, what is not known to have left it; ``stranded``: what of
    that has not, None if nobody has compared. ``new``: of the secondary, what has come since the failover.
    """

    topic: str
    partition: int
    at_risk: Span
    stranded: Stranded | None
    new: Span | None


@dataclass(frozen=True, slots=True)
class Failback:
    """From the secondary back to the primary. ``ordered``: topics in which the order of a key's records says
    which counts, so that none may come late.
    """

    primary: str
    secondary: str
    names_kept: bool
    partitions: tuple[Returning, ...]
    ordered: tuple[str, ...]

    @property
    def stranded(self) -> int:
        """Those known of, and all that are at risk where nobody has compared."""
        return sum(one.stranded.count if one.stranded else len(one.at_risk) for one in self.partitions)

    @property
    def steps(self) -> tuple[str, ...]:
        """In this order."""
        return tuple(_steps(self))


def at_risk(replicated: int | None, primary: Log) -> Span:
    """What the primary holds that has not left it. ``replicated``: the last offset known to have; None if
    none is."""
    return Span(primary.start if replicated is None else primary.clamped(replicated + 1), primary.end)


def new_since(failover: int, secondary: Log) -> Span:
    """What the secondary has taken since. ``failover``: its end when the primary was given up."""
    return Span(secondary.clamped(failover), secondary.end)


def _steps(found: Failback) -> Iterator[str]:
    there, back = f"{found.primary} to {found.secondary}", f"{found.secondary} to {found.primary}"
    late = [one.topic for one in found.partitions if one.topic in found.ordered and _waits(one)]
    if late:
        yield (
            f"decide by hand of {_named(late)}: what is stranded there is older than what was written since, "
            "and would come after it"
        )
    if found.stranded:
        yield f"let the mirror {there} run until nothing is stranded: {found.stranded:,} records"
    yield f"stop the producers of {found.secondary}, and let the mirror {there} get to its end"
    if found.names_kept:
        yield f"stop the mirror {there}: both ways under the same names, records would go round for ever"
    new = sum(len(one.new) for one in found.partitions if one.new)
    if new:
        yield f"mirror {back} what is new there: {new:,} records, from the offsets above"
    yield f"write where groups go on: fleetgauge recover sync, with active and passive exchanged ({back})"
    yield f"move consumers to {found.primary}, then producers, then let the mirror {there} run again"


def _waits(one: Returning) -> bool:
    return (one.stranded.count if one.stranded else len(one.at_risk)) > 0


def _named(topics: Sequence[str]) -> str:
    return ", ".join(sorted(set(topics)))
