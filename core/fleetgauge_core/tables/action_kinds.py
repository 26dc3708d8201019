"""The kinds and outcomes of ops/actions, which all writers and readers of the table share."""

from enum import StrEnum


class ActionKind(StrEnum):
    """The values of the column ``kind`` of ops/actions; rows of later versions may have others."""

    DEMOTE = "demote"
    """Move the leadership of a broker's partitions to other replicas; no data is moved."""
    RESTART = "restart"
    """Restart a broker, and change nothing else."""
    QUARANTINE_RESTART = "quarantine_restart"
    """Restart a broker with throttled replication: it stays out of the ISR, and no producer waits for it."""
    EVACUATE = "evacuate"
    """Move a broker's replicas, with their data, to other brokers. It is proposed, but never applied."""
    PROMOTE = "promote"
    """Make a cluster the primary of its region pair."""
    ROLL = "roll"
    """Restart all brokers of a cluster, one after the other."""
    REASSIGNMENT = "reassignment"
    """Move replicas of partitions to other brokers."""
    THROTTLE = "throttle"
    """Limit the bandwidth of replication."""
    ACKNOWLEDGE = "acknowledge"
    """A person has taken an alert; nothing is done to the cluster."""
    JUDGE = "judge"
    """A person has judged whether an alert was right; nothing is done to the cluster."""


class ActionOutcome(StrEnum):
    """The state of a mitigation: the value of ``outcome`` in ``detail`` of ops/actions."""

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


#: Actions on an unhealthy broker, in the order in which they are tried while it remains unhealthy.
MITIGATION_KINDS = (
    ActionKind.DEMOTE,
    ActionKind.RESTART,
    ActionKind.QUARANTINE_RESTART,
    ActionKind.EVACUATE,
)
#: Kinds whose rows are cases of fleetgauge_operations.actions, with an outcome and an undo.
CASE_KINDS = frozenset(MITIGATION_KINDS)
#: Work on a cluster that can be the cause of its bad minutes.
CAUSE_KINDS = frozenset({ActionKind.ROLL, ActionKind.REASSIGNMENT, ActionKind.THROTTLE})
#: Remarks of people on alerts.
REMARK_KINDS = frozenset({ActionKind.ACKNOWLEDGE, ActionKind.JUDGE})
#: Outcomes after which nothing was changed.
OUTCOMES_WITHOUT_EFFECT = frozenset({ActionOutcome.ADVISED, ActionOutcome.REFUSED})
#: Outcomes after which an operator has to continue.
OUTCOMES_FOR_OPERATORS = OUTCOMES_WITHOUT_EFFECT | {ActionOutcome.FAILED}
