"""Execution of actions and of their undo, whatever their kind.

Before each step the cluster is read and the fail-safes are checked again; after the last one, the result is
verified. The case is in the audit log before anything is changed.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from typing import Protocol

from fleetgauge_core.errors import OperationalError
from fleetgauge_core.metadata import ClusterMetadata
from fleetgauge_core.tables import ActionKind, ActionOutcome
from fleetgauge_operations.actions.plan.case import ActionCase, ActionRequest
from fleetgauge_operations.actions.plan.refusal import Refusal
from fleetgauge_operations.actions.plan.refusals import find_refusals, find_undo_refusals
from fleetgauge_operations.actions.plan.rules import ActionRules
from fleetgauge_operations.actions.plan.snapshot import ClusterSnapshot

_VERIFY_INTERVAL_S = 0.5


class ActionCaseWriter(Protocol):
    """Storage for cases, which is written before and after each change."""

    def add_case(self, case: ActionCase) -> None:
        """Store a new case."""

    def update_case(self, case: ActionCase) -> None:
        """Replace the stored case that has the same ID."""


class ActionFailedError(Exception):
    """A step of an action failed, or must not be taken; the message is one line."""


class UndoRefusedError(Exception):
    """Fail-safes refused the undo, and nothing was changed."""

    def __init__(self, refusals: Sequence[Refusal]) -> None:
        super().__init__(_join(refusals))
        self.refusals = tuple(refusals)


class ActionSteps(Protocol):
    """How one kind of action changes a cluster.

    Each method may raise any error, which fails the case. It calls ``run.require_leadership`` before each
    change, and ``run.explain`` for what it leaves unchanged.
    """

    def apply(self, run: "ActionRun") -> None:
        """Change the cluster as the case plans, and verify the result."""

    def undo(self, run: "ActionRun") -> None:
        """Restore what the action changed, except for what was changed by others since."""

    def clean_up(self, run: "ActionRun") -> None:
        """Undo the action on a broker that is not registered any more."""


@dataclass(slots=True)
class ActionRun:
    """One application or undo of an action, as its steps see it."""

    request: ActionRequest
    case: ActionCase
    snapshot: ClusterSnapshot
    """The snapshot on which the run was decided."""
    executor: "ActionExecutor"
    explanations: list[str] = field(default_factory=list)

    @property
    def broker_id(self) -> int:
        """The broker that is changed."""
        return self.case.broker_id

    def explain(self, explanation: str) -> None:
        """Add an explanation for the operator to the case."""
        self.explanations.append(explanation)

    def require_leadership(self) -> None:
        """Raise ActionFailedError if another process may be acting on this cluster."""
        if not self.executor.is_leader():
            raise ActionFailedError(
                "this process has lost the leadership of the cluster's actions; another one may be acting"
            )

    def check_again(self) -> ClusterMetadata:
        """Return new metadata between two steps. Raises: ActionFailedError for any new refusal."""
        rules = self.executor.rules[self.case.kind]
        snapshot = self.executor.observe(self.case.case_id)
        refusals = [
            refusal
            for refusal in find_refusals(self.request, snapshot, self.executor.clock(), rules)
            if refusal.reason not in rules.self_caused
        ]
        if refusals:
            raise ActionFailedError(_join(refusals))
        return snapshot.metadata

    def check_undo_again(self, remaining: Mapping[str, object]) -> ClusterMetadata:
        """Return new metadata before what remains of the plan is undone.

        Raises: ActionFailedError for any new refusal.
        """
        case = replace(self.case, plan=remaining)
        snapshot = self.executor.observe(case.case_id)
        refusals = find_undo_refusals(case, snapshot, self.request.reason, self.executor.rules[case.kind])
        if refusals:
            raise ActionFailedError(_join(refusals))
        return snapshot.metadata

    def wait(self, seconds: float) -> None:
        """Wait between two steps."""
        self.executor.wait(seconds)

    def verify(
        self,
        find_problem: Callable[[ClusterMetadata], str],
        timeout: timedelta,
        holds: timedelta = timedelta(0),
    ) -> ClusterMetadata:
        """Wait until ``find_problem`` has returned an empty string for a duration; return the last metadata.

        A step of the wall clock makes it neither shorter nor longer.

        Raises: ActionFailedError if it returns a problem after the timeout. A failed read of the cluster is
        a problem too, as a restart may interrupt it.
        """
        elapsed_s = self.executor.elapsed_s
        deadline_s, verified_since_s = elapsed_s() + timeout.total_seconds(), None
        while True:
            try:
                metadata = self.executor.read_metadata()
                problem = find_problem(metadata)
            except OperationalError as error:
                problem = str(error)
            now_s = elapsed_s()
            if problem:
                verified_since_s = None
                if now_s >= deadline_s:
                    raise ActionFailedError(f"after {timeout.total_seconds():.0f} s: {problem}")
            else:
                verified_since_s = now_s if verified_since_s is None else verified_since_s
                if now_s - verified_since_s >= holds.total_seconds():
                    return metadata
            self.wait(_VERIFY_INTERVAL_S)


@dataclass(frozen=True, slots=True)
class ActionExecutor:
    """Applies and undoes actions on the brokers of one cluster.

    ``observe`` returns a snapshot without the case of that ID; ``read_metadata`` returns the metadata alone,
    which verification reads twice a second; ``is_leader`` is whether this process still
    leads the cluster's actions, without which nothing is changed. ``elapsed_s`` reads a monotonic clock.
    """

    observe: Callable[[str], ClusterSnapshot]
    read_metadata: Callable[[], ClusterMetadata]
    rules: Mapping[ActionKind, ActionRules]
    steps: Mapping[ActionKind, ActionSteps]
    case_writer: ActionCaseWriter
    is_leader: Callable[[], bool]
    clock: Callable[[], datetime]
    elapsed_s: Callable[[], float]
    wait: Callable[[float], object]

    def apply(
        self,
        request: ActionRequest,
        case_id: str,
        author: str,
        reason: str,
        *,
        must_notify: bool = False,
    ) -> ActionCase:
        """Apply an action unless a fail-safe refuses it, and return its case.

        What an undo needs is stored before anything changes. ``must_notify`` is whether receivers are to be
        notified of the case by a CaseNotifier; a refusal then remains open until its broker is healthy.

        Raises: KafkaUnavailableError and TableStoreError if the snapshot cannot be read or the case cannot
        be stored; nothing was changed then.
        """
        snapshot, rules = self.observe(case_id), self.rules[request.kind]
        case = ActionCase(
            case_id=case_id,
            kind=request.kind,
            cluster_id=request.cluster_id,
            broker_id=request.broker_id,
            zone=snapshot.zone(request.broker_id),
            author=author,
            reason=reason,
            began=self.clock(),
            outcome=ActionOutcome.BEGUN,
            accepted_by=() if must_notify else None,
        )
        refusals = find_refusals(request, snapshot, case.began, rules)
        if refusals:
            case = replace(
                case,
                outcome=ActionOutcome.REFUSED,
                ended=None if must_notify else case.began,
                refused_by=tuple(refusal.reason for refusal in refusals),
                explanations=tuple(refusal.explanation for refusal in refusals),
            )
            self.case_writer.add_case(case)
            return case
        case = replace(case, plan=rules.plan(snapshot.metadata, request.broker_id))
        self.case_writer.add_case(case)
        run = ActionRun(request, case, snapshot, self)
        try:
            self.steps[case.kind].apply(run)
        except Exception as error:
            # The cluster may have been changed, whatever the error is.
            explanations = (_format_error(error), *run.explanations)
            return self._close_case(replace(case, outcome=ActionOutcome.FAILED, explanations=explanations))
        ended, explanations = None if rules.has_lasting_effect else self.clock(), tuple(run.explanations)
        return self._close_case(
            replace(case, outcome=ActionOutcome.DONE, ended=ended, explanations=explanations)
        )

    def undo(self, case: ActionCase, reason: str | None) -> ActionCase:
        """Undo an action, and return its case: undone, or failed if the undo has to be repeated.

        ``reason`` is an operator's own. The start of the undo is stored before anything is changed.

        Raises: UndoRefusedError; KafkaUnavailableError and TableStoreError if the snapshot cannot be read or
        the case cannot be stored. Nothing was changed then.
        """
        snapshot = self.observe(case.case_id)
        refusals = find_undo_refusals(case, snapshot, reason, self.rules[case.kind])
        if refusals:
            raise UndoRefusedError(refusals)
        return self._undo(case, snapshot, reason, f"undone: {reason}" if reason else "")

    def release(self, case: ActionCase, harm: str) -> ActionCase:
        """Undo an action that does harm, whatever speaks against an undo, and return its case.

        Raises: KafkaUnavailableError and TableStoreError if the snapshot cannot be read or the case cannot
        be stored. Nothing was changed then.
        """
        return self._undo(case, self.observe(case.case_id), None, f"released, because {harm}")

    def _undo(
        self, case: ActionCase, snapshot: ClusterSnapshot, reason: str | None, explanation: str
    ) -> ActionCase:
        # An operator who closes a failed case does not overrule the decision to act.
        overruled = reason is not None and (case.outcome is ActionOutcome.DONE or case.overruled)
        # Receivers are notified of the end of the undo, not of its start.
        case = replace(case, undone_since=self.clock(), overruled=overruled)
        self.case_writer.update_case(case)
        request = ActionRequest(case.kind, case.cluster_id, case.broker_id, reason)
        run = ActionRun(request, case, snapshot, self)
        if explanation:
            run.explain(explanation)
        try:
            if case.broker_id in snapshot.metadata.brokers:
                self.steps[case.kind].undo(run)
            else:
                self.steps[case.kind].clean_up(run)
                run.explain(f"broker {case.broker_id} is not registered any more: nothing is returned to it")
        except Exception as error:
            explanations = (_format_error(error), *run.explanations)
            return self._close_case(case.with_new_outcome(ActionOutcome.FAILED, explanations=explanations))
        explanations = tuple(run.explanations)
        return self._close_case(
            case.with_new_outcome(ActionOutcome.UNDONE, ended=self.clock(), explanations=explanations)
        )

    def _close_case(self, case: ActionCase) -> ActionCase:
        """Store the result; if that fails, add the error to the case that is reported."""
        try:
            self.case_writer.update_case(case)
        except Exception as error:
            return replace(
                case, explanations=(*case.explanations, f"not stored in ops/actions: {_format_error(error)}")
            )
        return case


def _join(refusals: Sequence[Refusal]) -> str:
    return "; ".join(refusal.explanation for refusal in refusals)


def _format_error(error: Exception) -> str:
    is_one_line = isinstance(error, OperationalError | ActionFailedError)
    return str(error) if is_one_line else f"{type(error).__name__}: {error}"
