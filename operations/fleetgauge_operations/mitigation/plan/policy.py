"""The policy of `mitigate run`: what is to be done about a cluster's brokers, at most one step at a time.

Approach: while a broker has an alert, the actions of the escalation ladder that the alert warrants are
applied in order, each guarded by all fail-safes. If the mode of an action is ``advise``, or a fail-safe
refuses it, an operator is notified once. Actions of the controller are undone once the broker has been
healthy for a while; actions of operators are left for operators to undo.
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from fleetgauge_core.detection import HealthState
from fleetgauge_core.tables import MITIGATION_KINDS, ActionKind, ActionOutcome
from fleetgauge_operations.actions.plan.case import ActionCase, ActionRequest
from fleetgauge_operations.actions.plan.refusal import Refusal, RefusalReason
from fleetgauge_operations.actions.plan.refusals import find_refusals, find_undo_refusals
from fleetgauge_operations.actions.plan.rules import ActionRules
from fleetgauge_operations.actions.plan.snapshot import ActiveAlert, ClusterSnapshot
from fleetgauge_operations.mitigation.plan.limits import DEFAULT_LIMITS, MitigationLimits
from fleetgauge_operations.mitigation.plan.rules import build_rules

_RELEASED_AGAIN_AFTER = timedelta(minutes=1)
#: The author of the controller's cases.
AUTHOR = "fleetgauge mitigate run"
#: Refusals that end by themselves, of which no operator is notified.
_TEMPORARY = frozenset(
    {RefusalReason.TOO_YOUNG, RefusalReason.TOO_SOON, RefusalReason.NO_WATCH, RefusalReason.PLANNED}
)


@dataclass(frozen=True, slots=True)
class ApplyAction:
    """Apply an action."""

    request: ActionRequest
    reason: str


@dataclass(frozen=True, slots=True)
class NotifyOperator:
    """Notify an operator of an action that is advised (ADVISED) or refused (REFUSED)."""

    request: ActionRequest
    reason: str
    outcome: ActionOutcome
    refusals: tuple[Refusal, ...]


@dataclass(frozen=True, slots=True)
class UndoAction:
    """Undo the action of a case."""

    case: ActionCase


@dataclass(frozen=True, slots=True)
class ReleaseAction:
    """Undo an action at once: clients suffer from it more than they gain.

    ``notification``: of which an operator is to be notified first; None if that was done before.
    """

    case: ActionCase
    harm: str
    notification: NotifyOperator | None


@dataclass(frozen=True, slots=True)
class ResolveCase:
    """Notify the operator that a case needs no attention any more, because its broker is healthy."""

    case: ActionCase


@dataclass(frozen=True, slots=True)
class FailCase:
    """Mark a case as failed that was interrupted: its process is not the leader any more."""

    case: ActionCase


PolicyStep = ApplyAction | NotifyOperator | UndoAction | ReleaseAction | ResolveCase | FailCase


@dataclass(frozen=True, slots=True)
class MitigationPolicy:
    """The policy for one cluster at one moment."""

    cluster_id: str
    snapshot: ClusterSnapshot
    now: datetime
    limits: MitigationLimits = DEFAULT_LIMITS

    @property
    def _rules(self) -> Mapping[ActionKind, ActionRules]:
        return build_rules(self.limits)

    def decide(self) -> PolicyStep | None:
        """Return the next step; None if nothing is to be done now."""
        release = self._end_harm()
        if release:
            return release
        for case in self.snapshot.cases:
            if case.outcome is ActionOutcome.BEGUN or _is_partly_undone(case):
                return FailCase(case)
        for alert in self.snapshot.alerts:
            step = self._respond(alert)
            if step:
                return step
        return self._clean_up()

    def _end_harm(self) -> ReleaseAction | NotifyOperator | None:
        """Return how to end an action that stands and does harm, whoever applied it."""
        for case in reversed(self.snapshot.cases):
            find_harm = self._rules[case.kind].find_harm if case.kind in self._rules else None
            if find_harm is None or case.outcome is ActionOutcome.BEGUN or not case.is_open:
                continue
            if case.undone_since and self.now - case.undone_since < _RELEASED_AGAIN_AFTER:
                # A release that failed is repeated, but not at once.
                continue
            if harm := find_harm(case, self.snapshot.metadata):
                notification = self._report_harm(case, harm)
                if self.snapshot.mode(case.kind) == "act" and self._answers(case.broker_id):
                    return ReleaseAction(case, harm, notification)
                if notification:
                    return notification
        return None

    def _report_harm(self, case: ActionCase, harm: str) -> NotifyOperator | None:
        """Return the notification of harm, unless an operator was notified and it is still open."""
        explanation = f"{harm}; undo case {case.case_id} with a --reason"
        refusals = (Refusal(RefusalReason.HARMFUL, explanation),)
        if any(
            earlier.ended is None
            and earlier.broker_id == case.broker_id
            and _is_same_notification(earlier, case.kind, refusals)
            for earlier in self.snapshot.cases
        ):
            return None
        request = ActionRequest(case.kind, self.cluster_id, case.broker_id)
        return NotifyOperator(request, "HARMFUL", ActionOutcome.ADVISED, refusals)

    def _answers(self, broker_id: int) -> bool:
        broker = self.snapshot.metadata.brokers.get(broker_id)
        return broker is not None and not broker.fenced

    def _respond(self, alert: ActiveAlert) -> PolicyStep | None:
        if alert.broker_id is None:
            return None
        since = min(active.since for active in self.snapshot.alerts if active.broker_id == alert.broker_id)
        cases = [case for case in self.snapshot.cases if case.broker_id == alert.broker_id]
        present_cases = [case for case in cases if case.began >= since]
        if any(case.outcome is ActionOutcome.UNDONE for case in present_cases) or any(
            case.overruled and case.undone_since and case.undone_since >= since for case in cases
        ):
            # Undone during this alert: an operator's decision is not reversed.
            return None
        applied = [
            case for case in cases if case.is_open or (case.has_changed_cluster and case in present_cases)
        ]
        action = self._select_action(alert, applied)
        if action is None:
            return self._report_exhausted(alert, applied, present_cases)
        request = ActionRequest(action, self.cluster_id, alert.broker_id)
        refusals = find_refusals(request, self.snapshot, self.now, self._rules[action])
        if _are_all_temporary(refusals):
            return None
        may_act = self.snapshot.mode(action) == "act"
        if may_act and not refusals:
            return ApplyAction(request, alert.state)
        if any(_is_same_notification(case, action, refusals) for case in present_cases):
            return None
        outcome = ActionOutcome.REFUSED if may_act else ActionOutcome.ADVISED
        return NotifyOperator(request, alert.state, outcome, refusals)

    def _select_action(self, alert: ActiveAlert, applied: Sequence[ActionCase]) -> ActionKind | None:
        """Return the first warranted action that was not applied yet; restarts may be repeated."""
        if _is_unmeasured(alert, applied):
            return None
        counts = Counter(case.kind for case in applied)
        for action in MITIGATION_KINDS:
            is_warranted = alert.state in self.limits.warrants[action]
            max_applied = self.limits.max_restarts if action is ActionKind.RESTART else 1
            if is_warranted and self.snapshot.mode(action) != "off" and counts[action] < max_applied:
                return action
        return None

    def _report_exhausted(
        self,
        alert: ActiveAlert,
        applied: Sequence[ActionCase],
        present_cases: Sequence[ActionCase],
    ) -> NotifyOperator | None:
        """Notify an operator of a broker that is still unhealthy after all warranted actions."""
        if not applied or alert.broker_id is None or self.now - applied[-1].began < self.limits.min_interval:
            return None
        latest = applied[-1]
        if _is_unmeasured(alert, applied):
            explanation = (
                f"broker {alert.broker_id} leads no partition since it was demoted, so whether it is still "
                f"{alert.state} is not measured: repair it, and undo case {latest.case_id} with a --reason"
            )
        else:
            explanation = f"broker {alert.broker_id} is still {alert.state} after all warranted actions"
        refusals = (Refusal(RefusalReason.EXHAUSTED, explanation),)
        if any(_is_same_notification(case, latest.kind, refusals) for case in present_cases):
            return None
        request = ActionRequest(latest.kind, self.cluster_id, alert.broker_id)
        return NotifyOperator(request, alert.state, ActionOutcome.REFUSED, refusals)

    def _clean_up(self) -> UndoAction | ResolveCase | None:
        """Return how to close a case of the controller whose broker is healthy."""
        alerting_broker_ids = {alert.broker_id for alert in self.snapshot.alerts}
        # Actions are undone in reverse order.
        for case in reversed(self.snapshot.cases):
            if case.author != AUTHOR or case.broker_id in alerting_broker_ids or self._still_harms(case):
                continue
            if not case.has_changed_cluster and case.ended is None:
                return ResolveCase(case)
            if self._is_undo_due(case):
                return UndoAction(case)
        return None

    def _still_harms(self, case: ActionCase) -> bool:
        """Return whether a case reports harm of an action on its broker that goes on."""
        return RefusalReason.HARMFUL in case.refused_by and any(
            find_harm(action, self.snapshot.metadata)
            for action in self.snapshot.cases
            if action.is_open
            and action.broker_id == case.broker_id
            and (find_harm := self._rules[action.kind].find_harm)
        )

    def _is_undo_due(self, case: ActionCase) -> bool:
        """Return whether to undo a case now.

        No operator is notified of refusals, because they end by themselves or have alerts of their own.
        """
        healthy_since = self.snapshot.healthy_since.get(case.broker_id)
        return (
            case.outcome is ActionOutcome.DONE
            and case.is_open
            and self.snapshot.is_watched
            and not self._is_disturbed()
            and self.snapshot.mode(case.kind) == "act"
            and healthy_since is not None
            and self.now - max(healthy_since, case.began) >= self.limits.undo_after
            and not find_undo_refusals(case, self.snapshot, None, self._rules[case.kind])
        )

    def _is_disturbed(self) -> bool:
        """Return whether the cluster is in a state in which no leadership is returned to a broker.

        A burning error budget is not such a state: it may burn for days because the broker's capacity is
        missing.
        """
        snapshot = self.snapshot
        unmeasured = (HealthState.NO_DATA, HealthState.CLUSTER_DOWN)
        return (
            any(alert.broker_id is not None or alert.state in unmeasured for alert in snapshot.alerts)
            or any(broker.fenced for broker in snapshot.metadata.brokers.values())
            or snapshot.is_rolling
            or bool(snapshot.planned_broker_ids)
        )


def _is_partly_undone(case: ActionCase) -> bool:
    """Return whether an operator's undo was interrupted; the controller repeats its own ones."""
    return case.outcome is ActionOutcome.DONE and case.undone_since is not None and case.author != AUTHOR


def _is_unmeasured(alert: ActiveAlert, applied: Sequence[ActionCase]) -> bool:
    """Return whether the alert cannot end: a demoted broker serves no probes that could prove it healthy."""
    is_demoted = any(
        case.kind is ActionKind.DEMOTE and case.outcome is ActionOutcome.DONE for case in applied
    )
    return is_demoted and alert.state is HealthState.DEGRADED


def _are_all_temporary(refusals: Sequence[Refusal]) -> bool:
    """Return whether the action is refused only for the time being."""
    return bool(refusals) and not _select_permanent(refusal.reason for refusal in refusals)


def _is_same_notification(case: ActionCase, kind: ActionKind, refusals: Sequence[Refusal]) -> bool:
    """Return whether the case has notified an operator of the same action with the same refusals."""
    return (
        case.kind is kind
        and not case.has_changed_cluster
        and _select_permanent(case.refused_by) == _select_permanent(refusal.reason for refusal in refusals)
    )


def _select_permanent(reasons: Iterable[str]) -> frozenset[str]:
    return frozenset(reasons) - _TEMPORARY
