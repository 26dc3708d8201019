"""What is done about a cluster's brokers without being asked: at most one thing at a time.

Approach: as long as a broker is named, the rungs of the ladder that help against what it is named as are
taken in order, each behind all fail-safes. Where a cluster is to be advised only, or a fail-safe forbids the
rung, a person is told, once. What was done by this is undone once the broker has been well for a while;
what a person did is theirs to undo.
"""

from collections.abc import Iterable, Sequence, Set
from dataclasses import dataclass
from datetime import datetime

from fleetgauge_operations.mitigation.case import LADDER, Action, Case, Intent, Outcome
from fleetgauge_operations.mitigation.demotion import restored
from fleetgauge_operations.mitigation.fail_safes import Refusal, Why, refusals, undo_refusals
from fleetgauge_operations.mitigation.limits import DEFAULT_LIMITS, Limits
from fleetgauge_operations.mitigation.situation import Sick, Situation

#: Who answers for it on record.
AUTHOR = "fleetgauge mitigate run"
#: What passes by itself: nobody need be told.
_WAITING = frozenset({Why.TOO_YOUNG, Why.TOO_SOON})


@dataclass(frozen=True, slots=True)
class Treat:
    """Do it."""

    intent: Intent
    reason: str


@dataclass(frozen=True, slots=True)
class HandOver:
    """Tell a person: what could be done (ADVISED), or may not be (REFUSED), with all that forbids it."""

    intent: Intent
    reason: str
    outcome: Outcome
    against: tuple[Refusal, ...]


@dataclass(frozen=True, slots=True)
class Restore:
    """Undo it."""

    case: Case


@dataclass(frozen=True, slots=True)
class Withdraw:
    """Tell that nobody is wanted any more."""

    case: Case


Step = Treat | HandOver | Restore | Withdraw


@dataclass(frozen=True, slots=True)
class Duty:
    """One cluster at one moment."""

    cluster_id: str
    situation: Situation
    now: datetime
    limits: Limits = DEFAULT_LIMITS

    def next_step(self) -> Step | None:
        """What is due."""
        for sick in self.situation.sick:
            step = self._against(sick)
            if step:
                return step
        return self._afterwards()

    def _against(self, sick: Sick) -> Step | None:
        if sick.broker_id is None:
            return None
        since = min(one.since for one in self.situation.sick if one.broker_id == sick.broker_id)
        cases = [case for case in self.situation.cases if case.broker_id == sick.broker_id]
        of_now = [case for case in cases if case.began >= since]
        if any(case.outcome is Outcome.UNDONE for case in of_now):
            # By a person, who knows better.
            return None
        taken = {case.action for case in cases if case.is_open or (case.acted and case in of_now)}
        action = self._rung(sick, taken)
        if action is None:
            return None
        intent = Intent(action, self.cluster_id, sick.broker_id)
        against = refusals(intent, self.situation, self.now, self.limits)
        if _waits(against):
            return None
        acts = self.situation.mode(action) == "act"
        if acts and not against:
            return Treat(intent, sick.phase)
        if any(_says(case, action, against) for case in of_now):
            return None
        return HandOver(intent, sick.phase, Outcome.REFUSED if acts else Outcome.ADVISED, against)

    def _rung(self, sick: Sick, taken: Set[Action]) -> Action | None:
        """The first that helps against it and has not been taken yet."""
        for action in LADDER:
            helps = sick.phase in self.limits.warrants[action] and self.situation.mode(action) != "off"
            if helps and action not in taken:
                return action
        return None

    def _afterwards(self) -> Restore | Withdraw | None:
        sick = {one.broker_id for one in self.situation.sick}
        # The last that was done is the first to be undone.
        for case in reversed(self.situation.cases):
            if case.author != AUTHOR or case.broker_id in sick:
                continue
            if not case.acted and case.ended is None:
                return Withdraw(case)
            if self._is_due_back(case):
                return Restore(case)
        return None

    def _is_due_back(self, case: Case) -> bool:
        """What forbids it passes, or is named itself: nobody is told of it."""
        well = self.situation.well_since.get(case.broker_id)
        return (
            case.outcome is Outcome.DONE
            and case.action.lasts
            and self.situation.mode(case.action) == "act"
            and well is not None
            and self.now - max(well, case.began) >= self.limits.well_for
            and not undo_refusals(
                case, restored(self.situation.layout, case.orders), self.situation, reason=None
            )
        )


def _waits(against: Sequence[Refusal]) -> bool:
    """Whether it may be done, only not yet."""
    return bool(against) and _lasting(one.why for one in against) == frozenset()


def _says(case: Case, action: Action, against: Sequence[Refusal]) -> bool:
    """Whether a person was told just that."""
    return (
        case.action is action
        and not case.acted
        and _lasting(case.against) == _lasting(one.why for one in against)
    )


def _lasting(whys: Iterable[str]) -> frozenset[str]:
    return frozenset(whys) - _WAITING
