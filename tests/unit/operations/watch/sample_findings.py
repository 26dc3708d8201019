"""What a notifier is given in tests, with what it made of it."""

from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime

from fleetgauge_core.detection import (
    Finding,
    FindingSubject,
    HealthCondition,
    HealthState,
)
from fleetgauge_core.detection.finding import build_finding
from fleetgauge_core.tables import CORRECTIONS
from fleetgauge_operations.notify.outbox import Settlement
from fleetgauge_operations.watch.notifier_context import NotifierContext

NOON = datetime(2026, 3, 2, 12, tzinfo=UTC)
BROKER = FindingSubject("orders", HealthCondition.BROKER_DOWN, 3)
PATH = FindingSubject("orders", HealthCondition.PATH, vantage="zone-b", target_broker_id=2)


def named(
    subject: FindingSubject = BROKER,
    phase: HealthState = HealthState.BROKER_DOWN,
    before: HealthState = HealthState.SUSPECT,
    at: datetime = NOON,
) -> Finding:
    return build_finding(subject, before, phase, at, {"since": "then"})


def cleared(
    subject: FindingSubject = BROKER, phase: HealthState = HealthState.BROKER_DOWN, at: datetime = NOON
) -> Finding:
    return build_finding(subject, phase, HealthState.HEALTHY, at, {"since": "then"})


def planned(starts: datetime, ends: datetime, **more: object) -> dict[str, object]:
    """A row of ops/corrections; of the cluster of these findings, unless told otherwise."""
    row = dict.fromkeys(CORRECTIONS.column_names) | {
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
class DeliveryRecorder:
    """Counts what waits, and keeps what was settled and postponed."""

    clock: Callable[[], datetime] = lambda: NOON
    may_tell: bool = True
    heard: datetime | None = NOON
    waiting: int = 0
    settled: list[tuple[str, Settlement]] = field(default_factory=list)
    put_off: list[Finding] = field(default_factory=list)

    @property
    def settlements(self) -> list[Settlement]:
        return [settlement for _, settlement in self.settled]

    def telling(self) -> NotifierContext:
        return NotifierContext(
            clock=lambda: self.clock(),
            may_tell=lambda: self.may_tell,
            waits=self._waits,
            heard=lambda: self.heard,
            settled=self._settle,
            put_off=self.put_off.append,
        )

    def _waits(self, more: int) -> None:
        self.waiting += more

    def _settle(self, finding: Finding, settlement: Settlement) -> None:
        self.settled.append((finding.event.event_id, settlement))
