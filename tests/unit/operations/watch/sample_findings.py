"""Findings, rows of planned maintenance and the context of a notifier, for tests of the watch."""

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


def opened(
    subject: FindingSubject = BROKER,
    state: HealthState = HealthState.BROKER_DOWN,
    before: HealthState = HealthState.SUSPECT,
    at: datetime = NOON,
) -> Finding:
    return build_finding(subject, before, state, at, {"since": "then"})


def cleared(
    subject: FindingSubject = BROKER, state: HealthState = HealthState.BROKER_DOWN, at: datetime = NOON
) -> Finding:
    return build_finding(subject, state, HealthState.HEALTHY, at, {"since": "then"})


def maintenance_row(starts: datetime, ends: datetime, **columns: object) -> dict[str, object]:
    """Return a row of ops/corrections, by default for the cluster of these findings."""
    row = dict.fromkeys(CORRECTIONS.column_names) | {
        "correction_id": "c1",
        "scope": "broker" if "broker_id" in columns else "cluster",
        "cluster_id": "orders",
        "starts": starts,
        "ends": ends,
        "reason": "upgrade",
        "author": "sre",
        "created_at": starts,
    }
    return row | columns


@dataclass
class DeliveryRecorder:
    """Records what a notifier reports: the number of waiting findings, settlements and postponed findings."""

    clock: Callable[[], datetime] = lambda: NOON
    is_leader: bool = True
    last_pulse_at: datetime | None = NOON
    waiting: int = 0
    settled: list[tuple[str, Settlement]] = field(default_factory=list)
    postponed: list[Finding] = field(default_factory=list)

    @property
    def settlements(self) -> list[Settlement]:
        return [settlement for _, settlement in self.settled]

    def context(self) -> NotifierContext:
        return NotifierContext(
            clock=lambda: self.clock(),
            confirm_leadership=lambda: self.is_leader,
            add_waiting=self._add_waiting,
            last_pulse_at=lambda: self.last_pulse_at,
            settle=self._settle,
            postpone=self.postponed.append,
        )

    def _add_waiting(self, change: int) -> None:
        self.waiting += change

    def _settle(self, finding: Finding, settlement: Settlement) -> None:
        self.settled.append((finding.event.event_id, settlement))
