"""Carrying out: every step is taken only after all has been read again, and what came of it is verified."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Protocol

from fleetgauge_operations.mitigation.case import Case, Intent, Outcome
from fleetgauge_operations.mitigation.demotion import demoted, restored
from fleetgauge_operations.mitigation.fail_safes import Refusal, refusals, undo_refusals
from fleetgauge_operations.mitigation.situation import Situation
from fleetgauge_probes.kafka import KafkaUnavailableError, Layout, Place

#: Metadata follows an election within milliseconds.
_SETTLES = timedelta(seconds=5)
_LOOK_EVERY_S = 0.5


class Cluster(Protocol):
    """What is changed. Both raise KafkaUnavailableError."""

    def reorder(self, orders: Mapping[Place, Sequence[int]]) -> None: ...

    def elect(self, places: Iterable[Place]) -> None: ...


class Journal(Protocol):
    """Where cases are kept, before and after each is carried out."""

    def add(self, case: Case) -> None: ...

    def amend(self, case: Case) -> None: ...


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
    cluster: Cluster
    journal: Journal
    may_act: Callable[[], bool]
    clock: Callable[[], datetime]
    wait: Callable[[float], object]

    def demote(self, intent: Intent, case_id: str, author: str, reason: str) -> Case:
        """The case as it ended. What the order was is on record before it is changed.

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
        )
        against = refusals(intent, situation, case.began)
        if against:
            words = tuple(one.words for one in against)
            case = replace(case, outcome=Outcome.REFUSED, ended=case.began, words=words)
            self.journal.add(case)
            return case
        case = replace(case, orders=demoted(situation.layout, intent.broker_id))
        self.journal.add(case)
        try:
            self._may_go_on()
            self.cluster.reorder({place: order.after for place, order in case.orders.items()})
            self._elect_others(intent, case_id)
            self._verify(case_id, lambda layout: _not_demoted(layout, case))
        except (KafkaUnavailableError, _StoppedError) as error:
            return self._ended(replace(case, outcome=Outcome.FAILED, words=(str(error),)))
        return self._ended(replace(case, outcome=Outcome.DONE))

    def undo(self, case: Case, reason: str | None) -> Case:
        """The case as it is then: undone, or failed and still to be undone. ``reason``: a person's own.

        Raises UndoRefusedError, and KafkaUnavailableError where nothing could be read: nothing was done then.
        """
        situation = self.observe(case.case_id)
        back = restored(situation.layout, case.orders)
        against = undo_refusals(case, back, situation, reason)
        if against:
            raise UndoRefusedError(against)
        words = tuple(f"{place.topic}-{place.partition} {why}" for place, why in sorted(back.kept.items()))
        try:
            self._may_go_on()
            self.cluster.reorder(back.orders)
            self.cluster.elect(back.led_by(case.broker_id))
            self._verify(case.case_id, lambda now: _not_restored(now, case.broker_id, back.orders))
        except (KafkaUnavailableError, _StoppedError) as error:
            return self._ended(replace(case, outcome=Outcome.FAILED, words=(str(error), *words)))
        return self._ended(replace(case, outcome=Outcome.UNDONE, ended=self.clock(), words=words))

    def _elect_others(self, intent: Intent, case_id: str) -> None:
        situation = self.observe(case_id)
        led = situation.layout.led_by(intent.broker_id)
        if not led:
            return
        against = refusals(intent, situation, self.clock())
        if against:
            raise _StoppedError("; ".join(one.words for one in against))
        self._may_go_on()
        self.cluster.elect(sorted(led))

    def _verify(self, case_id: str, wrong: Callable[[Layout], str]) -> None:
        until = self.clock() + _SETTLES
        while found := wrong(self.observe(case_id).layout):
            if self.clock() >= until:
                raise _StoppedError(f"{found} after {_SETTLES.total_seconds():.0f} s")
            self.wait(_LOOK_EVERY_S)

    def _may_go_on(self) -> None:
        if not self.may_act():
            raise _StoppedError("somebody else may be acting: this one has lost its seat")

    def _ended(self, case: Case) -> Case:
        self.journal.amend(case)
        return case


def _not_demoted(layout: Layout, case: Case) -> str:
    """What is still to come; nothing once all is as wanted."""
    led = layout.led_by(case.broker_id)
    if led:
        return f"broker {case.broker_id} leads {len(led)} partitions"
    return _not_ordered(layout, {place: order.after for place, order in case.orders.items()})


def _not_restored(layout: Layout, broker_id: int, orders: Mapping[Place, Sequence[int]]) -> str:
    wanted = [place for place, replicas in orders.items() if replicas[0] == broker_id]
    missed = [place for place in wanted if layout.partitions[place].leader != broker_id]
    if missed:
        return f"broker {broker_id} does not lead {len(missed)} of {len(wanted)} partitions again"
    return _not_ordered(layout, orders)


def _not_ordered(layout: Layout, orders: Mapping[Place, Sequence[int]]) -> str:
    other = [place for place, replicas in orders.items() if _order(layout, place) != tuple(replicas)]
    return f"{len(other)} partitions have another order of replicas" if other else ""


def _order(layout: Layout, place: Place) -> Sequence[int]:
    known = layout.partitions.get(place)
    return known.replicas if known else ()
