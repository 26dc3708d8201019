"""Cases: one action on one broker each, with everything that is needed to undo it."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any

from fleetgauge_core.tables import OUTCOMES_WITHOUT_EFFECT, ActionKind, ActionOutcome


@dataclass(frozen=True, slots=True)
class ActionRequest:
    """A request for an action on a broker; ``reason`` is an operator's own, None if alerts are the reason."""

    kind: ActionKind
    cluster_id: str
    broker_id: int
    reason: str | None = None


@dataclass(frozen=True, slots=True)
class ActionCase:
    """One row of ops/actions."""

    case_id: str
    kind: ActionKind
    cluster_id: str
    broker_id: int
    zone: str | None
    author: str
    reason: str
    began: datetime
    outcome: ActionOutcome
    ended: datetime | None = None
    """When the case was closed: undone, completed, resolved, or refused to an operator."""
    plan: Mapping[str, Any] = field(default_factory=dict)
    """What an undo needs, as a JSON object whose keys belong to the kind of action."""
    refused_by: tuple[str, ...] = ()
    """Names of the fail-safes that refused the action."""
    explanations: tuple[str, ...] = ()
    """Why the action was refused, what failed, what an undo left unchanged."""
    accepted_by: tuple[str, ...] | None = None
    """Receivers, by host, that accepted the notification of the present outcome; None if none is due."""
    rejected_by: tuple[str, ...] = ()
    """Receivers, by host, that rejected the notification of the present outcome for good."""
    undone_since: datetime | None = None
    """When the latest attempt to undo the action began."""
    overruled: bool = False
    """Whether an operator undid a completed action, or tried to, with a reason of their own."""

    @property
    def is_open(self) -> bool:
        """Whether the broker remains changed, or the case was interrupted or failed.

        A completed action that changes nothing for long, such as a restart, has ended.
        """
        if self.outcome is ActionOutcome.DONE:
            return self.ended is None
        return self.outcome in (ActionOutcome.BEGUN, ActionOutcome.FAILED)

    def with_new_outcome(
        self, outcome: ActionOutcome, *, must_notify: bool = False, **changes: Any
    ) -> "ActionCase":
        """Return the case with an outcome that no receiver has accepted or rejected yet.

        Receivers are to be notified of it if ``must_notify``, or if they were of the previous outcome.
        """
        accepted_by = () if must_notify or self.accepted_by is not None else None
        return replace(self, outcome=outcome, accepted_by=accepted_by, rejected_by=(), **changes)

    @property
    def has_changed_cluster(self) -> bool:
        """Whether anything in the cluster was changed."""
        return self.outcome not in OUTCOMES_WITHOUT_EFFECT
