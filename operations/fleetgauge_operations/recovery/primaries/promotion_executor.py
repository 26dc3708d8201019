"""Making another cluster the primary of a service, after a look at all, and verifying what came of it."""

from collections.abc import Callable, Collection
from dataclasses import dataclass
from enum import StrEnum
from typing import Protocol

from fleetgauge_operations.recovery.primaries.commands import CommandError
from fleetgauge_operations.recovery.primaries.plan.primary_lease import ClaimsError
from fleetgauge_operations.recovery.primaries.plan.primary_state import Standing
from fleetgauge_operations.recovery.primaries.plan.promotion import Promotion

_VERIFIED_WITHIN_S = 60.0
_READ_EVERY_S = 1.0


class Outcome(StrEnum):
    """By the name that scripts see."""

    DRY_RUN = "DRY_RUN"
    """It could be promoted."""
    REFUSED = "REFUSED"
    """A precondition does not hold, and nothing was done."""
    PROMOTED = "PROMOTED"
    FAILED = "FAILED"
    """The command did not do it, or the claims say otherwise after it."""


@dataclass(frozen=True, slots=True)
class Promoted:
    """``words``: one line."""

    promotion: Promotion
    outcome: Outcome
    words: str

    @property
    def is_fine(self) -> bool:
        return self.outcome in (Outcome.DRY_RUN, Outcome.PROMOTED)

    @property
    def was_tried(self) -> bool:
        """Whether the user's command was run."""
        return self.outcome in (Outcome.PROMOTED, Outcome.FAILED)


class Scene(Protocol):
    """One service's way from one cluster to another."""

    def promotion(self) -> Promotion:
        """As all is now, the claims last. Raises ClaimsError and what cannot be kept."""

    def standing(self) -> Standing:
        """As the claims are now, dead or not. Raises ClaimsError."""

    def is_passive(self, primary: str) -> bool:
        """Whether a claim means the new one, or its region."""

    def promote(self, epoch: int) -> None:
        """Raises CommandError."""


@dataclass(frozen=True, slots=True)
class Promoter:
    """``monotonic`` and ``wait`` in seconds."""

    scene: Scene
    monotonic: Callable[[], float]
    wait: Callable[[float], object]

    def run(self, execute: bool, despite: Collection[str] = ()) -> Promoted:
        """Nothing is done unless ``execute``, and all holds or is named in ``despite``.

        Raises ClaimsError, and what ``promotion`` raises.
        """
        promotion = self.scene.promotion()
        against = promotion.against(despite)
        if against:
            mend = "mend it, or answer for it with --despite"
            return Promoted(promotion, Outcome.REFUSED, f"{', '.join(against)}: not so: {mend}")
        if not execute:
            return Promoted(promotion, Outcome.DRY_RUN, "a dry run: --execute promotes")
        try:
            self.scene.promote(promotion.epoch)
        except CommandError as error:
            _, said = self._after(promotion)
            return Promoted(promotion, Outcome.FAILED, f"{error}; {said}")
        return self._verified(promotion)

    def _verified(self, promotion: Promotion) -> Promoted:
        deadline = self.monotonic() + _VERIFIED_WITHIN_S
        while True:
            is_done, said = self._after(promotion)
            if is_done:
                return Promoted(promotion, Outcome.PROMOTED, said)
            if self.monotonic() >= deadline:
                words = f"not so {_VERIFIED_WITHIN_S:.0f} s after the command was done: {said}"
                return Promoted(promotion, Outcome.FAILED, words)
            self.wait(_READ_EVERY_S)

    def _after(self, promotion: Promotion) -> tuple[bool, str]:
        """Whether the new one is the only primary, and of this promotion's epoch or a later one."""
        try:
            standing = self.scene.standing()
        except ClaimsError as error:
            return False, f"who is the primary now is not known: {error}"
        primary = standing.primary
        if primary is None:
            return False, standing.finding.words if standing.finding else "nobody claims it"
        is_new = primary.epoch is None or primary.epoch >= promotion.epoch
        return is_new and self.scene.is_passive(primary.primary), f"the primary is now {primary.words}"
