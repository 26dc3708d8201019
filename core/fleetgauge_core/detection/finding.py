"""Findings: changes of a subject's health state, as they are stored and sent."""

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from enum import StrEnum
from typing import NamedTuple

from pydantic import BaseModel, ValidationError

from fleetgauge_core.contract import HealthEvent, RecordDecodeError

#: The key of a finding's evidence that is false if the cluster is no longer watched.
_WATCHED = "watched"


class HealthCondition(StrEnum):
    """What is monitored of a subject; all findings of a subject's condition share one fingerprint."""

    BROKER_DOWN = "BROKER_DOWN"
    DEGRADED = "DEGRADED"
    PATH = "PATH"
    VANTAGE_ILL = "VANTAGE_ILL"
    CLUSTER_DOWN = "CLUSTER_DOWN"
    NO_DATA = "NO_DATA"
    LATENCY_BURN = "LATENCY_BURN"
    LATENCY_BURN_SLOW = "LATENCY_BURN_SLOW"
    AVAILABILITY_BURN = "AVAILABILITY_BURN"
    AVAILABILITY_BURN_SLOW = "AVAILABILITY_BURN_SLOW"


class HealthState(StrEnum):
    """The health state of a subject; all but HEALTHY and SUSPECT are finding kinds that raise an alert."""

    HEALTHY = "HEALTHY"
    SUSPECT = "SUSPECT"
    BROKER_DOWN = "BROKER_DOWN"
    NETWORK_UNAVAILABLE = "NETWORK_UNAVAILABLE"
    """No client reaches the broker, but it still replicates within its cluster."""
    STORAGE_STALLED = "STORAGE_STALLED"
    """The broker's storage makes no progress, or a log directory is offline."""
    DEGRADED = "DEGRADED"
    """The broker is slower than its peers and than it used to be."""
    PATH = "PATH"
    """One vantage does not reach a broker that other vantages reach: not a fault of the broker."""
    VANTAGE_ILL = "VANTAGE_ILL"
    """One vantage does not reach most brokers, which other vantages reach."""
    CLUSTER_DOWN = "CLUSTER_DOWN"
    """No broker of the cluster is reachable."""
    NO_DATA = "NO_DATA"
    """No vantage has sent a pulse of the cluster."""
    LATENCY_BURN = "LATENCY_BURN"
    """The latency error budget is burning fast enough to page."""
    LATENCY_BURN_SLOW = "LATENCY_BURN_SLOW"
    """The latency error budget is burning slowly, but will not last its period."""
    AVAILABILITY_BURN = "AVAILABILITY_BURN"
    AVAILABILITY_BURN_SLOW = "AVAILABILITY_BURN_SLOW"

    @property
    def is_alert(self) -> bool:
        """Whether the state raises an alert."""
        return self not in (HealthState.HEALTHY, HealthState.SUSPECT)

    @property
    def condition(self) -> HealthCondition:
        """The condition that the state belongs to; SUSPECT is a state of BROKER_DOWN."""
        if self in (
            HealthState.HEALTHY,
            HealthState.SUSPECT,
            HealthState.NETWORK_UNAVAILABLE,
            HealthState.STORAGE_STALLED,
        ):
            return HealthCondition.BROKER_DOWN
        return HealthCondition(self.value)


class FindingSubject(NamedTuple):
    """What a finding is about: a condition of a cluster, a broker, a vantage or a path between the two.

    ``broker_id`` is set only if the broker itself is at fault; a path has a ``target_broker_id`` instead.
    """

    cluster_id: str
    condition: HealthCondition
    broker_id: int | None = None
    vantage: str | None = None
    target_broker_id: int | None = None
    """The broker that the vantage does not reach."""

    @property
    def fingerprint(self) -> str:
        """Identifier that all findings of the subject share; it depends on no time and no measured value."""
        members = (self.broker_id, self.vantage, self.target_broker_id)
        parts = [str(member) for member in members if member is not None]
        return _digest("/".join([self.cluster_id, *parts, self.condition]))


@dataclass(frozen=True, slots=True)
class Finding:
    """A change of a subject's health state; ``event`` is the record that is stored and sent."""

    subject: FindingSubject
    from_state: HealthState
    to_state: HealthState
    event: HealthEvent

    @property
    def is_alert(self) -> bool:
        """Whether the new state raises an alert."""
        return self.to_state.is_alert

    @property
    def is_cleared(self) -> bool:
        """Whether the change clears an alert."""
        return self.from_state.is_alert and not self.to_state.is_alert

    @property
    def is_unwatched(self) -> bool:
        """Whether the alert cleared because its cluster is no longer watched, not because it recovered."""
        return json.loads(self.event.evidence).get(_WATCHED, True) is False


def build_finding(
    subject: FindingSubject,
    before: HealthState,
    after: HealthState,
    at: datetime,
    evidence: Mapping[str, object],
) -> Finding:
    """Return the finding, with its event, of a subject's change from one state to another."""
    alert = after if after.is_alert else before
    event = HealthEvent(
        event_id=_digest(f"{subject.fingerprint}/{after}/{at.isoformat()}"),
        fingerprint=subject.fingerprint,
        cluster_id=subject.cluster_id,
        broker_id=subject.broker_id,
        at=at,
        from_state=before.value,
        to_state=after.value,
        kind=alert.value if alert.is_alert else subject.condition.value,
        evidence=json.dumps(evidence, sort_keys=True),
    )
    return Finding(subject, before, after, event)


def mark_as_unwatched(finding: Finding) -> Finding:
    """Return the finding, whose evidence says that it clears because the cluster is no longer watched."""
    evidence = {**json.loads(finding.event.evidence), _WATCHED: False}
    event = replace(finding.event, evidence=json.dumps(evidence, sort_keys=True))
    return replace(finding, event=event)


def parse_finding(event: HealthEvent) -> Finding | None:
    """Return the finding that an event records, or None if a newer version wrote it with an unknown state.

    Raises: RecordDecodeError when the evidence lacks a field from which the state is restored.
    """
    if not {event.from_state, event.to_state} <= set(HealthState):
        return None
    before, after = HealthState(event.from_state), HealthState(event.to_state)
    condition = (after if after.is_alert else before).condition
    try:
        evidence = _EVIDENCE.get(condition, _Evidence).model_validate_json(event.evidence)
    except ValidationError as error:
        fields = ", ".join(".".join(map(str, detail["loc"])) or detail["type"] for detail in error.errors())
        raise RecordDecodeError("health_event", f"evidence of {condition}: {fields}") from error
    vantage, target = getattr(evidence, "vantage", None), getattr(evidence, "broker", None)
    subject = FindingSubject(event.cluster_id, condition, event.broker_id, vantage, target)
    return Finding(subject, before, after, event)


class _Evidence(BaseModel):
    """The evidence fields that are read back; none for most conditions."""


class _PathEvidence(_Evidence):
    vantage: str
    broker: int


class _VantageEvidence(_Evidence):
    vantage: str
    brokers: list[int] = []
    agent_fault: str | None = None


class _SlownessEvidence(_Evidence):
    slow: str = "most"


_EVIDENCE: dict[HealthCondition, type[_Evidence]] = {
    HealthCondition.PATH: _PathEvidence,
    HealthCondition.VANTAGE_ILL: _VantageEvidence,
    HealthCondition.DEGRADED: _SlownessEvidence,
}


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:32]
