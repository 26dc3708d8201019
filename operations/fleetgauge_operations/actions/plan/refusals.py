"""Fail-safes: the checks that forbid an action. All are evaluated, so that an operator sees every refusal."""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta

from fleetgauge_core.detection import HealthState
from fleetgauge_core.metadata import ClusterMetadata
from fleetgauge_core.tables import ActionOutcome
from fleetgauge_operations.actions.plan.case import ActionCase, ActionRequest
from fleetgauge_operations.actions.plan.refusal import Refusal, RefusalReason, format_partitions
from fleetgauge_operations.actions.plan.rules import ActionRules
from fleetgauge_operations.actions.plan.snapshot import ClusterSnapshot

_DAY = timedelta(days=1)
_REPORT_ORDER = {reason: position for position, reason in enumerate(RefusalReason)}


@dataclass(frozen=True, slots=True)
class _Check:
    """The inputs of every fail-safe."""

    request: ActionRequest
    snapshot: ClusterSnapshot
    now: datetime
    rules: ActionRules

    @property
    def broker_id(self) -> int:
        return self.request.broker_id

    @property
    def metadata(self) -> ClusterMetadata:
        return self.snapshot.metadata

    @property
    def is_fenced(self) -> bool:
        """Whether the broker is fenced, so that it leads nothing and is in no ISR."""
        broker = self.metadata.brokers.get(self.broker_id)
        return broker is not None and broker.fenced

    @property
    def is_gone(self) -> bool:
        """Whether the broker is fenced or has an alert that it is down."""
        return self.is_fenced or any(
            alert.broker_id == self.broker_id and alert.state is HealthState.BROKER_DOWN
            for alert in self.snapshot.alerts
        )


def find_refusals(
    request: ActionRequest, snapshot: ClusterSnapshot, now: datetime, rules: ActionRules
) -> tuple[Refusal, ...]:
    """Return all refusals of an action; if there is none, the action may be applied."""
    check = _Check(request, snapshot, now, rules)
    general = (
        Refusal(reason, explanation)
        for reason, find_explanations in _FAIL_SAFES
        for explanation in find_explanations(check)
    )
    own = (refusal for find in rules.fail_safes for refusal in find(request, snapshot))
    return _sort([*general, *own])


def find_undo_refusals(
    case: ActionCase, snapshot: ClusterSnapshot, reason: str | None, rules: ActionRules
) -> tuple[Refusal, ...]:
    """Return all refusals of the undo of an action; ``reason`` is an operator's own reason for the undo."""
    own = (refusal for find in rules.undo_fail_safes for refusal in find(case, snapshot, reason))
    return _sort([*_check_undo(case, snapshot, reason), *own])


def _sort(refusals: Iterable[Refusal]) -> tuple[Refusal, ...]:
    return tuple(sorted(refusals, key=lambda refusal: _REPORT_ORDER[refusal.reason]))


def _check_undo(case: ActionCase, snapshot: ClusterSnapshot, reason: str | None) -> Iterator[Refusal]:
    broker_id, metadata = case.broker_id, snapshot.metadata
    broker = metadata.brokers.get(broker_id)
    if broker is None and reason is None:
        yield Refusal(
            RefusalReason.NOT_REGISTERED,
            f"broker {broker_id} is not registered any more; give a --reason to close the case",
        )
    elif broker and broker.fenced:
        yield Refusal(RefusalReason.FENCED, f"broker {broker_id} is fenced")
    if metadata.reassigning:
        yield Refusal(
            RefusalReason.MOVING, f"a reassignment is in progress: {format_partitions(metadata.reassigning)}"
        )
    for alert in snapshot.alerts:
        if alert.broker_id == broker_id and reason is None:
            yield Refusal(
                RefusalReason.STILL_SICK,
                f"broker {broker_id} is {alert.state} since {alert.since:%FT%TZ}; give a --reason to undo "
                "the action anyway",
            )


def _check_not_registered(check: _Check) -> Iterator[str]:
    if check.broker_id not in check.metadata.brokers:
        registered = ", ".join(map(str, sorted(check.metadata.brokers)))
        yield f"{check.request.cluster_id} has no broker {check.broker_id}; registered brokers: {registered}"


def _check_fenced(check: _Check) -> Iterator[str]:
    if check.is_fenced and not check.rules.allows_fenced_broker:
        yield f"broker {check.broker_id} is fenced: it leads no partition; restart it instead"


def _check_no_finding(check: _Check) -> Iterator[str]:
    warrants = check.rules.limits.warrants
    if check.request.reason is None and not any(
        alert.broker_id == check.broker_id and alert.state in warrants for alert in check.snapshot.alerts
    ):
        states = " or ".join(warrants)
        yield (
            f"broker {check.broker_id} has no alert {states}, which would warrant the action; give a "
            "--reason to apply it anyway"
        )


def _check_too_young(check: _Check) -> Iterator[str]:
    if check.request.reason is not None:
        return
    warrants = check.rules.limits.warrants
    ages = [
        (check.now - (alert.state_since or alert.since), warrants[alert.state], alert.state)
        for alert in check.snapshot.alerts
        if alert.broker_id == check.broker_id and alert.state in warrants
    ]
    if ages and all(age < min_age for age, min_age, _ in ages):
        age, min_age, state = min(ages, key=lambda entry: entry[1] - entry[0])
        yield f"{state} for {_format_seconds(age)}; the action is warranted after {_format_seconds(min_age)}"


def _check_not_measured(check: _Check) -> Iterator[str]:
    for alert in check.snapshot.alerts:
        if alert.state in (HealthState.NO_DATA, HealthState.CLUSTER_DOWN):
            yield f"{alert.state} since {alert.since:%FT%TZ}: the effect of the action could not be measured"


def _check_no_watch(check: _Check) -> Iterator[str]:
    if not check.snapshot.is_watched and check.request.reason is None:
        yield "no watch is running, so the latest findings may be outdated; start one, or give a --reason"


def _check_second_sick(check: _Check) -> Iterator[str]:
    for alert in check.snapshot.alerts:
        if alert.broker_id not in (None, check.broker_id):
            yield (
                f"broker {alert.broker_id} is {alert.state} since {alert.since:%FT%TZ}: two unhealthy "
                "brokers require an operator"
            )


def _check_other_fenced(check: _Check) -> Iterator[str]:
    for broker_id, broker in sorted(check.metadata.brokers.items()):
        if broker.fenced and broker_id != check.broker_id:
            yield f"broker {broker_id} is fenced, and the remaining brokers already carry its load"


def _check_only_replica(check: _Check) -> Iterator[str]:
    if check.is_fenced or check.rules.keeps_replicas_in_sync:
        return
    leaderless = [
        partition
        for partition, replicated in check.metadata.replicated_on(check.broker_id).items()
        if not replicated.in_sync - {check.broker_id}
    ]
    if leaderless:
        yield f"no other replica is in sync and could lead {format_partitions(leaderless)}"


def _check_min_in_sync(check: _Check) -> Iterator[str]:
    if check.is_fenced or check.rules.keeps_replicas_in_sync:
        return
    metadata = check.metadata
    short = [
        partition
        for partition, replicated in metadata.replicated_on(check.broker_id).items()
        if len(replicated.in_sync - {check.broker_id}) < metadata.min_in_sync.get(partition.topic, 1)
    ]
    if short:
        yield f"without it, the ISR would be smaller than min.insync.replicas in {format_partitions(short)}"


def _check_moving(check: _Check) -> Iterator[str]:
    moving = check.metadata.reassigning
    if check.rules.allows_fenced_broker and check.is_gone:
        # They wait for this very broker, and only its return ends them.
        moving -= check.metadata.replicated_on(check.broker_id).keys()
    if moving:
        yield f"a reassignment is in progress: {format_partitions(moving)}"


def _check_rolling(check: _Check) -> Iterator[str]:
    if check.snapshot.is_rolling:
        yield "a rolling restart of the cluster is in progress, or a broker was restarted within ten minutes"


def _check_planned(check: _Check) -> Iterator[str]:
    planned = check.snapshot.planned_broker_ids
    if not planned.isdisjoint({None, check.broker_id}) and check.request.reason is None:
        yield f"broker {check.broker_id} is in planned maintenance, so an operator may be working on it"


def _check_already(check: _Check) -> Iterator[str]:
    for case in check.snapshot.cases:
        if case.is_open and (case.broker_id, case.kind) == (check.broker_id, check.request.kind):
            yield f"case {case.case_id}: {case.kind} since {case.began:%FT%TZ} ({case.outcome})"


def _check_other_cases(check: _Check, *, same_zone: bool) -> Iterator[str]:
    zone = check.snapshot.zone(check.broker_id)
    for case in check.snapshot.cases:
        if case.is_open and case.broker_id != check.broker_id and (case.zone == zone) == same_zone:
            where = f" in zone {case.zone}" if case.zone else ""
            yield f"case {case.case_id}: {case.kind} of broker {case.broker_id}{where} is not undone yet"


def _check_other_broker(check: _Check) -> Iterator[str]:
    return _check_other_cases(check, same_zone=True)


def _check_other_zone(check: _Check) -> Iterator[str]:
    return _check_other_cases(check, same_zone=False)


def _check_circuit_open(check: _Check) -> Iterator[str]:
    for case in check.snapshot.cases:
        if case.outcome is ActionOutcome.FAILED:
            yield f"case {case.case_id} failed; repair its broker and undo it before any other action"
        if case.outcome is ActionOutcome.BEGUN:
            yield f"case {case.case_id} is in progress or was interrupted; wait for its end, or undo it"


def _check_too_soon(check: _Check) -> Iterator[str]:
    limits = check.rules.limits
    latest = max(
        (
            case.began
            for case in check.snapshot.cases
            if case.has_changed_cluster and case.kind in limits.paced_with
        ),
        default=None,
    )
    if latest and check.now - latest < limits.min_interval:
        age, min_interval = _format_seconds(check.now - latest), _format_seconds(limits.min_interval)
        yield f"the latest action in this cluster was {age} ago; the minimum interval is {min_interval}"


def _check_too_many(check: _Check) -> Iterator[str]:
    for limit in check.rules.limits.rate_limits:
        recent = [
            case
            for case in check.snapshot.cases
            if case.has_changed_cluster and case.kind in limit.kinds and check.now - case.began < limit.window
        ]
        if len(recent) >= limit.max_actions:
            window = "a day" if limit.window == _DAY else _format_seconds(limit.window)
            count = f"{len(recent)} {limit.name} in this cluster within {window}"
            yield f"{count}; another one requires an operator"


def _check_off(check: _Check) -> Iterator[str]:
    action = check.request.kind
    if check.snapshot.mode(action) == "off":
        yield f"{action} is off in `mitigation` of {check.request.cluster_id}"


_FAIL_SAFES: tuple[tuple[RefusalReason, Callable[[_Check], Iterator[str]]], ...] = (
    (RefusalReason.NOT_REGISTERED, _check_not_registered),
    (RefusalReason.FENCED, _check_fenced),
    (RefusalReason.NO_FINDING, _check_no_finding),
    (RefusalReason.TOO_YOUNG, _check_too_young),
    (RefusalReason.NOT_MEASURED, _check_not_measured),
    (RefusalReason.NO_WATCH, _check_no_watch),
    (RefusalReason.SECOND_SICK, _check_second_sick),
    (RefusalReason.OTHER_FENCED, _check_other_fenced),
    (RefusalReason.ONLY_REPLICA, _check_only_replica),
    (RefusalReason.MIN_IN_SYNC, _check_min_in_sync),
    (RefusalReason.MOVING, _check_moving),
    (RefusalReason.ROLLING, _check_rolling),
    (RefusalReason.PLANNED, _check_planned),
    (RefusalReason.ALREADY, _check_already),
    (RefusalReason.OTHER_BROKER, _check_other_broker),
    (RefusalReason.OTHER_ZONE, _check_other_zone),
    (RefusalReason.CIRCUIT_OPEN, _check_circuit_open),
    (RefusalReason.TOO_SOON, _check_too_soon),
    (RefusalReason.TOO_MANY, _check_too_many),
    (RefusalReason.OFF, _check_off),
)


def _format_seconds(duration: timedelta) -> str:
    return f"{duration.total_seconds():.0f} s"
