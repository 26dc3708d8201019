"""What a notifier is given in tests, with what it made of it."""

from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime

from fleetgauge_core.detection import (
    Chain,
    Finding,
    Phase,
    Subject,
)
from fleetgauge_core.detection.finding import finding
from fleetgauge_core.tables import CORRECTIONS
from fleetgauge_operations.watch.telling import Telling

NOON = datetime(2026, 3, 2, 12, tzinfo=UTC)
BROKER = Subject("orders", Chain.BROKER_DOWN, 3)
PATH = Subject("orders", Chain.PATH, vantage="zone-b", towards=2)


def named(
    subject: Subject = BROKER,
    phase: Phase = Phase.BROKER_DOWN,
    before: Phase = Phase.SUSPECT,
    at: datetime = NOON,
) -> Finding:
    return finding(subject, before, phase, at, {"since": "then"})


def cleared(subject: Subject = BROKER, phase: Phase = Phase.BROKER_DOWN, at: datetime = NOON) -> Finding:
    return finding(subject, phase, Phase.HEALTHY, at, {"since": "then"})


def planned(starts: datetime, ends: datetime, **more: object) -> dict[str, object]:
    """A row of ops/corrections; of the cluster of these findings, unless told otherwise."""
    row = dict.fromkeys(CORRECTIONS.names) | {
        "correction_id": "c1",
        "scope": "broker" if "broker_id" in more else "cluster",
        "cluster_id": "orders",
        "starts": starts,
        "ends": ends,
        "reason": "upgrade",
        "author": "sre",
        "created_at": starts,
    }
    return row | more


@dataclass
class Ear:
    """Counts what waits and keeps what is dealt with."""

    clock: Callable[[], datetime] = lambda: NOON
    may_tell: bool = True
    heard: datetime | None = NOON
    waiting: int = 0
    dealt_with: list[tuple[str, bool]] = field(default_factory=list)
    put_off: list[Finding] = field(default_factory=list)

    @property
    def taken(self) -> list[bool]:
        return [taken for _, taken in self.dealt_with]

    def telling(self) -> Telling:
        return Telling(
            clock=lambda: self.clock(),
            may_tell=lambda: self.may_tell,
            waits=self._waits,
            heard=lambda: self.heard,
            dealt_with=self._dealt_with,
            put_off=self.put_off.append,
        )

    def _waits(self, more: int) -> None:
        self.waiting += more

    def _dealt_with(self, one: Finding, taken: bool) -> None:
        self.dealt_with.append((one.event.event_id, taken))
