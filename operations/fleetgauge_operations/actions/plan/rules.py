"""The rules of one kind of action: when it is warranted, how often it may be applied, what it needs."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any

from fleetgauge_core.detection import HealthState
from fleetgauge_core.metadata import ClusterMetadata
from fleetgauge_core.tables import ActionKind
from fleetgauge_operations.actions.plan.case import ActionCase, ActionRequest
from fleetgauge_operations.actions.plan.refusal import Refusal, RefusalReason
from fleetgauge_operations.actions.plan.snapshot import ClusterSnapshot


@dataclass(frozen=True, slots=True)
class RateLimit:
    """At most ``max_actions`` of these kinds in a cluster within ``window``.

    An action counts once, however long it takes and however many partitions it changes.
    """

    kinds: frozenset[ActionKind]
    max_actions: int
    window: timedelta
    name: str = "actions"
    """What is limited, in the words of a refusal."""


@dataclass(frozen=True, slots=True)
class ActionLimits:
    """Limits of one kind of action in each cluster."""

    warrants: Mapping[HealthState, timedelta] = field(default_factory=dict)
    """The alert states that warrant the action, and the minimum age of each."""
    paced_with: frozenset[ActionKind] = frozenset()
    """Kinds of actions from whose start ``min_interval`` must have passed."""
    min_interval: timedelta = timedelta(0)
    rate_limits: tuple[RateLimit, ...] = ()


@dataclass(frozen=True, slots=True)
class ActionRules:
    """What the kernel has to know of a kind of action before it is applied or undone."""

    limits: ActionLimits
    has_lasting_effect: bool
    """Whether the broker remains changed until the action is undone."""
    describe_effect: Callable[[ClusterMetadata, int], str]
    """Return what the action would do to a broker, for a dry run."""
    describe_undo: Callable[[ActionCase, ClusterMetadata], str]
    """Return what an undo would change, for a dry run."""
    make_plan: Callable[[ClusterMetadata, int], Mapping[str, Any]] | None = None
    """Return what an undo needs, as a JSON object that is stored with the case."""
    allows_fenced_broker: bool = False
    keeps_replicas_in_sync: bool = False
    """Whether the broker stays in sync, so that the action costs no partition a replica in sync."""
    self_caused: frozenset[RefusalReason] = frozenset()
    """Refusals that the action's own first step causes; ignored when it is checked again."""
    fail_safes: tuple[Callable[[ActionRequest, ClusterSnapshot], Iterator[Refusal]], ...] = ()
    """The fail-safes of this kind, beside those of all kinds."""
    find_harm: Callable[[ActionCase, ClusterMetadata], str] | None = None
    """Return how clients suffer now from an action that stands; an empty string if they do not."""
    undo_fail_safes: tuple[Callable[[ActionCase, ClusterSnapshot, str | None], Iterator[Refusal]], ...] = ()
    """The fail-safes of its undo; the last argument is an operator's own reason for it."""

    def plan(self, metadata: ClusterMetadata, broker_id: int) -> Mapping[str, Any]:
        """Return the plan of an action; empty if nothing of it is to be undone."""
        return self.make_plan(metadata, broker_id) if self.make_plan else {}
