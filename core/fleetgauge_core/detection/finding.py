"""What the fold says when something changes, as it is stored and sent."""

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import NamedTuple

from pydantic import BaseModel, ValidationError

from fleetgauge_core.contract import ContractError, HealthEvent


class Chain(StrEnum):
    """What is followed by itself: all events of a subject's chain have one fingerprint."""

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


class Phase(StrEnum):
    """What a subject is held for."""

    HEALTHY = "HEALTHY"
    SUSPECT = "SUSPECT"
    BROKER_DOWN = "BROKER_DOWN"
    NETWORK_UNAVAILABLE = "NETWORK_UNAVAILABLE"
    """The cluster hears a broker that none of its clients can reach."""
    STORAGE_STALLED = "STORAGE_STALLED"
    """A broker gets on with none of its work, or has given up a log directory."""
    DEGRADED = "DEGRADED"
    PATH = "PATH"
    """One vantage does not reach a broker that others reach: no fault of the broker."""
    VANTAGE_ILL = "VANTAGE_ILL"
    """One vantage does not reach most brokers, which others reach."""
    CLUSTER_DOWN = "CLUSTER_DOWN"
    NO_DATA = "NO_DATA"
    LATENCY_BURN = "LATENCY_BURN"
    """Its latency budget goes so fast that somebody is to look now."""
    LATENCY_BURN_SLOW = "LATENCY_BURN_SLOW"
    """Not so fast, and yet it will not last."""
    AVAILABILITY_BURN = "AVAILABILITY_BURN"
    AVAILABILITY_BURN_SLOW = "AVAILABILITY_BURN_SLOW"

    @property
    def names(self) -> bool:
        """Whether somebody is to be told of it."""
        return self not in (Phase.HEALTHY, Phase.SUSPECT)

    @property
    def chain(self) -> Chain:
        """The one that it belongs to. What is doubted is whether a broker is there."""
        if self in (Phase.HEALTHY, Phase.SUSPECT, Phase.NETWORK_UNAVAILABLE, Phase.STORAGE_STALLED):
            return Chain.BROKER_DOWN
        return Chain(self.value)


class Subject(NamedTuple):
    """What a finding is about. Of a path neither end is: ``broker_id`` is that of a sick one alone."""

    cluster_id: str
    chain: Chain
    broker_id: int | None = None
    vantage: str | None = None
    towards: int | None = None
    """The broker that a vantage does not reach."""

    @property
    def fingerprint(self) -> str:
        """Never of a time or a value: every event of a finding has the same."""
        ends = [str(one) for one in (self.broker_id, self.vantage, self.towards) if one is not None]
        return _digest("/".join([self.cluster_id, *ends, self.chain]))


@dataclass(frozen=True, slots=True)
class Finding:
    """A subject's phase changed; ``event`` is what is stored and sent."""

    subject: Subject
    from_phase: Phase
    to_phase: Phase
    event: HealthEvent

    @property
    def names(self) -> bool:
        return self.to_phase.names

    @property
    def clears(self) -> bool:
        return self.from_phase.names and not self.to_phase.names


def finding(
    subject: Subject, before: Phase, after: Phase, at: datetime, evidence: Mapping[str, object]
) -> Finding:
    """From one phase to the other."""
    called = after if after.names else before
    event = HealthEvent(
        event_id=_digest(f"{subject.fingerprint}/{after}/{at.isoformat()}"),
        fingerprint=subject.fingerprint,
        cluster_id=subject.cluster_id,
        broker_id=subject.broker_id,
        at=at,
        from_state=before.value,
        to_state=after.value,
        kind=called.value if called.names else subject.chain.value,
        evidence=json.dumps(evidence, sort_keys=True),
    )
    return Finding(subject, before, after, event)


def recalled(event: HealthEvent) -> Finding | None:
    """What the event told of; None for one of a newer version that tells of something else.

    Raises ContractError where its evidence lacks what goes on from it: a fold must not meet that.
    """
    if not {event.from_state, event.to_state} <= set(Phase):
        return None
    before, after = Phase(event.from_state), Phase(event.to_state)
    chain = (after if after.names else before).chain
    try:
        evidence = _EVIDENCE.get(chain, _Evidence).model_validate_json(event.evidence)
    except ValidationError as error:
        where = ", ".join(".".join(map(str, one["loc"])) or one["type"] for one in error.errors())
        raise ContractError("health_event", f"evidence of {chain}: {where}") from error
    vantage, broker = getattr(evidence, "vantage", None), getattr(evidence, "broker", None)
    return Finding(Subject(event.cluster_id, chain, event.broker_id, vantage, broker), before, after, event)


class _Evidence(BaseModel):
    """What is gone on from, of the chains that say no more than that they hold."""


class _OfPath(_Evidence):
    vantage: str
    broker: int


class _OfVantage(_Evidence):
    vantage: str
    brokers: list[int] = []


class _OfSlowness(_Evidence):
    slow: str = "most"


_EVIDENCE: dict[Chain, type[_Evidence]] = {
    Chain.PATH: _OfPath,
    Chain.VANTAGE_ILL: _OfVantage,
    Chain.DEGRADED: _OfSlowness,
}


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:32]
