"""A case: what is done about one broker, and all that it takes to undo it."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from typing import NamedTuple

from fleetgauge_core.kafka import TopicPartition


class Action(StrEnum):
    """What can be done about a broker."""

    DEMOTE = "demote"
    """Let others lead its partitions; its replicas stay where they are."""
    QUARANTINE_RESTART = "quarantine_restart"
    """Restart it so that it copies on, too slowly to be in sync: no producer waits for it any more."""
    RESTART = "restart"
    """Restart it, and no more."""
    EVACUATE = "evacuate"
    """Move its replicas to other brokers, with their data. It is proposed, never done."""

    @property
    def lasts(self) -> bool:
        """Whether something is otherwise until it is undone."""
        return self in (Action.DEMOTE, Action.QUARANTINE_RESTART)


#: What is tried one after the other as long as a broker stays sick.
LADDER = (Action.DEMOTE, Action.RESTART, Action.QUARANTINE_RESTART, Action.EVACUATE)


class Outcome(StrEnum):
    """How a case stands."""

    BEGUN = "begun"
    """Under way, or broken off."""
    ADVISED = "advised"
    """A person was told that it could be done, and nothing was changed."""
    DONE = "done"
    REFUSED = "refused"
    """Nothing was changed, and a person was told."""
    FAILED = "failed"
    """Something was changed, and what was wanted did not come of it."""
    UNDONE = "undone"


class Order(NamedTuple):
    """Of a partition's replicas, before and after; the first leads if it can."""

    before: tuple[int, ...]
    after: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Intent:
    """What somebody wants to do about a broker. ``reason``: a person's own, beyond findings."""

    action: Action
    cluster_id: str
    broker_id: int
    reason: str | None = None


@dataclass(frozen=True, slots=True)
class Case:
    """One row of ops/actions. ``words``: why it was refused, what failed, what was left as it is."""

    case_id: str
    action: Action
    cluster_id: str
    broker_id: int
    zone: str | None
    author: str
    reason: str
    began: datetime
    outcome: Outcome
    ended: datetime | None = None
    """When nothing more was to be done about it: undone, over, or refused by whoever asked."""
    orders: Mapping[TopicPartition, Order] = field(default_factory=dict)
    throttles: Mapping[str, str] = field(default_factory=dict)
    """By topic, which of its replicas were slowed, as Kafka writes it."""
    against: tuple[str, ...] = ()
    """The fail-safes that forbade it, by name."""
    words: tuple[str, ...] = ()
    told: tuple[str, ...] | None = None
    """By host, who has been told how it stands; None where nobody need be."""
    rejected: tuple[str, ...] = ()
    """By host, receivers that rejected the notification of how it stands for good."""
    undone_since: datetime | None = None
    """When it was begun to be undone, or last tried to."""
    overruled: bool = False
    """Whether a person undid what was done, or tried to, with a reason of their own."""

    @property
    def is_open(self) -> bool:
        """Whether the broker is still treated otherwise than the rest, or somebody must see to it."""
        if self.outcome is Outcome.DONE:
            return self.action.lasts
        return self.outcome in (Outcome.BEGUN, Outcome.FAILED)

    @property
    def acted(self) -> bool:
        """Whether anything was changed."""
        return self.outcome not in (Outcome.REFUSED, Outcome.ADVISED)
