"""What is to be decided before a group goes back to the region that failed (Confluent Replicator's
fail-back)."""

from dataclasses import dataclass

from fleetgauge_operations.recovery.checkpoint import Log


@dataclass(frozen=True, slots=True)
class Span:
    """Offsets from ``first`` to before ``end``."""

    first: int
    end: int

    def __len__(self) -> int:
        return self.end - self.first


def at_risk(replicated: int | None, primary: Log) -> Span:
    """What the primary holds that has not left it. ``replicated``: the last offset known to have; None if
    none is."""
    return Span(primary.start if replicated is None else primary.clamped(replicated + 1), primary.end)


def new_since(failover: int, secondary: Log) -> Span:
    """What the secondary has taken since. ``failover``: its end when the primary was given up."""
    return Span(secondary.clamped(failover), secondary.end)
