"""What is done about a cluster's brokers without being asked: at most one thing at a time.

Approach: as long as a broker is named, the rungs of the ladder that help against what it is named as are
taken in order, each behind all fail-safes. Where a cluster is to be advised only, or a fail-safe forbids the
rung, a person is told, once. What was done by this is undone once the broker has been well for a while;
what a person did is theirs to undo.
"""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime

from fleetgauge_core.detection import HealthState
from fleetgauge_operations.mitigation.case import LADDER, Action, Case, Intent, Outcome
from fleetgauge_operations.mitigation.demotion import restored
from fleetgauge_operations.mitigation.fail_safes import Refusal, Why, refusals, undo_refusals
from fleetgauge_operations.mitigation.limits import DEFAULT_LIMITS, Limits
from fleetgauge_operations.mitigation.situation import Sick, Situation

#: Who answers for it on record.
AUTHOR = "fleetgauge mitigate run"
#: What passes by itself: nobody need be told.
_WAITING = frozenset({Why.TOO_YOUNG, Why.TOO_SOON, Why.NO_WATCH, Why.PLANNED})


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


@dataclass(frozen=True, slots=True)
class GiveUp:
    """Whoever began it has not ended it: unless they are at work still, it has failed."""

    case: Case


Step = Treat | HandOver | Restore | Withdraw | GiveUp


@dataclass(frozen=True, slots=True)
class Duty:
    """One cluster at one moment."""

    cluster_id: str
    situation: Situation
    now: datetime
    limits: Limits = DEFAULT_LIMITS

    def next_step(self) -> Step | None:
        """What is due."""
        for case in self.situation.cases:
            if case.outcome is Outcome.BEGUN or _is_half_undone(case):
                return GiveUp(case)
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
        if any(case.outcome is Outcome.UNDONE for case in of_now) or any(
            case.overruled and case.undone_since and case.undone_since >= since for case in cases
        ):
            # By a person, who knows better.
            return None
        done = [case for case in cases if case.is_open or (case.acted and case in of_now)]
        action = self._rung(sick, done)
        if action is None:
            return self._exhausted(sick, done, of_now)
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

    def _rung(self, sick: Sick, done: Sequence[Case]) -> Action | None:
        """The first that helps against it and has not been taken yet; a restart may be once more."""
        if _is_unmeasured(sick, done):
            return None
        taken = Counter(case.action for case in done)
        for action in LADDER:
            helps = sick.phase in self.limits.warrants[action] and self.situation.mode(action) != "off"
            if helps and taken[action] < (self.limits.restarts if action is Action.RESTART else 1):
                return action
        return None

    def _exhausted(self, sick: Sick, done: Sequence[Case], of_now: Sequence[Case]) -> HandOver | None:
        """All was done that could be, and it is sick still: that is for a person."""
        if not done or self.now - done[-1].began < self.limits.pause or sick.broker_id is None:
            return None
        last = done[-1]
        if _is_unmeasured(sick, done):
            words = (
                f"broker {sick.broker_id} leads nothing since it was demoted, so nobody measures whether it "
                f"is {sick.phase} still: see to it, and undo case {last.case_id} with a reason to see"
            )
        else:
            words = f"broker {sick.broker_id} is {sick.phase} though all was done that could be"
        against = (Refusal(Why.EXHAUSTED, words),)
        if any(_says(case, last.action, against) for case in of_now):
            return None
        intent = Intent(last.action, self.cluster_id, sick.broker_id)
        return HandOver(intent, sick.phase, Outcome.REFUSED, against)

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
            and self.situation.watched
            and not self._is_disturbed()
            and self.situation.mode(case.action) == "act"
            and well is not None
            and self.now - max(well, case.began) >= self.limits.well_for
            and not undo_refusals(
                case, restored(self.situation.layout, case.orders), self.situation, reason=None
            )
        )

    def _is_disturbed(self) -> bool:
        """Whether anything goes on in the cluster in which nobody should give a broker its load back.

        A budget that burns is nothing of the kind: it may burn for days, for the very load that is missing.
        """
        situation = self.situation
        blind = (HealthState.NO_DATA, HealthState.CLUSTER_DOWN)
        sick = any(one.broker_id is not None or one.phase in blind for one in situation.sick)
        fenced = any(one.fenced for one in situation.layout.brokers.values())
        return sick or fenced or situation.rolling or bool(situation.planned)


def _is_half_undone(case: Case) -> bool:
    """By a person; what was done by this is undone anew, as soon as it is due."""
    return case.outcome is Outcome.DONE and case.undone_since is not None and case.author != AUTHOR


def _is_unmeasured(sick: Sick, done: Sequence[Case]) -> bool:
    """A broker that leads nothing serves no probe that could be slow: it stays as it was called."""
    demoted = any(case.action is Action.DEMOTE and case.outcome is Outcome.DONE for case in done)
    return demoted and sick.phase is HealthState.DEGRADED


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
