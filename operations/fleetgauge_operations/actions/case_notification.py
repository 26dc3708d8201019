"""Notifications of cases.

Motivation: an action may be run by a script at night, and an operator has to follow up on what was refused
or has failed.

Approach: cases are sent to the same receivers as findings. An action on a broker is one incident: a refusal
or a failure opens it, and a later completed or undone action resolves it.
"""

from dataclasses import dataclass
from datetime import datetime
from typing import Self

from fleetgauge_core.tables import OUTCOMES_FOR_OPERATORS, ActionOutcome
from fleetgauge_operations.actions.plan.case import ActionCase
from fleetgauge_operations.actions.plan.refusal import RefusalReason
from fleetgauge_operations.notify.notification import Notification, Severity
from fleetgauge_operations.notify.receivers.slack import escape_markup


@dataclass(frozen=True, slots=True)
class CaseNotification:
    """The result of an action or its undo at a time, with explanations of what was refused or has failed."""

    case: ActionCase
    outcome: ActionOutcome
    explanations: tuple[str, ...]
    at: datetime
    is_undo: bool = False
    is_resolved: bool = False
    """Whether the case needs no attention any more, because the broker recovered by itself."""

    @classmethod
    def from_case(cls, case: ActionCase, at: datetime, *, is_resolved: bool = False) -> Self:
        """Return the notification of the present outcome of a case."""
        return cls(case, case.outcome, case.explanations, at, case.undone_since is not None, is_resolved)

    @property
    def is_firing(self) -> bool:
        """Whether an operator has to act."""
        return not self.is_resolved and self.outcome in OUTCOMES_FOR_OPERATORS

    @property
    def summary(self) -> str:
        """The result in one line."""
        case = self.case
        undo = "undo of " if self.is_undo and self.is_firing else ""
        explanation = f": {self.explanations[0]}" if self.explanations else ""
        if self.is_resolved:
            explanation = ": resolved, the broker is healthy"
        return f"{case.cluster_id}: {undo}{case.kind} of broker {case.broker_id} {self.outcome}{explanation}"

    @property
    def notification(self) -> Notification:
        """The notification; failure and harm page, because the cluster was changed and is not as intended."""
        case = self.case
        is_urgent = self.outcome is ActionOutcome.FAILED or RefusalReason.HARMFUL in case.refused_by
        severity: Severity = "page" if is_urgent else "ticket"
        attempt = f"/{case.undone_since:%Y%m%dT%H%M%S}" if self.is_undo and case.undone_since else ""
        notification_id = f"{case.case_id}/{self.outcome}{attempt}{'/over' if self.is_resolved else ''}"
        kind = f"MITIGATION_{self.outcome.upper()}"
        common = {"words": list(self.explanations), "author": case.author, "reason": case.reason}
        byline = f"{self.at:%Y-%m-%d %H:%M:%S} UTC, {case.author}: {case.reason}"
        return Notification(
            notification_id=notification_id,
            incident=f"mitigate/{case.cluster_id}/{case.broker_id}/{case.kind}",
            firing=self.is_firing,
            severity=severity,
            kind=kind,
            cluster_id=case.cluster_id,
            broker_id=case.broker_id,
            at=self.at,
            summary=self.summary,
            alert_name="MITIGATION",
            labels={"broker": str(case.broker_id), "action": case.kind.value},
            annotations={"summary": self.summary, "kind": kind, "words": "\n".join(self.explanations)},
            document=common,
            details={"id": notification_id, **common},
            chat_lines=[escape_markup(line) for line in (byline, *self.explanations[1:])],
            earlier_severities=("page", "ticket"),
        )
