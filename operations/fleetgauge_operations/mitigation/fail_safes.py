"""What forbids an action. Every fail-safe is asked: whoever decides sees all that speaks against it."""

from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum

from fleetgauge_core.detection import HealthState
from fleetgauge_core.kafka import ClusterMetadata, TopicPartition
from fleetgauge_operations.mitigation.case import Action, Case, Intent, Outcome
from fleetgauge_operations.mitigation.demotion import Restoration, demoted
from fleetgauge_operations.mitigation.limits import DEFAULT_LIMITS, Limits
from fleetgauge_operations.mitigation.situation import Situation

_DAY = timedelta(days=1)
_RESTARTS = (Action.RESTART, Action.QUARANTINE_RESTART)
#: So many partitions are named, the others counted.
_SHOWN = 3


class Why(StrEnum):
    """The fail-safes, by the name that scripts see."""

    NOT_REGISTERED = "not_registered"
    FENCED = "fenced"
    NOTHING_TO_TAKE = "nothing_to_take"
    NO_FINDING = "no_finding"
    TOO_YOUNG = "too_young"
    NOT_MEASURED = "not_measured"
    SECOND_SICK = "second_sick"
    OTHER_FENCED = "other_fenced"
    ONLY_REPLICA = "only_replica"
    MIN_IN_SYNC = "min_in_sync"
    MOVING = "moving"
    ROLLING = "rolling"
    PLANNED = "planned"
    ALREADY = "already"
    OTHER_BROKER = "other_broker"
    OTHER_ZONE = "other_zone"
    CIRCUIT_OPEN = "circuit_open"
    TOO_SOON = "too_soon"
    TOO_MANY = "too_many"
    OFF = "off"
    PROPOSED_ONLY = "proposed_only"
    NO_RESTART = "no_restart"
    THROTTLED = "throttled"
    NOT_IN_SYNC = "not_in_sync"
    STILL_SICK = "still_sick"
    NO_WATCH = "no_watch"
    EXHAUSTED = "exhausted"


@dataclass(frozen=True, slots=True)
class Refusal:
    """Which fail-safe forbids it, and what a person can make of that."""

    why: Why
    words: str


@dataclass(frozen=True, slots=True)
class _Asked:
    intent: Intent
    situation: Situation
    now: datetime
    limits: Limits

    @property
    def broker_id(self) -> int:
        return self.intent.broker_id

    @property
    def layout(self) -> ClusterMetadata:
        return self.situation.layout

    @property
    def is_fenced(self) -> bool:
        """Whether its cluster has taken everything from it already, so that nothing more can be."""
        known = self.layout.brokers.get(self.broker_id)
        return known is not None and known.fenced


def refusals(
    intent: Intent, situation: Situation, now: datetime, limits: Limits = DEFAULT_LIMITS
) -> tuple[Refusal, ...]:
    """All that forbids it; none, and it may be done."""
    asked = _Asked(intent, situation, now, limits)
    return tuple(Refusal(why, words) for why, ask in _FAIL_SAFES for words in ask(asked))


def undo_refusals(
    case: Case, back: Restoration, situation: Situation, reason: str | None
) -> tuple[Refusal, ...]:
    """All that forbids to give a broker back what was taken from it; ``reason``: a person's own."""
    return tuple(Refusal(why, words) for why, words in _against_undoing(case, back, situation, reason))


def _against_undoing(
    case: Case, back: Restoration, situation: Situation, reason: str | None
) -> Iterator[tuple[Why, str]]:
    broker_id, layout = case.broker_id, situation.layout
    known = layout.brokers.get(broker_id)
    if known is None and reason is None:
        yield (
            Why.NOT_REGISTERED,
            f"broker {broker_id} is not registered any more: give a reason of your own to close the case",
        )
    elif known and known.fenced:
        yield Why.FENCED, f"broker {broker_id} is fenced"
    if layout.reassigning:
        yield Why.MOVING, f"a reassignment is under way: {_named(layout.reassigning)}"
    to_lead = back.led_by(broker_id)
    # Who is behind anywhere has not recovered; what a person wants takes no more than what it is to lead.
    wanted = layout.replicated_on(broker_id) if to_lead and reason is None else to_lead
    behind = [place for place in wanted if broker_id not in layout.partitions[place].in_sync]
    if behind and known:
        yield Why.NOT_IN_SYNC, f"broker {broker_id} is behind in {_named(behind)}: give it time to catch up"
    for one in situation.sick:
        if one.broker_id == broker_id and reason is None:
            yield (
                Why.STILL_SICK,
                f"broker {broker_id} is {one.phase} since {one.since:%FT%TZ}: give a reason of your own to "
                "do it all the same",
            )


def _not_registered(asked: _Asked) -> Iterator[str]:
    if asked.broker_id not in asked.layout.brokers:
        known = ", ".join(map(str, sorted(asked.layout.brokers)))
        yield f"{asked.intent.cluster_id} has no broker {asked.broker_id}; registered are {known}"


def _fenced(asked: _Asked) -> Iterator[str]:
    if asked.is_fenced and asked.intent.action is not Action.RESTART:
        yield f"broker {asked.broker_id} is fenced: its cluster has taken everything from it already"


def _nothing_to_take(asked: _Asked) -> Iterator[str]:
    broker_id, layout = asked.broker_id, asked.layout
    if asked.intent.action is not Action.DEMOTE:
        return
    if broker_id in layout.brokers and not (layout.led_by(broker_id) or demoted(layout, broker_id)):
        yield f"broker {broker_id} leads nothing and is the last replica wherever it is one"


def _no_finding(asked: _Asked) -> Iterator[str]:
    warrants = asked.limits.warrants[asked.intent.action]
    if asked.intent.reason is None and not any(
        one.broker_id == asked.broker_id and one.phase in warrants for one in asked.situation.sick
    ):
        kinds = " or ".join(warrants)
        yield (
            f"broker {asked.broker_id} is not named as {kinds}, against which this helps: give a reason of "
            "your own to do it all the same"
        )


def _too_young(asked: _Asked) -> Iterator[str]:
    if asked.intent.reason is not None:
        return
    warrants = asked.limits.warrants[asked.intent.action]
    waits = [
        (asked.now - (one.called_since or one.since), warrants[one.phase], one.phase)
        for one in asked.situation.sick
        if one.broker_id == asked.broker_id and one.phase in warrants
    ]
    if waits and all(age < wait for age, wait, _ in waits):
        age, wait, phase = min(waits, key=lambda one: one[1] - one[0])
        yield f"{phase} for {_seconds(age)}; it is acted upon after {_seconds(wait)}"


def _not_measured(asked: _Asked) -> Iterator[str]:
    for one in asked.situation.sick:
        if one.phase in (HealthState.NO_DATA, HealthState.CLUSTER_DOWN):
            yield f"{one.phase} since {one.since:%FT%TZ}: whether it helps could not be seen"


def _no_watch(asked: _Asked) -> Iterator[str]:
    if not asked.situation.watched and asked.intent.reason is None:
        yield "no watch is at work: what was found last may be over"


def _second_sick(asked: _Asked) -> Iterator[str]:
    for one in asked.situation.sick:
        if one.broker_id not in (None, asked.broker_id):
            named = f"broker {one.broker_id} is {one.phase} since {one.since:%FT%TZ}"
            yield f"{named}: two at once are for a person"


def _other_fenced(asked: _Asked) -> Iterator[str]:
    for broker_id, one in sorted(asked.layout.brokers.items()):
        if one.fenced and broker_id != asked.broker_id:
            yield f"broker {broker_id} is fenced: the others carry its load already"


def _only_replica(asked: _Asked) -> Iterator[str]:
    if asked.is_fenced:
        return
    alone = [
        place
        for place, one in asked.layout.replicated_on(asked.broker_id).items()
        if not one.in_sync - {asked.broker_id}
    ]
    if alone:
        yield f"nobody else is in sync to lead {_named(alone)}"


def _min_in_sync(asked: _Asked) -> Iterator[str]:
    if asked.is_fenced:
        return
    layout = asked.layout
    short = [
        place
        for place, one in layout.replicated_on(asked.broker_id).items()
        if len(one.in_sync - {asked.broker_id}) < layout.min_in_sync.get(place.topic, 1)
    ]
    if short:
        yield f"without it fewer than min.insync.replicas would be in sync of {_named(short)}"


def _moving(asked: _Asked) -> Iterator[str]:
    if asked.layout.reassigning:
        yield f"a reassignment is under way: {_named(asked.layout.reassigning)}"


def _rolling(asked: _Asked) -> Iterator[str]:
    if asked.situation.rolling:
        yield "its brokers are being rolled"


def _planned(asked: _Asked) -> Iterator[str]:
    if not asked.situation.planned.isdisjoint({None, asked.broker_id}) and asked.intent.reason is None:
        yield f"broker {asked.broker_id} is planned to be out now: whoever planned it is at work there"


def _already(asked: _Asked) -> Iterator[str]:
    for case in asked.situation.cases:
        if case.is_open and (case.broker_id, case.action) == (asked.broker_id, asked.intent.action):
            yield f"case {case.case_id}: {case.action} since {case.began:%FT%TZ} ({case.outcome})"


def _others(asked: _Asked, *, same_zone: bool) -> Iterator[str]:
    zone = asked.situation.zone(asked.broker_id)
    for case in asked.situation.cases:
        if case.is_open and case.broker_id != asked.broker_id and (case.zone == zone) == same_zone:
            where = f" in zone {case.zone}" if case.zone else ""
            yield f"case {case.case_id}: {case.action} of broker {case.broker_id}{where} is not undone yet"


def _other_broker(asked: _Asked) -> Iterator[str]:
    return _others(asked, same_zone=True)


def _other_zone(asked: _Asked) -> Iterator[str]:
    return _others(asked, same_zone=False)


def _circuit_open(asked: _Asked) -> Iterator[str]:
    for case in asked.situation.cases:
        if case.outcome is Outcome.FAILED:
            yield f"case {case.case_id} failed: see to it and undo it before anything else is done"
        if case.outcome is Outcome.BEGUN:
            yield f"case {case.case_id} was begun and has no end: wait for it, or see to it and undo it"


def _too_soon(asked: _Asked) -> Iterator[str]:
    last = max((case.began for case in asked.situation.cases if case.acted), default=None)
    if last and asked.now - last < asked.limits.pause:
        ago, pause = _seconds(asked.now - last), _seconds(asked.limits.pause)
        yield f"the last action in this cluster was {ago} ago, and is given {pause}"


def _too_many(asked: _Asked) -> Iterator[str]:
    of_today = [case for case in asked.situation.cases if case.acted and asked.now - case.began < _DAY]
    if len(of_today) >= asked.limits.a_day:
        yield f"{len(of_today)} actions in this cluster within a day: more needs a person to look into it"
    if asked.intent.action not in _RESTARTS:
        return
    restarts = [
        case
        for case in asked.situation.cases
        if case.acted and case.action in _RESTARTS and asked.now - case.began < asked.limits.restarts_in
    ]
    if len(restarts) >= asked.limits.restarts:
        within = _seconds(asked.limits.restarts_in)
        yield f"{len(restarts)} restarts in this cluster within {within}: another needs a person"


def _off(asked: _Asked) -> Iterator[str]:
    action = asked.intent.action
    if asked.situation.mode(action) == "off":
        yield f"{action} is off in `mitigation` of {asked.intent.cluster_id}"


def _proposed_only(asked: _Asked) -> Iterator[str]:
    if asked.intent.action is Action.EVACUATE:
        yield "moving replicas with their data is for a person: it is proposed, never done"


def _no_restart(asked: _Asked) -> Iterator[str]:
    if asked.intent.action in _RESTARTS and not asked.situation.can_restart:
        yield f"nobody has said how: give {asked.intent.cluster_id} a command as `restart`"


def _throttled(asked: _Asked) -> Iterator[str]:
    if asked.intent.action is Action.QUARANTINE_RESTART:
        topics = {place.topic for place in asked.layout.replicated_on(asked.broker_id)}
        theirs = sorted(topics & asked.layout.throttled_topics)
        if theirs:
            yield f"somebody slows replicas of {', '.join(theirs[:_SHOWN])} already"


_FAIL_SAFES: tuple[tuple[Why, Callable[[_Asked], Iterator[str]]], ...] = (
    (Why.NOT_REGISTERED, _not_registered),
    (Why.FENCED, _fenced),
    (Why.NOTHING_TO_TAKE, _nothing_to_take),
    (Why.NO_FINDING, _no_finding),
    (Why.TOO_YOUNG, _too_young),
    (Why.NOT_MEASURED, _not_measured),
    (Why.NO_WATCH, _no_watch),
    (Why.SECOND_SICK, _second_sick),
    (Why.OTHER_FENCED, _other_fenced),
    (Why.ONLY_REPLICA, _only_replica),
    (Why.MIN_IN_SYNC, _min_in_sync),
    (Why.MOVING, _moving),
    (Why.ROLLING, _rolling),
    (Why.PLANNED, _planned),
    (Why.ALREADY, _already),
    (Why.OTHER_BROKER, _other_broker),
    (Why.OTHER_ZONE, _other_zone),
    (Why.CIRCUIT_OPEN, _circuit_open),
    (Why.TOO_SOON, _too_soon),
    (Why.TOO_MANY, _too_many),
    (Why.OFF, _off),
    (Why.PROPOSED_ONLY, _proposed_only),
    (Why.NO_RESTART, _no_restart),
    (Why.THROTTLED, _throttled),
)


def _named(places: Collection[TopicPartition]) -> str:
    shown = [f"{topic}-{partition}" for topic, partition in sorted(places)[:_SHOWN]]
    more = len(places) - len(shown)
    return ", ".join(shown) + (f" and {more} more" if more else "")


def _seconds(span: timedelta) -> str:
    return f"{span.total_seconds():.0f} s"
