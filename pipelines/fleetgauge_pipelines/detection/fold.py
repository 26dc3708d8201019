"""The fold: a pulse changes what is known of a cluster's brokers and may yield findings.

A broker is SUSPECT on the first of two signs (unanswered ApiVersions, silent
leader leg) and named BROKER_DOWN when most of the vantages that are heard
from see both. It is cleared by a success of its leader leg that was sent after
it was named, or by being in sync and answering for a while where it may not
lead. Time is the pulses' own, so that a backtest over history says what was
said live.
"""

import hashlib
import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from enum import StrEnum

from fleetgauge_pipelines.detection.signs import DEFAULT_THRESHOLDS, Signs, Thresholds, read_signs
from fleetgauge_probes.contract import HealthEvent, ProbePulse


class Phase(StrEnum):
    """What a broker is held for."""

    HEALTHY = "HEALTHY"
    SUSPECT = "SUSPECT"
    BROKER_DOWN = "BROKER_DOWN"


class Kind(StrEnum):
    """What a finding is about."""

    BROKER_DOWN = "BROKER_DOWN"


@dataclass(frozen=True, slots=True)
class Sighting:
    """What one vantage said last of one broker."""

    at: datetime
    signs: Signs
    well_since: datetime | None


@dataclass(frozen=True, slots=True)
class BrokerState:
    """One broker: its phase, since when, and what each vantage last said."""

    phase: Phase = Phase.HEALTHY
    since: datetime | None = None
    sightings: Mapping[str, Sighting] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class FleetState:
    """Everything the fold remembers, by (cluster, broker)."""

    brokers: Mapping[tuple[str, int], BrokerState] = field(default_factory=dict)

    def open_findings(self) -> tuple[tuple[str, int], ...]:
        """The brokers that are named now."""
        return tuple(sorted(key for key, one in self.brokers.items() if one.phase is Phase.BROKER_DOWN))


@dataclass(frozen=True, slots=True)
class Finding:
    """A broker's phase changed; ``event`` is what is stored and sent."""

    from_phase: Phase
    to_phase: Phase
    event: HealthEvent

    @property
    def names(self) -> bool:
        return self.to_phase is Phase.BROKER_DOWN

    @property
    def clears(self) -> bool:
        return self.from_phase is Phase.BROKER_DOWN


def remember(events: Iterable[HealthEvent]) -> FleetState:
    """The state that a watch left behind: who was doubted or named, from its own events in order."""
    brokers: dict[tuple[str, int], BrokerState] = {}
    for event in events:
        # A state that this version does not know came from a newer one; its next pulse tells afresh.
        if event.broker_id is not None and event.to_state in set(Phase):
            brokers[event.cluster_id, event.broker_id] = BrokerState(Phase(event.to_state), event.at)
    return FleetState(brokers)


def judge(
    state: FleetState, pulse: ProbePulse, limits: Thresholds = DEFAULT_THRESHOLDS
) -> tuple[FleetState, tuple[Finding, ...]]:
    """Fold one pulse in. Pure; brokers that the pulse does not mention stay as they are."""
    brokers = dict(state.brokers)
    findings = []
    for heard in pulse.brokers:
        key = (pulse.cluster_id, heard.broker_id)
        known = brokers.get(key, BrokerState())
        seen = _see(known, pulse, read_signs(heard, limits), limits)
        phase = _phase(seen, pulse.emitted_at, limits)
        if phase is seen.phase:
            brokers[key] = seen
            continue
        brokers[key] = replace(seen, phase=phase, since=pulse.emitted_at)
        findings.append(_finding(key, known, brokers[key], pulse))
    return FleetState(brokers), tuple(findings)


def _see(known: BrokerState, pulse: ProbePulse, signs: Signs, limits: Thresholds) -> BrokerState:
    before = known.sightings.get(pulse.vantage)
    unbroken = before is not None and _is_fresh(before, pulse.emitted_at, limits)
    since = before.well_since if before and unbroken and before.well_since else pulse.emitted_at
    sighting = Sighting(pulse.emitted_at, signs, since if signs.well else None)
    return replace(known, sightings={**known.sightings, pulse.vantage: sighting})


def _phase(state: BrokerState, now: datetime, limits: Thresholds) -> Phase:
    fresh = [s for s in state.sightings.values() if _is_fresh(s, now, limits)]
    gone = sum(s.signs.unanswered and s.signs.leg_silent for s in fresh)
    doubted = sum(s.signs.unanswered or s.signs.leg_silent for s in fresh)
    if state.phase is Phase.BROKER_DOWN:
        back = any(_is_back(s, state.since or now, now, limits) for s in fresh)
        return Phase.HEALTHY if back and not gone else Phase.BROKER_DOWN
    if 2 * gone > len(fresh):
        return Phase.BROKER_DOWN
    return Phase.SUSPECT if 2 * doubted > len(fresh) else Phase.HEALTHY


def _is_fresh(sighting: Sighting, now: datetime, limits: Thresholds) -> bool:
    return now - sighting.at < timedelta(milliseconds=limits.vantage_stale_ms)


def _is_back(sighting: Sighting, named_at: datetime, now: datetime, limits: Thresholds) -> bool:
    age_ms = sighting.signs.leader_success_age_ms
    succeeded_since = age_ms is not None and sighting.at - timedelta(milliseconds=age_ms) > named_at
    steady = timedelta(milliseconds=limits.steady_ms)
    return succeeded_since or (sighting.well_since is not None and now - sighting.well_since >= steady)


def _finding(key: tuple[str, int], before: BrokerState, after: BrokerState, pulse: ProbePulse) -> Finding:
    cluster_id, broker_id = key
    doubted_at = before.since if before.phase is not Phase.HEALTHY and before.since else pulse.emitted_at
    # The broker and the kind, never a time or a value: every event of a finding has the same.
    identity = f"{cluster_id}/{broker_id}/{Kind.BROKER_DOWN}"
    event = HealthEvent(
        event_id=_digest(f"{identity}/{after.phase}/{pulse.emitted_at.isoformat()}"),
        fingerprint=_digest(identity),
        cluster_id=cluster_id,
        broker_id=broker_id,
        at=pulse.emitted_at,
        from_state=before.phase.value,
        to_state=after.phase.value,
        kind=Kind.BROKER_DOWN.value,
        evidence=json.dumps(_evidence(after, doubted_at), sort_keys=True),
    )
    return Finding(before.phase, after.phase, event)


def _evidence(state: BrokerState, since: datetime) -> dict[str, object]:
    by_vantage = {vantage: sighting.signs.evidence() for vantage, sighting in sorted(state.sightings.items())}
    return {"since": since.isoformat(), "vantages": by_vantage}


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:32]
