"""Promote another cluster to the primary of a service: check preconditions, run the command, verify."""

from collections.abc import Callable, Collection
from dataclasses import dataclass
from enum import StrEnum
from typing import Protocol

from fleetgauge_operations.recovery.primaries.commands import CommandError
from fleetgauge_operations.recovery.primaries.plan.primary_lease import PrimaryLeaseError
from fleetgauge_operations.recovery.primaries.plan.primary_state import PrimaryState
from fleetgauge_operations.recovery.primaries.plan.promotion import PromotionPlan

_VERIFY_TIMEOUT_S = 60.0
_VERIFY_INTERVAL_S = 1.0


class PromotionOutcome(StrEnum):
    """How a promotion ended."""

    DRY_RUN = "DRY_RUN"
    """All preconditions are met or overridden; nothing was changed."""
    REFUSED = "REFUSED"
    """A precondition is not met; nothing was changed."""
    PROMOTED = "PROMOTED"
    FAILED = "FAILED"
    """The command failed, or the leases do not name the new primary after it."""


@dataclass(frozen=True, slots=True)
class PromotionResult:
    """The outcome of a promotion; ``message`` is one line."""

    plan: PromotionPlan
    outcome: PromotionOutcome
    message: str

    @property
    def is_success(self) -> bool:
        """Whether the cluster was promoted, or may be."""
        return self.outcome in (PromotionOutcome.DRY_RUN, PromotionOutcome.PROMOTED)

    @property
    def was_attempted(self) -> bool:
        """Whether the promotion command was run."""
        return self.outcome in (PromotionOutcome.PROMOTED, PromotionOutcome.FAILED)


class PromotionContext(Protocol):
    """The clusters, leases and command behind the promotion of one service."""

    def plan(self) -> PromotionPlan:
        """Check the preconditions, reading the leases last.

        Raises: PrimaryLeaseError if the leases cannot be read; TableStoreError.
        """

    def read_primary_state(self) -> PrimaryState:
        """Read the leases; reachability is ignored. Raises PrimaryLeaseError."""

    def is_target(self, primary: str) -> bool:
        """Return whether a lease's primary is the cluster to be promoted, or its region."""

    def promote(self, epoch: int) -> None:
        """Run the promotion command. Raises CommandError."""


@dataclass(frozen=True, slots=True)
class PromotionExecutor:
    """Executes one promotion; ``monotonic`` and ``wait`` are in seconds."""

    context: PromotionContext
    monotonic: Callable[[], float]
    wait: Callable[[float], object]

    def run(self, execute: bool, despite: Collection[str] = ()) -> PromotionResult:
        """Promote the cluster if ``execute`` is set and all preconditions are met or named in ``despite``.

        Raises: PrimaryLeaseError if the leases cannot be read before the command is run.
        """
        plan = self.context.plan()
        unmet = plan.unmet(despite)
        if unmet:
            fix = "fix the cause, or override with --despite"
            message = f"preconditions not met: {', '.join(unmet)}: {fix}"
            return PromotionResult(plan, PromotionOutcome.REFUSED, message)
        if not execute:
            return PromotionResult(plan, PromotionOutcome.DRY_RUN, "dry run: promote with --execute")
        try:
            self.context.promote(plan.epoch)
        except CommandError as error:
            _, message = self._check_promoted(plan)
            return PromotionResult(plan, PromotionOutcome.FAILED, f"{error}; {message}")
        return self._verify(plan)

    def _verify(self, plan: PromotionPlan) -> PromotionResult:
        deadline = self.monotonic() + _VERIFY_TIMEOUT_S
        while True:
            is_promoted, message = self._check_promoted(plan)
            if is_promoted:
                return PromotionResult(plan, PromotionOutcome.PROMOTED, message)
            if self.monotonic() >= deadline:
                message = f"not promoted {_VERIFY_TIMEOUT_S:.0f} s after the command ended: {message}"
                return PromotionResult(plan, PromotionOutcome.FAILED, message)
            self.wait(_VERIFY_INTERVAL_S)

    def _check_promoted(self, plan: PromotionPlan) -> tuple[bool, str]:
        """Return whether the cluster is the only primary, with the epoch of this promotion or a later one."""
        try:
            state = self.context.read_primary_state()
        except PrimaryLeaseError as error:
            return False, f"the current primary is unknown: {error}"
        primary = state.primary
        if primary is None:
            return False, state.finding.message if state.finding else "there is no lease"
        is_new = primary.epoch is None or primary.epoch >= plan.epoch
        return is_new and self.context.is_target(primary.primary), f"the primary is now {primary.description}"
