"""`fleetgauge mitigate run`: look, decide by duty, do it, until it is stopped."""

import logging
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta

from fleetgauge_core.detection import Finding
from fleetgauge_core.fleet import Cluster
from fleetgauge_core.kafka import KafkaUnavailableError
from fleetgauge_core.lake.table_store import TableStoreError
from fleetgauge_core.runtime.health_server import Vitals
from fleetgauge_core.runtime.shutdown import Stopping
from fleetgauge_operations.mitigation.case import Action, Case, Outcome
from fleetgauge_operations.mitigation.desk import Desk, new_case_id, now
from fleetgauge_operations.mitigation.duty import (
    AUTHOR,
    Duty,
    GiveUp,
    HandOver,
    Restore,
    Step,
    Treat,
    Withdraw,
)
from fleetgauge_operations.mitigation.hand import Hand, UndoRefusedError
from fleetgauge_operations.mitigation.limits import DEFAULT_LIMITS, Limits
from fleetgauge_operations.mitigation.live import SeatTakenError, only_hand
from fleetgauge_operations.mitigation.look import findings_of
from fleetgauge_operations.mitigation.news import News
from fleetgauge_operations.mitigation.situation import Situation, sick_now
from fleetgauge_operations.mitigation.standstill import StandStill
from fleetgauge_operations.notify.notification import Bulletin

_log = logging.getLogger("fleetgauge.mitigate")

_LISTEN_S = 0.5
#: Nothing is acted upon before it has been named for 20 s.
_LISTENS = 30
#: A receiver that is out stays so for a while, and who asks it holds the seat meanwhile.
_PAUSE = timedelta(minutes=5)
#: Then it is known otherwise, or has passed.
_TOLD_WITHIN = timedelta(days=1)


@dataclass(slots=True)
class OnDuty:
    """Every 15 s one look at all clusters. ``show`` is given every case that comes of it."""

    desk: Desk
    vitals: Vitals
    show: Callable[[Case], None]
    limits: Limits = DEFAULT_LIMITS
    _still: StandStill = field(default_factory=StandStill, init=False)
    _tells_again: datetime | None = field(default=None, init=False)
    """Not before then."""

    def run(self, stopping: Stopping) -> tuple[Case, ...]:
        """Until ``stopping`` is set; the cases that came of it, as they were then."""
        came: list[Case] = []
        while not stopping.is_set():
            self.vitals.beat()
            try:
                came += self._turn(stopping)
                self.vitals.ready()
            except (KafkaUnavailableError, TableStoreError) as error:
                _log.warning("nothing can be seen: %s", error)
            self._still.tell(self.desk.everybody(), self._told_of, now())
            for _ in range(_LISTENS):
                if stopping.wait(_LISTEN_S):
                    break
        return tuple(came)

    def _turn(self, stopping: Stopping) -> list[Case]:
        findings = findings_of(self.desk.look.telemetry)
        sick = {one.id: sick_now(findings, one.id) for one in self.desk.fleet.clusters}
        try:
            cases = self.desk.look.record.read(now()).cases
        except TableStoreError as error:
            for cluster_id, those in sick.items():
                if any(one.broker_id is not None for one in those):
                    self._still.found(cluster_id, str(error), now())
            raise
        open_ones = [case for case in cases if case.ended is None]
        own = {
            case.cluster_id
            for case in open_ones
            if case.author == AUTHOR or case.outcome is Outcome.BEGUN or case.undone_since
        }
        came: list[Case] = []
        for cluster in self.desk.fleet.clusters:
            if stopping.is_set():
                break
            if not (sick[cluster.id] or cluster.id in own or cluster.id in self._still):
                continue
            # A restart takes minutes.
            self.vitals.beat()
            try:
                came += self._see_to(cluster, findings)
                self._still.over(cluster.id, now())
            except (KafkaUnavailableError, SeatTakenError) as error:
                _log.warning("%s: nothing done: %s", cluster.id, error)
            except TableStoreError as error:
                _log.warning("%s: nothing done: %s", cluster.id, error)
                self._still.found(cluster.id, str(error), now())
        for case in came:
            self.show(case)
        # A receiver that is out must not hold up what is done.
        if any(map(self._is_untold, cases)) and (self._tells_again is None or now() >= self._tells_again):
            self._tells_again = None if self._tell_again() else now() + _PAUSE
        return came

    def _told_of(self, bulletin: Bulletin, but: Collection[str]) -> Sequence[str]:
        self.vitals.beat()
        return self.desk.tell(bulletin, but)

    def _see_to(self, cluster: Cluster, findings: Sequence[Finding]) -> list[Case]:
        if not self._due(cluster, self.desk.look.at(cluster, findings)):
            return []
        with self.desk.hand(cluster, self.limits) as hand:
            # Decided anew: whoever had the seat until now may have done just that.
            situation = hand.observe("")
            step = self._due(cluster, situation)
            return [self._take(step, hand, situation)] if step else []

    def _due(self, cluster: Cluster, situation: Situation) -> Step | None:
        return Duty(cluster.id, situation, now(), self.limits).next_step()

    def _take(self, step: Step, hand: Hand, situation: Situation) -> Case:
        match step:
            case Treat(intent, reason):
                case = hand.treat(intent, new_case_id(), AUTHOR, reason, told=())
                if case.outcome is Outcome.REFUSED:
                    # As one that is handed over: open until its broker is well.
                    case = replace(case, ended=None)
                    self.desk.look.record.amend(case)
            case GiveUp(before):
                words = (*before.words, "broken off")
                case = replace(before, outcome=Outcome.FAILED, words=words, told=())
                self.desk.look.record.amend(case)
            case HandOver():
                case = _handed_over(step, situation)
                self.desk.look.record.add(case)
            case Restore(before):
                case = self._restored(before, hand)
                if case is before:
                    return case
            case Withdraw(before):
                case = replace(before, ended=now(), told=())
                self.desk.look.record.amend(case)
        return self._tell(case)

    def _tell(self, case: Case) -> Case:
        """Who does not take it is told again, by whoever is on duty then."""
        over = not case.acted and case.ended is not None
        news = News.of(case, now(), over=over)
        known = case.told or ()
        case = replace(case, told=(*known, *self.desk.tell(news.bulletin, known)))
        if case.told != known:
            self.desk.look.record.amend(case)
        return case

    def _tell_again(self) -> bool:
        """Whether that reached anybody."""
        reached = False
        try:
            with only_hand(self.desk.look.telemetry):
                for case in filter(self._is_untold, self.desk.look.record.read(now()).cases):
                    self.vitals.beat()
                    reached |= self._tell(case).told != case.told
        except SeatTakenError as error:
            _log.warning("nobody told again: %s", error)
        return reached

    def _is_untold(self, case: Case) -> bool:
        if case.told is None or case.outcome is Outcome.BEGUN:
            return False
        # What has failed is somebody's until it is undone, however long ago it was begun.
        late = case.outcome is not Outcome.FAILED and now() - (case.ended or case.began) > _TOLD_WITHIN
        return not late and not self.desk.everybody() <= set(case.told)

    def _restored(self, case: Case, hand: Hand) -> Case:
        """The same where it may not be."""
        try:
            return hand.undo(case, None)
        except UndoRefusedError as error:
            _log.info("case %s: %s", case.case_id, error)
            return case


def _handed_over(step: HandOver, situation: Situation) -> Case:
    """Open until its broker is well."""
    intent = step.intent
    command = (
        f"fleetgauge mitigate apply --cluster {intent.cluster_id} --broker {intent.broker_id} "
        f"--action {intent.action} --execute"
    )
    words = tuple(one.words for one in step.against)
    if not words and intent.action is not Action.EVACUATE:
        words = (f"nothing forbids it: {command}",)
    return Case(
        case_id=new_case_id(),
        action=intent.action,
        cluster_id=intent.cluster_id,
        broker_id=intent.broker_id,
        zone=situation.zone(intent.broker_id),
        author=AUTHOR,
        reason=step.reason,
        began=now(),
        outcome=step.outcome,
        against=tuple(one.why for one in step.against),
        words=words,
        told=(),
    )
