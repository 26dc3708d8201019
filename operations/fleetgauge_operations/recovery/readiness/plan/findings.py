"""Turn conditions that last into findings, which open after two evaluations and close after two."""

import hashlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime

from fleetgauge_operations.recovery.readiness.plan.conditions import (
    ConditionKey,
    ConditionKind,
    ReadinessCondition,
)

#: Consecutive evaluations, so that a momentary condition opens no finding.
_OPENS_AFTER = 2
_CLOSES_AFTER = 2


@dataclass(frozen=True, slots=True)
class RecoveryFinding:
    """A condition that opened a finding, or closed it, ``at`` that time."""

    condition: ReadinessCondition
    at: datetime
    opens: bool

    @property
    def fingerprint(self) -> str:
        """The identity of the finding, the same for its opening and its closing, in every process."""
        return fingerprint_condition(self.condition.key)


@dataclass(frozen=True, slots=True)
class _TrackedCondition:
    condition: ReadinessCondition
    is_open: bool
    present_count: int = 0
    absent_count: int = 0


class FindingTracker:
    """Tracks conditions over evaluations; ``opened`` are those whose findings are still open."""

    def __init__(self, opened: Iterable[ReadinessCondition] = ()) -> None:
        self._tracked = {
            condition.key: _TrackedCondition(condition, is_open=True, present_count=_OPENS_AFTER)
            for condition in opened
        }

    @property
    def opened(self) -> tuple[ReadinessCondition, ...]:
        """The conditions of all open findings."""
        return tuple(tracked.condition for tracked in self._tracked.values() if tracked.is_open)

    def evaluate(self, conditions: Iterable[ReadinessCondition], at: datetime) -> Sequence[RecoveryFinding]:
        """Take all conditions that hold now; return the findings that open or close."""
        current = {condition.key: condition for condition in conditions}
        findings = []
        for key in {**self._tracked, **current}:
            tracked = self._tracked.pop(key, None)
            if key in current:
                tracked = _count_present(tracked, current[key])
            elif tracked:
                tracked = replace(tracked, present_count=0, absent_count=tracked.absent_count + 1)
            if tracked and not tracked.is_open and tracked.present_count >= _evaluations_to_open(key):
                tracked = replace(tracked, is_open=True)
                findings.append(RecoveryFinding(tracked.condition, at, opens=True))
            if tracked and tracked.is_open and tracked.absent_count >= _CLOSES_AFTER:
                findings.append(RecoveryFinding(tracked.condition, at, opens=False))
            elif tracked and (tracked.is_open or key in current):
                self._tracked[key] = tracked
        return findings


def _count_present(previous: _TrackedCondition | None, condition: ReadinessCondition) -> _TrackedCondition:
    if previous is None:
        return _TrackedCondition(condition, is_open=False, present_count=1)
    return _TrackedCondition(condition, previous.is_open, previous.present_count + 1)


def _evaluations_to_open(key: ConditionKey) -> int:
    """Return 1 for a replication loop, which a single returned tracer proves."""
    return 1 if key.kind is ConditionKind.MIRROR_LOOP else _OPENS_AFTER


def fingerprint_condition(key: ConditionKey) -> str:
    """Return the identity of a condition's finding as 32 hexadecimal digits."""
    return hashlib.sha256("/".join(["recover", *key]).encode()).hexdigest()[:32]
