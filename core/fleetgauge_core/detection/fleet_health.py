"""The health of a fleet as derived from pulses: the state of the fold over pulses."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import NamedTuple

from fleetgauge_core.detection.broker_liveness import BrokerLiveness
from fleetgauge_core.detection.finding import (
    Finding,
    FindingSubject,
    HealthCondition,
    HealthState,
    build_finding,
)
from fleetgauge_core.detection.slowness import BrokerSlowness
from fleetgauge_core.detection.thresholds import DEFAULT_THRESHOLDS, Thresholds
from fleetgauge_core.detection.vantage_faults import VantageFaults


class LatencyHistoryKey(NamedTuple):
    """A broker, and the vantage that measured its latencies."""

    cluster_id: str
    broker_id: int
    vantage: str


@dataclass(frozen=True, slots=True)
class BrokerHealth:
    """One broker's health: whether it is reachable, and whether it is slow."""

    liveness: BrokerLiveness = field(default_factory=BrokerLiveness)
    slowness: BrokerSlowness = field(default_factory=BrokerSlowness)

    @property
    def is_alert(self) -> bool:
        """Whether the broker has an open alert."""
        return self.liveness.state.is_alert or self.slowness.is_degraded


@dataclass(frozen=True, slots=True)
class ClusterHealth:
    """One cluster's health: its brokers, when pulses arrived, and the faults of vantages."""

    brokers: Mapping[int, BrokerHealth] = field(default_factory=dict)
    heard_since: datetime | None = None
    """Since when pulses have arrived without a gap."""
    last_heard: datetime | None = None
    """When the latest pulse was sent, or since when one has been expected."""
    last_pulse_at: datetime | None = None
    """When the latest pulse was sent, whether it lists brokers or not."""
    is_silent: bool = False
    silence_changed_at: datetime | None = None
    """When its pulses last stopped or resumed; the next such finding must be later."""
    is_down: bool = False
    last_down_at: datetime | None = None
    """The last time at which all of its brokers were unreachable."""
    vantage_faults: VantageFaults = field(default_factory=VantageFaults)

    def unhealthy_states(self, cluster_id: str) -> dict[FindingSubject, HealthState]:
        """Return the state of every subject of the cluster that is not HEALTHY."""
        states: dict[FindingSubject, HealthState] = {}
        if self.is_silent:
            states[FindingSubject(cluster_id, HealthCondition.NO_DATA)] = HealthState.NO_DATA
        if self.is_down:
            states[FindingSubject(cluster_id, HealthCondition.CLUSTER_DOWN)] = HealthState.CLUSTER_DOWN
        for vantage in self.vantage_faults.ill_vantages:
            subject = FindingSubject(cluster_id, HealthCondition.VANTAGE_ILL, vantage=vantage)
            states[subject] = HealthState.VANTAGE_ILL
        for vantage, broker_id in self.vantage_faults.faulty_paths:
            subject = FindingSubject(
                cluster_id, HealthCondition.PATH, vantage=vantage, target_broker_id=broker_id
            )
            states[subject] = HealthState.PATH
        for broker_id, broker in self.brokers.items():
            if broker.liveness.state is not HealthState.HEALTHY:
                subject = FindingSubject(cluster_id, HealthCondition.BROKER_DOWN, broker_id)
                states[subject] = broker.liveness.state
            if broker.slowness.is_degraded:
                subject = FindingSubject(cluster_id, HealthCondition.DEGRADED, broker_id)
                states[subject] = HealthState.DEGRADED
        return states

    def evidence(self, subject: FindingSubject, before: "ClusterHealth", at: datetime) -> dict[str, object]:
        """Return the evidence of a subject's change since ``before``, as ops/health_events stores it."""
        match subject.condition:
            case HealthCondition.BROKER_DOWN if subject.broker_id is not None:
                liveness = before.broker(subject.broker_id).liveness
                since = at if liveness.state is HealthState.HEALTHY else liveness.since or at
                vantages = self.broker(subject.broker_id).liveness.evidence()
                peers = self._peers_evidence(subject.broker_id)
                return {"since": since.isoformat(), "vantages": vantages, "peers": peers}
            case HealthCondition.DEGRADED if subject.broker_id is not None:
                slowness = self.broker(subject.broker_id).slowness.evidence()
                return slowness | {"peers": self._peers_evidence(subject.broker_id)}
            case HealthCondition.PATH if subject.target_broker_id is not None:
                vantages = self.broker(subject.target_broker_id).liveness.evidence()
                return {"vantage": subject.vantage, "broker": subject.target_broker_id, "vantages": vantages}
            case HealthCondition.VANTAGE_ILL if subject.vantage is not None:
                fault = before.vantage_faults.agent_faults.get(subject.vantage)
                is_cleared = subject.vantage not in self.vantage_faults.ill_vantages
                faults = (
                    before.vantage_faults if fault and fault.is_open and is_cleared else self.vantage_faults
                )
                return faults.evidence(subject.vantage)
            case HealthCondition.CLUSTER_DOWN:
                return {"brokers": len(self.brokers)}
            case _:
                return {"heard": before.last_heard.isoformat() if before.last_heard else None}

    def _peers_evidence(self, broker_id: int) -> dict[str, object]:
        """Return how many peers the broker has, and which of them have an open alert."""
        peers = {peer_id: peer for peer_id, peer in self.brokers.items() if peer_id != broker_id}
        return {
            "brokers": len(peers),
            "named": sorted(peer_id for peer_id, peer in peers.items() if peer.is_alert),
        }

    def broker(self, broker_id: int) -> BrokerHealth:
        """Return the broker's health; the initial one if the broker is not part of the cluster."""
        return self.brokers.get(broker_id, BrokerHealth())


@dataclass(frozen=True, slots=True)
class FleetHealth:
    """The health of all clusters of a fleet."""

    clusters: Mapping[str, ClusterHealth] = field(default_factory=dict)

    def open_findings(self) -> tuple[tuple[FindingSubject, HealthState], ...]:
        """Return the subjects that have an open alert, with their states."""
        states = (
            subject_state
            for cluster_id, cluster in self.clusters.items()
            for subject_state in cluster.unhealthy_states(cluster_id).items()
        )
        alerts = ((subject, state) for subject, state in states if state.is_alert)
        return tuple(sorted(alerts, key=lambda alert: subject_order(alert[0])))

    def is_silent(self, cluster_id: str, now: datetime, limits: Thresholds = DEFAULT_THRESHOLDS) -> bool:
        """Return whether no pulse of the cluster has arrived for so long that it counts as missing."""
        last_heard = self.clusters[cluster_id].last_heard
        return last_heard is None or now - last_heard >= limits.no_data


def compare_health(
    cluster_id: str, before: ClusterHealth, after: ClusterHealth, at: datetime
) -> Iterator[Finding]:
    """Yield a finding for every subject whose state differs, in a fixed order of subjects."""
    earlier, later = before.unhealthy_states(cluster_id), after.unhealthy_states(cluster_id)
    changed = (
        subject for subject in earlier.keys() | later.keys() if earlier.get(subject) is not later.get(subject)
    )
    for subject in sorted(changed, key=subject_order):
        from_state = earlier.get(subject, HealthState.HEALTHY)
        to_state = later.get(subject, HealthState.HEALTHY)
        is_silence = subject.condition is HealthCondition.NO_DATA
        changed_at = after.silence_changed_at or at if is_silence else at
        evidence = after.evidence(subject, before, at)
        yield build_finding(subject, from_state, to_state, changed_at, evidence)


def subject_order(subject: FindingSubject) -> list[str]:
    """Return a sort key for subjects, whose optional parts cannot be compared with each other."""
    return [str(part) for part in subject]
