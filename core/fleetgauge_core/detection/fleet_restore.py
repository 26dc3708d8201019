"""Restoring a fleet's health from the findings and the latency histories that an earlier watch stored."""

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from datetime import datetime
from types import MappingProxyType

from fleetgauge_core.contract import ProbePulse
from fleetgauge_core.detection.broker_liveness import BrokerLiveness
from fleetgauge_core.detection.finding import Finding, HealthCondition, HealthState
from fleetgauge_core.detection.fleet_health import ClusterHealth, FleetHealth, LatencyHistoryKey
from fleetgauge_core.detection.slowness import LatencyHistory


def restore_fleet_health(
    findings: Iterable[Finding],
    histories: Mapping[LatencyHistoryKey, LatencyHistory] = MappingProxyType({}),
) -> FleetHealth:
    """Return the health that an earlier watch left, from its findings in order and its latency histories."""
    clusters: dict[str, ClusterHealth] = {}
    for finding in findings:
        cluster_id = finding.subject.cluster_id
        clusters[cluster_id] = _restore_finding(clusters.get(cluster_id, ClusterHealth()), finding)
    for (cluster_id, broker_id, vantage), history in histories.items():
        cluster = clusters.get(cluster_id, ClusterHealth())
        broker = cluster.broker(broker_id)
        broker = replace(broker, slowness=broker.slowness.with_restored_history(vantage, history))
        clusters[cluster_id] = replace(cluster, brokers={**cluster.brokers, broker_id: broker})
    return FleetHealth(clusters)


def adopt_finding(health: FleetHealth, finding: Finding) -> FleetHealth:
    """Return the health with an alert that another watch opened and whose event arrived after the start.

    The alert stays open until pulses clear it, so that the receivers of its notification are also notified
    when it clears. Findings about error budgets change nothing, because they do not derive from pulses.
    """
    if not finding.is_alert or finding.subject in dict(health.open_findings()):
        return health
    cluster_id = finding.subject.cluster_id
    before = health.clusters.get(cluster_id, ClusterHealth())
    after = _restore_finding(before, finding)
    return health if after is before else FleetHealth({**health.clusters, cluster_id: after})


def find_changed_histories(
    before: FleetHealth, after: FleetHealth, pulse: ProbePulse
) -> Iterator[tuple[LatencyHistoryKey, LatencyHistory]]:
    """Yield the latency histories that the pulse changed, to be stored for ``restore_fleet_health``."""
    earlier, later = (health.clusters.get(pulse.cluster_id, ClusterHealth()) for health in (before, after))
    for broker_id, broker in later.brokers.items():
        history = broker.slowness.history_from(pulse.vantage)
        if history != earlier.broker(broker_id).slowness.history_from(pulse.vantage):
            yield LatencyHistoryKey(pulse.cluster_id, broker_id, pulse.vantage), history


def _restore_finding(cluster: ClusterHealth, finding: Finding) -> ClusterHealth:
    """Return the cluster's health after a stored finding."""
    is_open, subject = finding.to_state is not HealthState.HEALTHY, finding.subject
    evidence = json.loads(finding.event.evidence)
    faults = cluster.vantage_faults
    match subject.condition:
        case HealthCondition.NO_DATA:
            return replace(cluster, is_silent=is_open, silence_changed_at=finding.event.at)
        case HealthCondition.CLUSTER_DOWN:
            return replace(cluster, is_down=is_open)
        case HealthCondition.VANTAGE_ILL if subject.vantage is not None and "agent_fault" in evidence:
            faults = faults.with_restored_agent_fault(
                subject.vantage,
                str(evidence["agent_fault"]),
                evidence.get("brokers", ()),
                finding.event.at,
                is_open=is_open,
            )
            return replace(cluster, vantage_faults=faults)
        case HealthCondition.VANTAGE_ILL if subject.vantage is not None:
            faults = faults.with_restored_finding(
                subject.vantage, evidence.get("brokers", ()), is_vantage_faulty=True, is_open=is_open
            )
            return replace(cluster, vantage_faults=faults)
        case HealthCondition.PATH if subject.vantage is not None and subject.target_broker_id is not None:
            faults = faults.with_restored_finding(
                subject.vantage, [subject.target_broker_id], is_vantage_faulty=False, is_open=is_open
            )
            return replace(cluster, vantage_faults=faults)
        case _ if subject.broker_id is None:
            return cluster
    broker = cluster.broker(subject.broker_id)
    if subject.condition is HealthCondition.DEGRADED:
        slowness = broker.slowness.with_restored_finding(
            is_open=is_open, slow=evidence.get("slow", "most"), at=finding.event.at
        )
        broker = replace(broker, slowness=slowness)
    else:
        liveness = _restore_liveness(broker.liveness, finding.to_state, finding.event.at)
        broker = replace(broker, liveness=liveness)
    return replace(cluster, brokers={**cluster.brokers, subject.broker_id: broker})


def _restore_liveness(liveness: BrokerLiveness, state: HealthState, at: datetime) -> BrokerLiveness:
    is_update = state.is_alert and liveness.state.is_alert
    if state.is_alert and not liveness.state.is_alert:
        liveness = liveness.with_alert_at(at)
    return BrokerLiveness(state, liveness.since if is_update else at, liveness.alert_times)
