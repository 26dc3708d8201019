"""The fold over pulses: a pulse, or its absence, changes a cluster's health and may yield findings.

Each cluster is evaluated on its own. Time is that of the pulses, so that a backtest over stored pulses yields
the same findings as the watch did.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence, Set
from dataclasses import replace
from datetime import datetime, timedelta
from itertools import chain

from fleetgauge_core.contract import ProbePulse
from fleetgauge_core.detection.broker_liveness import VantageObservation, is_unreachable
from fleetgauge_core.detection.finding import Finding, mark_as_unwatched
from fleetgauge_core.detection.fleet_health import (
    BrokerHealth,
    ClusterHealth,
    FleetHealth,
    compare_health,
)
from fleetgauge_core.detection.liveness_signs import read_liveness_signs
from fleetgauge_core.detection.slowness import measure_latencies
from fleetgauge_core.detection.thresholds import DEFAULT_THRESHOLDS, Thresholds

#: The resolution of stored times.
_TIME_RESOLUTION = timedelta(milliseconds=1)


def fold_pulse(
    health: FleetHealth, pulse: ProbePulse, limits: Thresholds = DEFAULT_THRESHOLDS
) -> tuple[FleetHealth, tuple[Finding, ...]]:
    """Return the health after one more pulse, and the findings that it yields; a pure function.

    A broker that no vantage lists any more has left the cluster.
    """
    cluster = health.clusters.get(pulse.cluster_id, ClusterHealth())
    # The pulse of an agent whose clock is behind counts as sent at the time of the latest pulse.
    at = max(pulse.emitted_at, cluster.last_pulse_at or pulse.emitted_at)
    before, silence_findings = _detect_silence(pulse.cluster_id, cluster, at, limits)
    listed = frozenset(broker.broker_id for broker in pulse.brokers)
    after = _evaluate(_record_pulse(before, pulse, at, limits), listed, at, limits)
    findings = compare_health(pulse.cluster_id, before, after, at)
    return FleetHealth({**health.clusters, pulse.cluster_id: after}), (*silence_findings, *findings)


def detect_no_data(
    health: FleetHealth, now: datetime, limits: Thresholds = DEFAULT_THRESHOLDS
) -> tuple[FleetHealth, tuple[Finding, ...]]:
    """Return the health as of ``now``, and a NO_DATA finding for each cluster that became silent."""
    clusters = dict(health.clusters)
    findings: list[Finding] = []
    for cluster_id, cluster in health.clusters.items():
        clusters[cluster_id], silence_findings = _detect_silence(cluster_id, cluster, now, limits)
        findings += silence_findings
    return FleetHealth(clusters), tuple(findings)


def _detect_silence(
    cluster_id: str, cluster: ClusterHealth, now: datetime, limits: Thresholds
) -> tuple[ClusterHealth, Sequence[Finding]]:
    """Return the cluster's health and its finding if it is silent by ``now``.

    The finding is dated when the silence became long enough, not when it was detected, so that a replay
    yields the same one.
    """
    if cluster.last_heard is None or cluster.is_silent or now - cluster.last_heard < limits.no_data:
        return cluster, ()
    silent_at = _silence_change_time(cluster, cluster.last_heard + limits.no_data)
    silent = replace(cluster, is_silent=True, silence_changed_at=silent_at)
    return silent, tuple(compare_health(cluster_id, cluster, silent, silent_at))


def remove_clusters(
    health: FleetHealth, is_removed: Callable[[str], bool], now: datetime
) -> tuple[FleetHealth, tuple[Finding, ...]]:
    """Return the health without the clusters that are not watched any more, and findings that clear them."""
    kept = {
        cluster_id: cluster for cluster_id, cluster in health.clusters.items() if not is_removed(cluster_id)
    }
    if len(kept) == len(health.clusters):
        return health, ()
    removed = [
        (cluster_id, cluster) for cluster_id, cluster in health.clusters.items() if cluster_id not in kept
    ]
    findings = (compare_health(cluster_id, cluster, ClusterHealth(), now) for cluster_id, cluster in removed)
    return FleetHealth(kept), tuple(map(mark_as_unwatched, chain.from_iterable(findings)))


def expect_pulses(health: FleetHealth, cluster_ids: Iterable[str], now: datetime) -> FleetHealth:
    """Return the health with pulses of these clusters expected from now on.

    A cluster that never sends a pulse becomes silent as if its last one had been sent now.
    """
    expected = {
        cluster_id: replace(health.clusters.get(cluster_id, ClusterHealth()), last_heard=now)
        for cluster_id in cluster_ids
    }
    return FleetHealth({**health.clusters, **expected})


def rewind_clock(health: FleetHealth, now: datetime) -> FleetHealth:
    """Return the health without times, for a clock that was set back to ``now``.

    Open alerts and latency histories are kept, as after a restart.
    """
    return FleetHealth(
        {cluster_id: _drop_timestamps(cluster, now) for cluster_id, cluster in health.clusters.items()}
    )


def _drop_timestamps(cluster: ClusterHealth, now: datetime) -> ClusterHealth:
    brokers = {
        broker_id: BrokerHealth(broker.liveness.drop_timestamps(now), broker.slowness.drop_timestamps())
        for broker_id, broker in cluster.brokers.items()
    }
    return replace(
        cluster,
        brokers=brokers,
        heard_since=None,
        last_heard=now,
        last_pulse_at=None,
        last_down_at=None,
        vantage_faults=cluster.vantage_faults.drop_timestamps(now),
    )


def _record_pulse(
    cluster: ClusterHealth, pulse: ProbePulse, at: datetime, limits: Thresholds
) -> ClusterHealth:
    """Return the cluster's health with the pulse's observations; states of liveness are not evaluated."""
    brokers, latencies = dict(cluster.brokers), measure_latencies(pulse, limits)
    for broker_pulse in pulse.brokers:
        before = brokers.get(broker_pulse.broker_id, BrokerHealth())
        signs = read_liveness_signs(broker_pulse, limits)
        # Probes that waited for a broker that was down are late; that must not raise a second alert.
        is_down = before.liveness.state.is_alert
        latency = None if is_down else latencies.get(broker_pulse.broker_id)
        brokers[broker_pulse.broker_id] = BrokerHealth(
            before.liveness.record_signs(pulse.vantage, at, signs, limits),
            before.slowness.add_pulse(pulse.vantage, at, latency, limits),
        )
    faults = cluster.vantage_faults.record_pulse(pulse, at, limits)
    if not pulse.brokers and not cluster.is_down:
        # The agent reaches no broker, so that its pulse shows nothing about the cluster.
        return replace(cluster, last_heard=cluster.last_heard or at, last_pulse_at=at)
    return replace(
        cluster,
        brokers=brokers,
        vantage_faults=faults,
        heard_since=cluster.heard_since if cluster.heard_since and not cluster.is_silent else at,
        last_heard=max(at, cluster.last_heard or at),
        last_pulse_at=at,
        is_silent=False,
        silence_changed_at=_silence_change_time(cluster, at)
        if cluster.is_silent
        else cluster.silence_changed_at,
    )


def _silence_change_time(cluster: ClusterHealth, at: datetime) -> datetime:
    """Return the time of the next NO_DATA finding, which must be later than the previous one.

    A late pulse may have been sent before the silence began; readers order the findings by their time.
    """
    previous = cluster.silence_changed_at
    return max(at, previous + _TIME_RESOLUTION) if previous else at


def _evaluate(cluster: ClusterHealth, listed: Set[int], now: datetime, limits: Thresholds) -> ClusterHealth:
    """Return the cluster's health with the states that follow from its fresh observations.

    ``listed``: the brokers in the latest pulse.
    """
    observations = {
        broker_id: broker.liveness.fresh_observations(now, limits)
        for broker_id, broker in cluster.brokers.items()
    }
    unreachable = [is_unreachable(by_vantage.values()) for by_vantage in observations.values() if by_vantage]
    # The vantage whose pulse arrives first after a gap may be the faulty one: wait for the others.
    is_settled = cluster.heard_since is not None and now - cluster.heard_since >= limits.settled
    # A restarted agent lists no brokers, so that a cluster stays down until one of its brokers answers.
    is_down = all(unreachable) and (cluster.is_down or (is_settled and len(unreachable) > 1))
    last_down_at = now if is_down else cluster.last_down_at
    # The brokers of a cluster that was down return one after the other.
    is_returning = last_down_at is not None and now - last_down_at < 2 * limits.settled
    heard_vantages = {
        vantage for broker in cluster.brokers.values() for vantage in broker.liveness.observations
    }
    lists_all_brokers = _lists_all_brokers(cluster, now, limits)
    faults = cluster.vantage_faults
    if lists_all_brokers:
        faults = faults.restrict_to(heard_vantages)
    faults = faults.update(observations, heard_vantages, limits)
    contradicted = faults.vantages_by_broker()
    brokers = {}
    for broker_id, broker in cluster.brokers.items():
        if broker_id in listed:
            counted = _exclude_vantages(observations[broker_id], contradicted.get(broker_id, frozenset()))
            may_alert = is_settled and not is_returning
            liveness = broker.liveness.evaluate(counted, now, limits, may_alert=may_alert)
            is_unchanged = liveness is broker.liveness
            brokers[broker_id] = broker if is_unchanged else BrokerHealth(liveness, broker.slowness)
        elif observations[broker_id] or not listed or not lists_all_brokers:
            brokers[broker_id] = broker
    return replace(
        cluster, brokers=brokers, is_down=is_down, last_down_at=last_down_at, vantage_faults=faults
    )


def _exclude_vantages(
    observations: Mapping[str, VantageObservation], vantages: Set[str]
) -> Mapping[str, VantageObservation]:
    if not vantages:
        return observations
    return {vantage: observation for vantage, observation in observations.items() if vantage not in vantages}


def _lists_all_brokers(cluster: ClusterHealth, now: datetime, limits: Thresholds) -> bool:
    """Return whether a broker that no fresh pulse lists has left the cluster.

    A broker that is down stays registered, so that pulses list it until it is unregistered.
    """
    return cluster.heard_since is not None and not limits.is_fresh(cluster.heard_since, now)
