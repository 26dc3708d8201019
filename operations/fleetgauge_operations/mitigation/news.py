"""A person is told what came of a case, above all of what was refused or failed.

Motivation: whoever acts may be a script at night, and what it was not allowed to do is left for somebody.

Approach: the fleet's notifiers are told as of findings. One broker and action is one incident: a refusal or a
failure opens it, what is done or undone later closes it.
"""

from dataclasses import dataclass
from datetime import datetime
from typing import Self

from fleetgauge_operations.mitigation.case import Case, Outcome
from fleetgauge_operations.notify.notification import Notification, Severity
from fleetgauge_operations.notify.receivers.slack import escape_markup


@dataclass(frozen=True, slots=True)
class News:
    """What came of doing or undoing something, at ``at``; ``words``: why it was refused, what failed.

    ``over``: nobody is wanted any more, since the broker got well without.
    """

    case: Case
    outcome: Outcome
    words: tuple[str, ...]
    at: datetime
    undoing: bool = False
    over: bool = False

    @classmethod
    def of(cls, case: Case, at: datetime, *, over: bool = False) -> Self:
        """As the case ended."""
        return cls(case, case.outcome, case.words, at, case.undone_since is not None, over)

    @property
    def opens(self) -> bool:
        """Whether somebody is wanted."""
        return not self.over and self.outcome in (Outcome.ADVISED, Outcome.REFUSED, Outcome.FAILED)

    @property
    def summary(self) -> str:
        """In one line."""
        case, what = self.case, "undoing " if self.undoing and self.opens else ""
        why = f": {self.words[0]}" if self.words else ""
        if self.over:
            why = ": over, the broker is well"
        return f"{case.cluster_id}: {what}{case.action} of broker {case.broker_id} {self.outcome}{why}"

    @property
    def notification(self) -> Notification:
        """What people are told; it pages if something was changed and is not as it should be."""
        case = self.case
        severity: Severity = "page" if self.outcome is Outcome.FAILED else "ticket"
        attempt = f"/{case.undone_since:%Y%m%dT%H%M%S}" if self.undoing and case.undone_since else ""
        notification_id = f"{case.case_id}/{self.outcome}{attempt}{'/over' if self.over else ''}"
        kind = f"MITIGATION_{self.outcome.upper()}"
        common = {"words": list(self.words), "author": case.author, "reason": case.reason}
        byline = f"{self.at:%Y-%m-%d %H:%M:%S} UTC, {case.author}: {case.reason}"
        return Notification(
            notification_id=notification_id,
            incident=f"mitigate/{case.cluster_id}/{case.broker_id}/{case.action}",
            firing=self.opens,
            severity=severity,
            kind=kind,
            cluster_id=case.cluster_id,
            broker_id=case.broker_id,
            at=self.at,
            summary=self.summary,
            alert_name="MITIGATION",
            labels={"broker": str(case.broker_id), "action": case.action.value},
            annotations={"summary": self.summary, "kind": kind, "words": "\n".join(self.words)},
            document=common,
            details={"id": notification_id, **common},
            chat_lines=[escape_markup(line) for line in (byline, *self.words[1:])],
            earlier_severities=("page", "ticket"),
        )
