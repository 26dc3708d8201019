"""The control loop of one cluster: observe, decide by the policy, act; one step at a time."""

import logging
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from datetime import datetime
from functools import partial
from typing import Protocol

from fleetgauge_core.detection import Finding
from fleetgauge_core.tables import ActionKind, ActionOutcome
from fleetgauge_operations.actions.executor import ActionExecutor, UndoRefusedError
from fleetgauge_operations.actions.plan.case import ActionCase
from fleetgauge_operations.actions.plan.snapshot import ClusterSnapshot
from fleetgauge_operations.mitigation.plan.limits import DEFAULT_LIMITS, MitigationLimits
from fleetgauge_operations.mitigation.plan.policy import (
    AUTHOR,
    ApplyAction,
    FailCase,
    MitigationPolicy,
    NotifyOperator,
    PolicyStep,
    ReleaseAction,
    ResolveCase,
    UndoAction,
)

_log = logging.getLogger("fleetgauge.mitigate")


class ClusterUnderControl(Protocol):
    """A cluster, as the control loop reads and changes it: a real one, or one in memory.

    All methods raise KafkaUnavailableError and TableStoreError.
    """

    @property
    def cluster_id(self) -> str:
        """The ID of the cluster."""

    def read_snapshot(self, findings: Sequence[Finding]) -> ClusterSnapshot:
        """Return a snapshot with the alerts of these findings of the fleet."""

    def open_executor(self) -> AbstractContextManager[ActionExecutor]:
        """Hold the leadership of the cluster's actions, and return the executor.

        Raises: LeadershipTakenError if another process acts on the cluster.
        """


@dataclass(frozen=True, slots=True)
class ControlLoop:
    """Takes the steps of the policy for one cluster."""

    cluster: ClusterUnderControl
    clock: Callable[[], datetime]
    create_case_id: Callable[[], str]
    limits: MitigationLimits = DEFAULT_LIMITS

    def take_next_step(
        self, findings: Sequence[Finding], report_progress: Callable[[], None] = lambda: None
    ) -> ActionCase | None:
        """Take the next step; return its case if it is new or has changed, else None.

        ``report_progress`` is called whenever a step has to wait.

        Raises: LeadershipTakenError, and the errors of ClusterUnderControl.
        """
        if not self._decide(self.cluster.read_snapshot(findings)):
            return None
        with self.cluster.open_executor() as leader:
            executor = replace(leader, wait=partial(_wait_and_report, leader.wait, report_progress))
            # Decided again, because the previous leader may have taken the same step.
            snapshot = executor.observe("")
            step = self._decide(snapshot)
            return self._take(step, executor, snapshot) if step else None

    def _decide(self, snapshot: ClusterSnapshot) -> PolicyStep | None:
        return MitigationPolicy(self.cluster.cluster_id, snapshot, self.clock(), self.limits).decide()

    def _take(
        self, step: PolicyStep, executor: ActionExecutor, snapshot: ClusterSnapshot
    ) -> ActionCase | None:
        writer = executor.case_writer
        match step:
            case ApplyAction(request, reason):
                return executor.apply(request, self.create_case_id(), AUTHOR, reason, must_notify=True)
            case FailCase(interrupted):
                explanations = (*interrupted.explanations, "interrupted")
                case = interrupted.with_new_outcome(
                    ActionOutcome.FAILED, must_notify=True, explanations=explanations
                )
                writer.update_case(case)
            case NotifyOperator():
                case = self._create_notified_case(step, snapshot)
                writer.add_case(case)
            case ReleaseAction(applied, harm, notification):
                if notification:
                    # First, as a release may take minutes.
                    writer.add_case(self._create_notified_case(notification, snapshot))
                return executor.release(applied, harm)
            case UndoAction(applied):
                return _undo_unless_refused(applied, executor)
            case ResolveCase(notified):
                case = notified.with_new_outcome(notified.outcome, must_notify=True, ended=self.clock())
                writer.update_case(case)
        return case

    def _create_notified_case(self, step: NotifyOperator, snapshot: ClusterSnapshot) -> ActionCase:
        """Return a case that remains open until its broker is healthy."""
        request = step.request
        words = tuple(refusal.explanation for refusal in step.refusals)
        if not words and request.kind is not ActionKind.EVACUATE:
            command = (
                f"fleetgauge mitigate apply --cluster {request.cluster_id} --broker {request.broker_id} "
                f"--action {request.kind} --execute"
            )
            words = (f"no fail-safe refuses the action: {command}",)
        return ActionCase(
            case_id=self.create_case_id(),
            kind=request.kind,
            cluster_id=request.cluster_id,
            broker_id=request.broker_id,
            zone=snapshot.zone(request.broker_id),
            author=AUTHOR,
            reason=step.reason,
            began=self.clock(),
            outcome=step.outcome,
            refused_by=tuple(refusal.reason for refusal in step.refusals),
            explanations=words,
            accepted_by=(),
        )


def _undo_unless_refused(case: ActionCase, executor: ActionExecutor) -> ActionCase | None:
    """Return the case after the undo; None if fail-safes refuse the undo."""
    try:
        return executor.undo(case, None)
    except UndoRefusedError as error:
        _log.info("case %s: not undone: %s", case.case_id, error)
        return None


def _wait_and_report(
    wait: Callable[[float], object], report_progress: Callable[[], None], seconds: float
) -> None:
    report_progress()
    wait(seconds)
