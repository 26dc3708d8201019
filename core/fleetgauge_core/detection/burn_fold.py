"""The fold over probe minutes: which cluster burns an error budget too fast.

Motivation: a budget can burn although no broker is at fault, for instance by a slow network, a quota or a
reassignment that does not finish. But a budget that burns because of a broker must not page again, minutes
after the alert of that broker has paged.

Approach: records of the client leg are pooled by minute, as in silver; a minute is closed when a record of a
later minute arrives. Errors from shortly before an alert opens until shortly after it clears are excluded
from burn rates, because that alert has already paged. Records that arrive after their minute is closed count
in the tables only.
"""

from bisect import bisect_left
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import replace
from datetime import datetime, timedelta

from fleetgauge_core.contract import Leg, ProbeMinute
from fleetgauge_core.detection.burn_state import (
    BrokerMinuteRecord,
    BurnSettings,
    ClusterBurnState,
    FleetBurnState,
    MaintenanceLookup,
    OpenMinute,
)
from fleetgauge_core.detection.finding import (
    Finding,
    FindingSubject,
    HealthCondition,
    HealthState,
    build_finding,
    mark_as_unwatched,
)
from fleetgauge_core.fleet.burn_windows import Severity
from fleetgauge_core.slo.burn import (
    BurnAlert,
    BurnAlertState,
    BurnHistory,
    BurnMinute,
    ServiceLevelIndicator,
    WindowBurn,
)
from fleetgauge_core.slo.levels import compute_broker_minute_levels

_MINUTE = timedelta(minutes=1)
#: The longest window of all sets of burn windows; older minutes are dropped.
LONGEST_BURN_WINDOW = timedelta(minutes=4320)
#: Errors precede the alert: DEGRADED opens after two minutes of slowness.
_ERRORS_BEFORE_ALERT = timedelta(minutes=3)
#: The last affected probes end after the alert has cleared.
_ERRORS_AFTER_ALERT = _MINUTE
_EXCLUDING_CONDITIONS = (
    HealthCondition.BROKER_DOWN,
    HealthCondition.DEGRADED,
    HealthCondition.CLUSTER_DOWN,
)

_CONDITIONS: Mapping[tuple[ServiceLevelIndicator, Severity], HealthCondition] = {
    (ServiceLevelIndicator.LATENCY, "page"): HealthCondition.LATENCY_BURN,
    (ServiceLevelIndicator.LATENCY, "ticket"): HealthCondition.LATENCY_BURN_SLOW,
    (ServiceLevelIndicator.AVAILABILITY, "page"): HealthCondition.AVAILABILITY_BURN,
    (ServiceLevelIndicator.AVAILABILITY, "ticket"): HealthCondition.AVAILABILITY_BURN_SLOW,
}
#: The conditions of burning error budgets.
BURN_CONDITIONS = frozenset(_CONDITIONS.values())


def _no_maintenance(_: datetime) -> Set[int | None]:
    return frozenset()


def fold_past_minute_record(
    state: FleetBurnState,
    record: ProbeMinute,
    settings: BurnSettings,
    maintenance: MaintenanceLookup = _no_maintenance,
) -> FleetBurnState:
    """Return the state after a record of the past, without evaluating alerts.

    The next recent record evaluates them. A record of a closed minute, or of the leader leg, changes nothing.
    """
    before = state.cluster(record.cluster_id)
    if record.leg is not Leg.CLIENT or (before.minutes and record.minute <= before.minutes[-1].minute):
        return state
    after = _close_minutes(_add_record(before, record, settings), record.minute, settings, maintenance)
    return _replace_cluster(state, record.cluster_id, after)


def fold_minute_record(
    state: FleetBurnState,
    record: ProbeMinute,
    settings: BurnSettings,
    maintenance: MaintenanceLookup = _no_maintenance,
) -> tuple[FleetBurnState, tuple[Finding, ...]]:
    """Return the state after one more record, and the findings if the record closes a minute."""
    after = fold_past_minute_record(state, record, settings, maintenance)
    cluster = after.cluster(record.cluster_id)
    if cluster.minutes[-1:] == state.cluster(record.cluster_id).minutes[-1:]:
        return after, ()
    evaluated, findings = _evaluate(record.cluster_id, cluster, settings)
    return _replace_cluster(after, record.cluster_id, evaluated), findings


def fold_closed_minute(
    state: FleetBurnState, cluster_id: str, minute: BurnMinute, settings: BurnSettings
) -> tuple[FleetBurnState, tuple[Finding, ...]]:
    """Return the state after a closed minute, as the tables store it, and the findings that it yields."""
    extended = _append_minutes(state.cluster(cluster_id), [minute], minute.minute + _MINUTE)
    evaluated, findings = _evaluate(cluster_id, extended, settings)
    return _replace_cluster(state, cluster_id, evaluated), findings


def exclude_paged_errors(state: FleetBurnState, finding: Finding) -> FleetBurnState:
    """Return the state with the errors of a broker's or cluster's alert excluded.

    The exclusion lasts from 3 minutes before the alert opens to 1 minute after it clears.
    """
    subject = finding.subject
    if subject.condition not in _EXCLUDING_CONDITIONS:
        return state
    cluster, at = state.cluster(subject.cluster_id), finding.event.at
    alerts = dict(cluster.excluding_alerts)
    if finding.is_alert:
        alerts.setdefault(subject, at - _ERRORS_BEFORE_ALERT)
        opened = replace(cluster, excluding_alerts=alerts, history=None)
        return _replace_cluster(state, subject.cluster_id, opened)
    if subject not in alerts:
        return state
    period = alerts.pop(subject), at + _ERRORS_AFTER_ALERT
    recent = [(start, end) for start, end in cluster.excluded_periods if end > at - LONGEST_BURN_WINDOW]
    cleared = replace(cluster, excluding_alerts=alerts, excluded_periods=(*recent, period), history=None)
    return _replace_cluster(state, subject.cluster_id, cleared)


def restore_burn_state(
    findings: Iterable[Finding], minutes: Mapping[str, Iterable[BurnMinute]]
) -> FleetBurnState:
    """Return the state that an earlier watch left: its findings in their order, and minutes by cluster."""
    state = FleetBurnState(
        {
            cluster_id: ClusterBurnState(minutes=tuple(sorted(cluster_minutes)))
            for cluster_id, cluster_minutes in minutes.items()
        }
    )
    for finding in findings:
        state = exclude_paged_errors(state, finding)
        cluster_id, condition = finding.subject.cluster_id, finding.subject.condition
        if condition in BURN_CONDITIONS:
            cluster = state.cluster(cluster_id)
            burning = cluster.burning | {condition} if finding.is_alert else cluster.burning - {condition}
            state = _replace_cluster(state, cluster_id, replace(cluster, burning=burning))
    return state


def remove_cluster_burns(
    state: FleetBurnState, is_removed: Callable[[str], bool], now: datetime
) -> tuple[FleetBurnState, tuple[Finding, ...]]:
    """Return the state without the clusters that are not watched any more, and findings that clear them."""
    removed = {
        cluster_id: cluster for cluster_id, cluster in state.clusters.items() if is_removed(cluster_id)
    }
    findings = tuple(
        mark_as_unwatched(
            build_finding(
                FindingSubject(cluster_id, condition),
                HealthState(condition.value),
                HealthState.HEALTHY,
                now,
                _burn_evidence(()),
            )
        )
        for cluster_id, cluster in removed.items()
        for condition in sorted(cluster.burning)
    )
    kept = {
        cluster_id: cluster for cluster_id, cluster in state.clusters.items() if cluster_id not in removed
    }
    return FleetBurnState(kept) if removed else state, findings


def _replace_cluster(state: FleetBurnState, cluster_id: str, cluster: ClusterBurnState) -> FleetBurnState:
    return FleetBurnState({**state.clusters, cluster_id: cluster})


def _add_record(cluster: ClusterBurnState, record: ProbeMinute, settings: BurnSettings) -> ClusterBurnState:
    minute = cluster.open_minutes.get(record.minute, OpenMinute())
    on_time = record.schedule_lag_p95_us <= settings.agent_late_us
    broker_minute = BrokerMinuteRecord(
        record.broker_id, record.attempted if on_time else 0, record.success_us if on_time else ()
    )
    records = {**minute.records, (record.run_id, record.sequence): broker_minute}
    listed = minute.expected_brokers | {record.broker_id, *record.expected_brokers}
    updated = OpenMinute(records, listed - settings.retired_brokers)
    return replace(cluster, open_minutes={**cluster.open_minutes, record.minute: updated})


def _close_minutes(
    cluster: ClusterBurnState, until: datetime, settings: BurnSettings, maintenance: MaintenanceLookup
) -> ClusterBurnState:
    """Return the state with every minute before ``until`` closed, also those without a record."""
    start = cluster.minutes[-1].minute + _MINUTE if cluster.minutes else min(cluster.open_minutes)
    start = max(start, until - LONGEST_BURN_WINDOW)
    if start >= until:
        return cluster
    closed, expected = list[BurnMinute](), cluster.expected_brokers
    for minute in _minutes_between(start, until):
        open_minute = cluster.open_minutes.get(minute, OpenMinute())
        expected = open_minute.expected_brokers or expected
        under_maintenance = maintenance(minute)
        counted = frozenset() if None in under_maintenance else expected - under_maintenance
        closed.append(_compute_burn_minute(minute, open_minute, counted, settings))
    return replace(
        _append_minutes(cluster, closed, until),
        open_minutes={
            minute: open_minute for minute, open_minute in cluster.open_minutes.items() if minute >= until
        },
        expected_brokers=expected,
    )


def _append_minutes(
    cluster: ClusterBurnState, closed: Sequence[BurnMinute], until: datetime
) -> ClusterBurnState:
    """Return the state with these minutes, without those that no burn window before ``until`` contains."""
    start = until - LONGEST_BURN_WINDOW
    drop = bisect_left(cluster.minutes, start, key=lambda burn_minute: burn_minute.minute)
    history = cluster.history and cluster.history.extend(_without_excluded_errors(cluster, closed), start)
    return replace(cluster, minutes=(*cluster.minutes[drop:], *closed), history=history)


def _without_excluded_errors(
    cluster: ClusterBurnState, minutes: Iterable[BurnMinute]
) -> Iterator[BurnMinute]:
    """Yield the minutes, without errors where those are excluded."""
    for burn_minute in minutes:
        if cluster.is_excluded(burn_minute.minute):
            yield burn_minute._replace(bad=False, succeeded=burn_minute.attempted)
        else:
            yield burn_minute


def _minutes_between(start: datetime, end: datetime) -> Iterator[datetime]:
    while start < end:
        yield start
        start += _MINUTE


def _compute_burn_minute(
    minute: datetime, open_minute: OpenMinute, expected: frozenset[int], settings: BurnSettings
) -> BurnMinute:
    pools: dict[int, list[BrokerMinuteRecord]] = defaultdict(list)
    for record in open_minute.records.values():
        pools[record.broker_id].append(record)
    attempted = succeeded = measured = 0
    bad = False
    for broker_id in expected:
        attempts = sum(record.attempted for record in pools[broker_id])
        successes = sorted(us for record in pools[broker_id] for us in record.success_us)
        levels = compute_broker_minute_levels(Leg.CLIENT, attempts, successes)
        if levels:
            measured += 1
            attempted += attempts
            succeeded += len(successes)
            bad = bad or levels.latency_p99_censored_us > settings.latency_objective_us
    return BurnMinute(minute, bad, attempted, succeeded, len(expected), measured)


def _evaluate(
    cluster_id: str, cluster: ClusterBurnState, settings: BurnSettings
) -> tuple[ClusterBurnState, tuple[Finding, ...]]:
    """Return the state with its alerts as of the last closed minute, and findings for those that changed."""
    end = cluster.minutes[-1].minute + _MINUTE
    cluster = _ensure_history(cluster, end)
    alerts: Sequence[BurnAlert] = ()
    if cluster.history:
        alerts = cluster.history.evaluate_alerts(end, settings.windows, settings.availability_objective)
    findings: list[Finding] = []
    burning = set(cluster.burning)
    for (indicator, severity), condition in _CONDITIONS.items():
        relevant = [
            alert for alert in alerts if alert.indicator is indicator and alert.window.severity == severity
        ]
        was_firing = condition in burning
        fires = _is_firing(relevant, was_firing)
        if fires != was_firing:
            burning ^= {condition}
            healthy, alerting = HealthState.HEALTHY, HealthState(condition.value)
            before, after = (healthy, alerting) if fires else (alerting, healthy)
            subject = FindingSubject(cluster_id, condition)
            findings.append(build_finding(subject, before, after, end, _burn_evidence(relevant)))
    return replace(cluster, burning=frozenset(burning)), tuple(findings)


def _ensure_history(cluster: ClusterBurnState, end: datetime) -> ClusterBurnState:
    """Return the state with prefix sums; a cluster without errors, as most clusters, needs none."""
    if cluster.history:
        return cluster
    has_errors = any(
        burn_minute.bad or burn_minute.attempted != burn_minute.succeeded for burn_minute in cluster.minutes
    )
    if not cluster.burning and not has_errors:
        return cluster
    earlier = _assume_good_minutes(cluster, end - LONGEST_BURN_WINDOW)
    return replace(
        cluster, history=BurnHistory([*earlier, *_without_excluded_errors(cluster, cluster.minutes)])
    )


def _assume_good_minutes(cluster: ClusterBurnState, start: datetime) -> Iterator[BurnMinute]:
    """Yield good minutes from ``start`` to the first stored one.

    Otherwise the first bad minute of a new cluster would make up its longest window.
    """
    first = cluster.minutes[0]
    for minute in _minutes_between(start, first.minute):
        yield BurnMinute(minute, False, 1, 1, first.expected, first.measured)


def _is_firing(alerts: Sequence[BurnAlert], was_firing: bool) -> bool:
    states = {alert.state for alert in alerts}
    if BurnAlertState.FIRING in states:
        return True
    return was_firing and BurnAlertState.FROZEN in states


def _burn_evidence(alerts: Iterable[BurnAlert]) -> dict[str, object]:
    """Return the burn rates over the long and the short window, by pair of windows."""
    return {
        "windows": {
            alert.window.name: {
                "burn": [_rounded_burn(alert.long), _rounded_burn(alert.short)],
                "factor": alert.window.factor,
            }
            for alert in alerts
        }
    }


def _rounded_burn(window: WindowBurn) -> float | None:
    return None if window.burn is None else round(float(window.burn), 2)
