"""`fleetgauge mitigate run`: look, decide by duty, do it, until it is stopped."""

import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from fleetgauge_core.detection import Finding
from fleetgauge_core.fleet import Cluster
from fleetgauge_core.kafka import KafkaUnavailableError
from fleetgauge_core.lake.table_store import TableStoreError
from fleetgauge_core.runtime.health_server import ProcessHealth
from fleetgauge_core.runtime.shutdown import ShutdownFlag
from fleetgauge_operations.mitigation.case import Action, Case, Outcome
from fleetgauge_operations.mitigation.case_notifier import CaseNotifier
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
from fleetgauge_operations.mitigation.live import SeatTakenError
from fleetgauge_operations.mitigation.look import findings_of
from fleetgauge_operations.mitigation.situation import Situation, sick_now

_log = logging.getLogger("fleetgauge.mitigate")

_LISTEN_S = 0.5
#: Nothing is acted upon before it has been named for 20 s.
_LISTENS = 30


@dataclass(slots=True)
class OnDuty:
    """Every 15 s one look at all clusters. ``show`` is given every case that comes of it."""

    desk: Desk
    health: ProcessHealth
    show: Callable[[Case], None]
    notifier: CaseNotifier
    limits: Limits = DEFAULT_LIMITS

    def run(self, shutdown: ShutdownFlag) -> tuple[Case, ...]:
        """Until ``shutdown`` is set; the cases that came of it, as they were then."""
        came: list[Case] = []
        while not shutdown.is_set():
            self.health.record_heartbeat()
            try:
                came += self._turn(shutdown)
                self.health.mark_ready()
            except (KafkaUnavailableError, TableStoreError) as error:
                _log.warning("nothing can be seen: %s", error)
            self.health.record_heartbeat()
            self.notifier.send()
            for _ in range(_LISTENS):
                if shutdown.wait(_LISTEN_S):
                    break
                if self.notifier.is_due:
                    self.notifier.send()
        return tuple(came)

    def _turn(self, shutdown: ShutdownFlag) -> list[Case]:
        findings = findings_of(self.desk.look.telemetry)
        sick = {one.id: sick_now(findings, one.id) for one in self.desk.fleet.clusters}
        try:
            cases = self.desk.look.record.read(now()).cases
        except TableStoreError as error:
            for cluster_id, those in sick.items():
                if any(one.broker_id is not None for one in those):
                    self.notifier.report_outage(cluster_id, str(error))
            raise
        open_ones = [case for case in cases if case.ended is None]
        own = {
            case.cluster_id
            for case in open_ones
            if case.author == AUTHOR or case.outcome is Outcome.BEGUN or case.undone_since
        }
        came: list[Case] = []
        for cluster in self.desk.fleet.clusters:
            if shutdown.is_set():
                break
            if not (sick[cluster.id] or cluster.id in own or self.notifier.has_outage(cluster.id)):
                continue
            # A restart takes minutes.
            self.health.record_heartbeat()
            try:
                of_cluster = self._see_to(cluster, findings)
                self.notifier.end_outage(cluster.id)
                if of_cluster:
                    came += of_cluster
                    self.notifier.notify(self.desk.look.record.read(now()).cases)
                    self.notifier.send()
            except (KafkaUnavailableError, SeatTakenError) as error:
                _log.warning("%s: nothing done: %s", cluster.id, error)
            except TableStoreError as error:
                _log.warning("%s: nothing done: %s", cluster.id, error)
                self.notifier.report_outage(cluster.id, str(error))
        for case in came:
            self.show(case)
        self.notifier.notify(self.desk.look.record.read(now()).cases)
        return came

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
        return case

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
