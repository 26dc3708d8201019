"""Carrying out: every step is taken only after all has been read again, and what came of it is verified."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Protocol

from fleetgauge_core.kafka import ClusterMetadata, KafkaUnavailableError, TopicPartition
from fleetgauge_operations.mitigation.case import Action, Case, Intent, Order, Outcome
from fleetgauge_operations.mitigation.demotion import Restoration, demoted, restored
from fleetgauge_operations.mitigation.fail_safes import Refusal, Why, refusals, undo_refusals
from fleetgauge_operations.mitigation.limits import DEFAULT_LIMITS, Limits
from fleetgauge_operations.mitigation.restarts import not_back, not_quarantined, not_released, throttles
from fleetgauge_operations.mitigation.situation import Situation

#: Metadata follows an election within milliseconds.
_ELECTED_WITHIN = timedelta(seconds=5)
#: A broker starts within a minute, and catches up at the speed of its disk and network.
_BACK_WITHIN = timedelta(minutes=5)
#: One that was killed counts as there until its session ends, after 9 s unless it is configured otherwise.
_BACK_FOR = timedelta(seconds=30)
#: Whoever has just started is behind for a moment in any case.
_KEPT_OUT_FOR = timedelta(seconds=30)
_LOOK_EVERY_S = 0.5
_MINUTE_S = 60.0


class HookError(Exception):
    """The command that restarts a broker did not do it; one line for a person."""


class ClusterControl(Protocol):
    """What is changed. All raise KafkaUnavailableError; ``restart`` raises HookError."""

    def mark(self, broker_id: int, *, demoted: bool) -> None:
        """Tell its agents, which else give it its probe partition back."""

    def reorder(
        self, orders: Mapping[TopicPartition, Sequence[int]], known: Mapping[TopicPartition, Order]
    ) -> None:
        """Where each is as it is known, before or after; nothing where one is otherwise by now."""

    def elect(self, places: Iterable[TopicPartition]) -> None: ...

    def throttle(self, broker_id: int, replicas: Mapping[str, str]) -> None:
        """Slow what these follow, until ``release``."""

    def release(self, broker_id: int, replicas: Mapping[str, str], *, registered: bool) -> None:
        """Let these follow as fast as they can; what is not as it was left stays."""

    def restart(self, broker_id: int) -> None: ...


class Journal(Protocol):
    """Where cases are kept, before and after each is carried out."""

    def add(self, case: Case) -> None: ...

    def amend(self, case: Case) -> None: ...


#: What forbids to begin an action once it has begun.
_OWN_DOING = {Action.DEMOTE: Why.NOTHING_TO_TAKE, Action.QUARANTINE_RESTART: Why.THROTTLED}


class UndoRefusedError(Exception):
    """Nothing was changed; why, one after the other."""

    def __init__(self, against: Sequence[Refusal]) -> None:
        super().__init__("; ".join(one.words for one in against))
        self.against = tuple(against)


class _StoppedError(Exception):
    """Nothing more is to be done, and why."""


@dataclass(frozen=True, slots=True)
class Hand:
    """``observe`` leaves out the case of that id; ``may_act`` is whether nobody else does."""

    observe: Callable[[str], Situation]
    cluster: ClusterControl
    journal: Journal
    may_act: Callable[[], bool]
    clock: Callable[[], datetime]
    wait: Callable[[float], object]
    limits: Limits = DEFAULT_LIMITS

    def treat(
        self, intent: Intent, case_id: str, author: str, reason: str, told: tuple[str, ...] | None = None
    ) -> Case:
        """The case as it ended, ``told`` as it is then.

        What it takes to undo it is on record before anything is changed.

        Raises KafkaUnavailableError where nothing could be read, so that nothing was done.
        """
        situation = self.observe(case_id)
        case = Case(
            case_id=case_id,
            action=intent.action,
            cluster_id=intent.cluster_id,
            broker_id=intent.broker_id,
            zone=situation.zone(intent.broker_id),
            author=author,
            reason=reason,
            began=self.clock(),
            outcome=Outcome.BEGUN,
            told=told,
        )
        against = refusals(intent, situation, case.began, self.limits)
        if against:
            case = replace(
                case,
                outcome=Outcome.REFUSED,
                ended=case.began,
                against=tuple(one.why for one in against),
                words=tuple(one.words for one in against),
            )
            self.journal.add(case)
            return case
        match intent.action:
            case Action.DEMOTE:
                case = replace(case, orders=demoted(situation.layout, intent.broker_id))
            case Action.QUARANTINE_RESTART:
                case = replace(case, throttles=throttles(situation.layout, intent.broker_id))
        self.journal.add(case)
        try:
            self._carry_out(intent, case)
        except Exception as error:
            # Whatever it was, something may have been changed.
            return self._ended(replace(case, outcome=Outcome.FAILED, words=(_said(error),)))
        ended = None if case.action.lasts else self.clock()
        return self._ended(replace(case, outcome=Outcome.DONE, ended=ended))

    def undo(self, case: Case, reason: str | None) -> Case:
        """The case as it is then: undone, or failed and still to be undone. ``reason``: a person's own.

        That it is begun is on record before anything is changed.

        Raises UndoRefusedError, KafkaUnavailableError where nothing could be read, and whatever the journal
        does that cannot be written: nothing was done then.
        """
        situation = self.observe(case.case_id)
        back = restored(situation.layout, case.orders)
        against = undo_refusals(case, back, situation, reason)
        if against:
            raise UndoRefusedError(against)
        told = None if case.told is None else ()
        # To close what had failed is no verdict on what was done.
        overruled = reason is not None and (case.outcome is Outcome.DONE or case.overruled)
        case = replace(case, told=told, undone_since=self.clock(), overruled=overruled)
        self.journal.amend(case)
        words = (*((f"undone: {reason}",) if reason else ()), *_kept(back))
        try:
            if case.broker_id in situation.layout.brokers:
                words += self._take_back(case, back, reason)
            else:
                words += self._close(case)
        except Exception as error:
            return self._ended(replace(case, outcome=Outcome.FAILED, words=(_said(error), *words)))
        return self._ended(replace(case, outcome=Outcome.UNDONE, ended=self.clock(), words=words))

    def _carry_out(self, intent: Intent, case: Case) -> None:
        match intent.action:
            case Action.DEMOTE:
                self._demote(intent, case)
            case Action.QUARANTINE_RESTART:
                self._quarantine(intent, case)
            case Action.RESTART:
                self._restart(case)
            case Action.EVACUATE:
                raise AssertionError("it is always refused")

    def _take_back(self, case: Case, back: Restoration, reason: str | None) -> tuple[str, ...]:
        """What else there is to say of it."""
        match case.action:
            case Action.DEMOTE:
                return self._restore(case, back, reason)
            case Action.QUARANTINE_RESTART:
                return self._release(case)
            case _:
                # Nothing is otherwise; whoever closes the case has seen to what had failed.
                self._verify(case, lambda now: not_back(now, case.broker_id), _BACK_WITHIN, holds=_BACK_FOR)
        return ()

    def _close(self, case: Case) -> tuple[str, ...]:
        """Of a broker that is gone for good: nothing can be given back to it, and nothing of it may stay."""
        self._may_go_on()
        match case.action:
            case Action.DEMOTE:
                self.cluster.mark(case.broker_id, demoted=False)
            case Action.QUARANTINE_RESTART:
                self.cluster.release(case.broker_id, case.throttles, registered=False)
        return (f"broker {case.broker_id} is gone: nothing is given back to it",)

    def _demote(self, intent: Intent, case: Case) -> None:
        self._may_go_on()
        self.cluster.mark(case.broker_id, demoted=True)
        self.cluster.reorder({place: order.after for place, order in case.orders.items()}, case.orders)
        led = self._looked_again(intent, case).led_by(case.broker_id)
        self._may_go_on()
        self.cluster.elect(sorted(led))
        self._verify(case, lambda now: _not_demoted(now, case), _ELECTED_WITHIN)

    def _restore(self, case: Case, back: Restoration, reason: str | None) -> tuple[str, ...]:
        first, *others = back.lots(case.broker_id, self.limits.led_again_a_minute)
        self._give_back(case, first)
        words: tuple[str, ...] = ()
        for other in others:
            self.wait(_MINUTE_S)
            lot = self._still_to_give_back(case, other.orders, reason)
            self._give_back(case, lot)
            words += _kept(lot)
        self.cluster.mark(case.broker_id, demoted=False)
        return words

    def _still_to_give_back(
        self, case: Case, places: Iterable[TopicPartition], reason: str | None
    ) -> Restoration:
        """By a look of its own."""
        situation = self.observe(case.case_id)
        back = restored(situation.layout, {place: case.orders[place] for place in places})
        against = undo_refusals(case, back, situation, reason)
        if against:
            raise _StoppedError("; ".join(one.words for one in against))
        return back

    def _give_back(self, case: Case, back: Restoration) -> None:
        self._may_go_on()
        self.cluster.reorder(back.orders, case.orders)
        self.cluster.elect(back.led_by(case.broker_id))
        self._verify(case, lambda now: _not_restored(now, case.broker_id, back.orders), _ELECTED_WITHIN)

    def _quarantine(self, intent: Intent, case: Case) -> None:
        self._may_go_on()
        self.cluster.throttle(case.broker_id, case.throttles)
        self._looked_again(intent, case)
        self._may_go_on()
        self.cluster.restart(case.broker_id)
        self._verify(
            case, lambda now: not_quarantined(now, case.broker_id), _BACK_WITHIN, holds=_KEPT_OUT_FOR
        )

    def _restart(self, case: Case) -> None:
        self._may_go_on()
        self.cluster.restart(case.broker_id)
        self._verify(case, lambda now: not_back(now, case.broker_id), _BACK_WITHIN, holds=_BACK_FOR)

    def _release(self, case: Case) -> tuple[str, ...]:
        """Where it is still behind, if it has much to copy: that is no failure of the release."""
        self._may_go_on()
        self.cluster.release(case.broker_id, case.throttles, registered=True)
        try:
            self._verify(case, lambda now: not_released(now, case.broker_id), _BACK_WITHIN)
        except _StoppedError as error:
            return (f"{error}: it copies on",)
        return ()

    def _looked_again(self, intent: Intent, case: Case) -> ClusterMetadata:
        """In the middle of it, what it has changed itself set aside."""
        situation = self.observe(case.case_id)
        own = _OWN_DOING[intent.action]
        now = self.clock()
        against = [one for one in refusals(intent, situation, now, self.limits) if one.why is not own]
        if against:
            raise _StoppedError("; ".join(one.words for one in against))
        return situation.layout

    def _verify(
        self,
        case: Case,
        wrong: Callable[[ClusterMetadata], str],
        within: timedelta,
        holds: timedelta = timedelta(0),
    ) -> None:
        """Until nothing is wrong any more, and has not been for so long."""
        until, right_since = self.clock() + within, None
        while True:
            found, now = self._still(case, wrong), self.clock()
            if found and now >= until:
                raise _StoppedError(f"{found} after {within.total_seconds():.0f} s")
            right_since = None if found else right_since or now
            if right_since and now - right_since >= holds:
                return
            self.wait(_LOOK_EVERY_S)

    def _still(self, case: Case, wrong: Callable[[ClusterMetadata], str]) -> str:
        """A broker that restarts may take a question with it."""
        try:
            return wrong(self.observe(case.case_id).layout)
        except KafkaUnavailableError as error:
            return str(error)

    def _may_go_on(self) -> None:
        if not self.may_act():
            raise _StoppedError("somebody else may be acting: this one has lost its seat")

    def _ended(self, case: Case) -> Case:
        """Who reads of it must hear of it, though it cannot be written down."""
        try:
            self.journal.amend(case)
        except Exception as error:
            return replace(case, words=(*case.words, f"not on record: {_said(error)}"))
        return case


def _kept(back: Restoration) -> tuple[str, ...]:
    return tuple(f"{place.topic}-{place.partition} {why}" for place, why in sorted(back.kept.items()))


def _said(error: Exception) -> str:
    known = isinstance(error, KafkaUnavailableError | HookError | _StoppedError)
    return str(error) if known else f"{type(error).__name__}: {error}"


def _not_demoted(layout: ClusterMetadata, case: Case) -> str:
    """What is still to come; nothing once all is as wanted."""
    led = layout.led_by(case.broker_id)
    if led:
        return f"broker {case.broker_id} leads {len(led)} partitions"
    return _not_ordered(layout, {place: order.after for place, order in case.orders.items()})


def _not_restored(
    layout: ClusterMetadata, broker_id: int, orders: Mapping[TopicPartition, Sequence[int]]
) -> str:
    wanted = [place for place, replicas in orders.items() if replicas[0] == broker_id]
    missed = set(wanted) - layout.led_by(broker_id)
    if missed:
        return f"broker {broker_id} does not lead {len(missed)} of {len(wanted)} partitions again"
    return _not_ordered(layout, orders)


def _not_ordered(layout: ClusterMetadata, orders: Mapping[TopicPartition, Sequence[int]]) -> str:
    other = [place for place, replicas in orders.items() if _order(layout, place) != tuple(replicas)]
    return f"{len(other)} partitions have another order of replicas" if other else ""


def _order(layout: ClusterMetadata, place: TopicPartition) -> Sequence[int]:
    known = layout.partitions.get(place)
    return known.replicas if known else ()
