"""Fail-safes: the checks that forbid an action. All are evaluated, so that an operator sees every refusal."""

from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum

from fleetgauge_core.detection import HealthState
from fleetgauge_core.metadata import ClusterMetadata, TopicPartition
from fleetgauge_operations.mitigation.case import Action, ActionRequest, CaseOutcome, MitigationCase
from fleetgauge_operations.mitigation.demotion import Restoration, plan_demotion
from fleetgauge_operations.mitigation.limits import DEFAULT_LIMITS, Limits
from fleetgauge_operations.mitigation.snapshot import ClusterSnapshot

_DAY = timedelta(days=1)
_RESTARTS = (Action.RESTART, Action.QUARANTINE_RESTART)
#: Maximum number of partitions or topics that a refusal names.
_MAX_NAMED = 3


class RefusalReason(StrEnum):
    """The fail-safes, by the name that scripts read."""

    NOT_REGISTERED = "not_registered"
    FENCED = "fenced"
    NOTHING_TO_TAKE = "nothing_to_take"
    NO_FINDING = "no_finding"
    TOO_YOUNG = "too_young"
    NOT_MEASURED = "not_measured"
    SECOND_SICK = "second_sick"
    OTHER_FENCED = "other_fenced"
    ONLY_REPLICA = "only_replica"
    MIN_IN_SYNC = "min_in_sync"
    MOVING = "moving"
    ROLLING = "rolling"
    PLANNED = "planned"
    ALREADY = "already"
    OTHER_BROKER = "other_broker"
    OTHER_ZONE = "other_zone"
    CIRCUIT_OPEN = "circuit_open"
    TOO_SOON = "too_soon"
    TOO_MANY = "too_many"
    OFF = "off"
    PROPOSED_ONLY = "proposed_only"
    NO_RESTART = "no_restart"
    THROTTLED = "throttled"
    NOT_IN_SYNC = "not_in_sync"
    STILL_SICK = "still_sick"
    NO_WATCH = "no_watch"
    EXHAUSTED = "exhausted"


@dataclass(frozen=True, slots=True)
class Refusal:
    """The fail-safe that forbids an action or its undo, and an explanation for the operator."""

    reason: RefusalReason
    explanation: str


@dataclass(frozen=True, slots=True)
class _Check:
    """The inputs of every fail-safe."""

    request: ActionRequest
    snapshot: ClusterSnapshot
    now: datetime
    limits: Limits

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


def find_refusals(
    request: ActionRequest, snapshot: ClusterSnapshot, now: datetime, limits: Limits = DEFAULT_LIMITS
) -> tuple[Refusal, ...]:
    """Return all refusals of an action; if there is none, the action may be applied."""
    check = _Check(request, snapshot, now, limits)
    return tuple(
        Refusal(reason, explanation)
        for reason, find_explanations in _FAIL_SAFES
        for explanation in find_explanations(check)
    )


def find_undo_refusals(
    case: MitigationCase, restoration: Restoration, snapshot: ClusterSnapshot, reason: str | None
) -> tuple[Refusal, ...]:
    """Return all refusals of the undo of an action; ``reason`` is an operator's own reason for the undo."""
    return tuple(_check_undo(case, restoration, snapshot, reason))


def _check_undo(
    case: MitigationCase, restoration: Restoration, snapshot: ClusterSnapshot, reason: str | None
) -> Iterator[Refusal]:
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
            RefusalReason.MOVING, f"a reassignment is in progress: {_format_partitions(metadata.reassigning)}"
        )
    to_lead = restoration.led_by(broker_id)
    # A broker that is out of sync anywhere has not recovered; an operator's own reason only requires that it
    # can lead the partitions that are returned to it.
    required = metadata.replicated_on(broker_id) if to_lead and reason is None else to_lead
    behind = [partition for partition in required if broker_id not in metadata.partitions[partition].in_sync]
    if behind and broker:
        yield Refusal(
            RefusalReason.NOT_IN_SYNC,
            f"broker {broker_id} is out of sync in {_format_partitions(behind)}; retry once it has caught up",
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
    if check.is_fenced and check.request.action is not Action.RESTART:
        yield f"broker {check.broker_id} is fenced: it leads no partition and is in no ISR"


def _check_nothing_to_take(check: _Check) -> Iterator[str]:
    broker_id, metadata = check.broker_id, check.metadata
    if check.request.action is not Action.DEMOTE:
        return
    if broker_id in metadata.brokers and not (
        metadata.led_by(broker_id) or plan_demotion(metadata, broker_id)
    ):
        yield f"broker {broker_id} leads no partition and is the last replica of all its partitions"


def _check_no_finding(check: _Check) -> Iterator[str]:
    warrants = check.limits.warrants[check.request.action]
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
    warrants = check.limits.warrants[check.request.action]
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
        yield "no watch is running, so the latest findings may be outdated"


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
    if check.is_fenced:
        return
    leaderless = [
        partition
        for partition, replicated in check.metadata.replicated_on(check.broker_id).items()
        if not replicated.in_sync - {check.broker_id}
    ]
    if leaderless:
        yield f"no other replica is in sync and could lead {_format_partitions(leaderless)}"


def _check_min_in_sync(check: _Check) -> Iterator[str]:
    if check.is_fenced:
        return
    metadata = check.metadata
    short = [
        partition
        for partition, replicated in metadata.replicated_on(check.broker_id).items()
        if len(replicated.in_sync - {check.broker_id}) < metadata.min_in_sync.get(partition.topic, 1)
    ]
    if short:
        yield f"without it, the ISR would be smaller than min.insync.replicas in {_format_partitions(short)}"


def _check_moving(check: _Check) -> Iterator[str]:
    if check.metadata.reassigning:
        yield f"a reassignment is in progress: {_format_partitions(check.metadata.reassigning)}"


def _check_rolling(check: _Check) -> Iterator[str]:
    if check.snapshot.is_rolling:
        yield "a rolling restart of the cluster is in progress"


def _check_planned(check: _Check) -> Iterator[str]:
    planned = check.snapshot.planned_broker_ids
    if not planned.isdisjoint({None, check.broker_id}) and check.request.reason is None:
        yield f"broker {check.broker_id} is in planned maintenance, so an operator may be working on it"


def _check_already(check: _Check) -> Iterator[str]:
    for case in check.snapshot.cases:
        if case.is_open and (case.broker_id, case.action) == (check.broker_id, check.request.action):
            yield f"case {case.case_id}: {case.action} since {case.began:%FT%TZ} ({case.outcome})"


def _check_other_cases(check: _Check, *, same_zone: bool) -> Iterator[str]:
    zone = check.snapshot.zone(check.broker_id)
    for case in check.snapshot.cases:
        if case.is_open and case.broker_id != check.broker_id and (case.zone == zone) == same_zone:
            where = f" in zone {case.zone}" if case.zone else ""
            yield f"case {case.case_id}: {case.action} of broker {case.broker_id}{where} is not undone yet"


def _check_other_broker(check: _Check) -> Iterator[str]:
    return _check_other_cases(check, same_zone=True)


def _check_other_zone(check: _Check) -> Iterator[str]:
    return _check_other_cases(check, same_zone=False)


def _check_circuit_open(check: _Check) -> Iterator[str]:
    for case in check.snapshot.cases:
        if case.outcome is CaseOutcome.FAILED:
            yield f"case {case.case_id} failed; repair its broker and undo it before any other action"
        if case.outcome is CaseOutcome.BEGUN:
            yield f"case {case.case_id} is in progress or was interrupted; wait for its end, or undo it"


def _check_too_soon(check: _Check) -> Iterator[str]:
    latest = max((case.began for case in check.snapshot.cases if case.has_changed_cluster), default=None)
    if latest and check.now - latest < check.limits.min_interval:
        age, min_interval = _format_seconds(check.now - latest), _format_seconds(check.limits.min_interval)
        yield f"the latest action in this cluster was {age} ago; the minimum interval is {min_interval}"


def _check_too_many(check: _Check) -> Iterator[str]:
    changes = [case for case in check.snapshot.cases if case.has_changed_cluster]
    recent = [case for case in changes if check.now - case.began < _DAY]
    if len(recent) >= check.limits.max_per_day:
        yield f"{len(recent)} actions in this cluster within a day; another one requires an operator"
    if check.request.action not in _RESTARTS:
        return
    restarts = [
        case
        for case in changes
        if case.action in _RESTARTS and check.now - case.began < check.limits.restart_window
    ]
    if len(restarts) >= check.limits.max_restarts:
        window = _format_seconds(check.limits.restart_window)
        yield f"{len(restarts)} restarts in this cluster within {window}; another one requires an operator"


def _check_off(check: _Check) -> Iterator[str]:
    action = check.request.action
    if check.snapshot.mode(action) == "off":
        yield f"{action} is off in `mitigation` of {check.request.cluster_id}"


def _check_proposed_only(check: _Check) -> Iterator[str]:
    if check.request.action is Action.EVACUATE:
        yield "replicas are moved by operators; an evacuation is proposed, but never applied"


def _check_no_restart(check: _Check) -> Iterator[str]:
    if check.request.action in _RESTARTS and not check.snapshot.has_restart_command:
        yield f"{check.request.cluster_id} has no `restart` command in the fleet file"


def _check_throttled(check: _Check) -> Iterator[str]:
    if check.request.action is Action.QUARANTINE_RESTART:
        topics = {partition.topic for partition in check.metadata.replicated_on(check.broker_id)}
        throttled = sorted(topics & check.metadata.throttled_topics)
        if throttled:
            yield f"replicas of {', '.join(throttled[:_MAX_NAMED])} are throttled already"


_FAIL_SAFES: tuple[tuple[RefusalReason, Callable[[_Check], Iterator[str]]], ...] = (
    (RefusalReason.NOT_REGISTERED, _check_not_registered),
    (RefusalReason.FENCED, _check_fenced),
    (RefusalReason.NOTHING_TO_TAKE, _check_nothing_to_take),
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
    (RefusalReason.PROPOSED_ONLY, _check_proposed_only),
    (RefusalReason.NO_RESTART, _check_no_restart),
    (RefusalReason.THROTTLED, _check_throttled),
)


def _format_partitions(partitions: Collection[TopicPartition]) -> str:
    names = [f"{topic}-{number}" for topic, number in sorted(partitions)[:_MAX_NAMED]]
    more = len(partitions) - len(names)
    return ", ".join(names) + (f" and {more} more" if more else "")


def _format_seconds(duration: timedelta) -> str:
    return f"{duration.total_seconds():.0f} s"
