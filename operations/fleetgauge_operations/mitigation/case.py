"""Mitigation cases: one action on one broker each, with everything that is needed to undo it."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from typing import NamedTuple

from fleetgauge_core.metadata import TopicPartition


class Action(StrEnum):
    """What can be done to a broker."""

    DEMOTE = "demote"
    """Move the leadership of its partitions to other replicas; no data is moved."""
    QUARANTINE_RESTART = "quarantine_restart"
    """Restart it with throttled replication, so that it stays out of the ISR and no producer waits for it."""
    RESTART = "restart"
    """Restart it, and change nothing else."""
    EVACUATE = "evacuate"
    """Move its replicas, with their data, to other brokers. It is proposed, but never applied."""

    @property
    def has_lasting_effect(self) -> bool:
        """Whether the broker remains changed until the action is undone."""
        return self in (Action.DEMOTE, Action.QUARANTINE_RESTART)


#: The order in which actions are tried while a broker remains unhealthy.
ESCALATION_LADDER = (Action.DEMOTE, Action.RESTART, Action.QUARANTINE_RESTART, Action.EVACUATE)


class CaseOutcome(StrEnum):
    """The state of a case."""

    BEGUN = "begun"
    """In progress, or interrupted."""
    ADVISED = "advised"
    """Proposed to an operator; nothing was changed."""
    DONE = "done"
    REFUSED = "refused"
    """A fail-safe refused the action and an operator was notified; nothing was changed."""
    FAILED = "failed"
    """Something was changed, but the intended result was not reached."""
    UNDONE = "undone"


class ReplicaOrder(NamedTuple):
    """The replicas of a partition before and after a demotion; the first one is the preferred leader."""

    before: tuple[int, ...]
    after: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class ActionRequest:
    """A request for an action on a broker; ``reason`` is an operator's own, None if alerts are the reason."""

    action: Action
    cluster_id: str
    broker_id: int
    reason: str | None = None


@dataclass(frozen=True, slots=True)
class MitigationCase:
    """One row of ops/actions."""

    case_id: str
    action: Action
    cluster_id: str
    broker_id: int
    zone: str | None
    author: str
    reason: str
    began: datetime
    outcome: CaseOutcome
    ended: datetime | None = None
    """When the case was closed: undone, completed, resolved, or refused to an operator."""
    orders: Mapping[TopicPartition, ReplicaOrder] = field(default_factory=dict)
    throttles: Mapping[str, str] = field(default_factory=dict)
    """The throttled replicas by topic, as values of ``follower.replication.throttled.replicas``."""
    against: tuple[str, ...] = ()
    """Names of the fail-safes that refused the action."""
    words: tuple[str, ...] = ()
    """Explanations: why the action was refused, what failed, what an undo left unchanged."""
    told: tuple[str, ...] | None = None
    """Receivers, by host, that accepted the notification of the present outcome; None if none is due."""
    rejected: tuple[str, ...] = ()
    """Receivers, by host, that rejected the notification of the present outcome for good."""
    undone_since: datetime | None = None
    """When the latest attempt to undo the action began."""
    overruled: bool = False
    """Whether an operator undid a completed action, or tried to, with a reason of their own."""

    @property
    def is_open(self) -> bool:
        """Whether the broker remains changed, or the case was interrupted or failed."""
        if self.outcome is CaseOutcome.DONE:
            return self.action.has_lasting_effect
        return self.outcome in (CaseOutcome.BEGUN, CaseOutcome.FAILED)

    @property
    def has_changed_cluster(self) -> bool:
        """Whether anything in the cluster was changed."""
        return self.outcome not in (CaseOutcome.REFUSED, CaseOutcome.ADVISED)
