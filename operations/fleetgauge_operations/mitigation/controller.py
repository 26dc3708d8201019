"""The control loop of `fleetgauge mitigate run`: observe, decide by the policy, act, notify."""

import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from fleetgauge_core.detection import Finding
from fleetgauge_core.fleet import Cluster
from fleetgauge_core.kafka import KafkaUnavailableError
from fleetgauge_core.lake.table_store import TableStoreError
from fleetgauge_core.runtime.health_server import ProcessHealth
from fleetgauge_core.runtime.shutdown import ShutdownFlag
from fleetgauge_operations.mitigation.case import Action, CaseOutcome, MitigationCase
from fleetgauge_operations.mitigation.case_notifier import CaseNotifier
from fleetgauge_operations.mitigation.context import MitigationContext, create_case_id, utc_now
from fleetgauge_operations.mitigation.executor import ActionExecutor, UndoRefusedError
from fleetgauge_operations.mitigation.kafka_cluster import LeadershipTakenError
from fleetgauge_operations.mitigation.limits import DEFAULT_LIMITS, Limits
from fleetgauge_operations.mitigation.observer import read_findings
from fleetgauge_operations.mitigation.policy import (
    AUTHOR,
    ApplyAction,
    FailCase,
    MitigationPolicy,
    NotifyOperator,
    PolicyStep,
    ResolveCase,
    UndoAction,
)
from fleetgauge_operations.mitigation.snapshot import ClusterSnapshot, find_active_alerts

_log = logging.getLogger("fleetgauge.mitigate")

_WAIT_S = 0.5
#: 15 s between two rounds; no action is applied before its alert is 20 s old.
_WAITS_PER_ROUND = 30


@dataclass(slots=True)
class MitigationController:
    """Checks all clusters every 15 s; ``show`` is called with every case that is new or has changed."""

    context: MitigationContext
    health: ProcessHealth
    show: Callable[[MitigationCase], None]
    notifier: CaseNotifier
    limits: Limits = DEFAULT_LIMITS

    def run(self, shutdown: ShutdownFlag) -> tuple[MitigationCase, ...]:
        """Run until shutdown; return the cases that were new or changed, as they were then."""
        changed_cases: list[MitigationCase] = []
        while not shutdown.is_set():
            self.health.record_heartbeat()
            try:
                changed_cases += self._run_round(shutdown)
                self.health.mark_ready()
            except (KafkaUnavailableError, TableStoreError) as error:
                _log.warning("findings or ops/actions cannot be read: %s", error)
            self.health.record_heartbeat()
            self.notifier.send()
            for _ in range(_WAITS_PER_ROUND):
                if shutdown.wait(_WAIT_S):
                    break
                if self.notifier.is_due:
                    self.notifier.send()
        return tuple(changed_cases)

    def _run_round(self, shutdown: ShutdownFlag) -> list[MitigationCase]:
        context = self.context
        findings = read_findings(context.observer.telemetry)
        alerts = {cluster.id: find_active_alerts(findings, cluster.id) for cluster in context.fleet.clusters}
        try:
            cases = self._read_cases()
        except TableStoreError as error:
            for cluster_id, active in alerts.items():
                if any(alert.broker_id is not None for alert in active):
                    self.notifier.report_outage(cluster_id, str(error))
            raise
        pending_cluster_ids = {
            case.cluster_id
            for case in cases
            if case.ended is None
            and (case.author == AUTHOR or case.outcome is CaseOutcome.BEGUN or case.undone_since)
        }
        changed_cases: list[MitigationCase] = []
        for cluster in context.fleet.clusters:
            if shutdown.is_set():
                break
            has_work = alerts[cluster.id] or cluster.id in pending_cluster_ids
            if not (has_work or self.notifier.has_outage(cluster.id)):
                continue
            # A restart takes minutes.
            self.health.record_heartbeat()
            try:
                case = self._handle_cluster(cluster, findings)
                self.notifier.end_outage(cluster.id)
                if case:
                    changed_cases.append(case)
                    self.notifier.notify(self._read_cases())
                    self.notifier.send()
            except (KafkaUnavailableError, LeadershipTakenError) as error:
                _log.warning("%s: no action is taken: %s", cluster.id, error)
            except TableStoreError as error:
                _log.warning("%s: no action is taken: %s", cluster.id, error)
                self.notifier.report_outage(cluster.id, str(error))
        for case in changed_cases:
            self.show(case)
        self.notifier.notify(self._read_cases())
        return changed_cases

    def _read_cases(self) -> Sequence[MitigationCase]:
        return self.context.observer.audit_log.read_entries(utc_now()).cases

    def _handle_cluster(self, cluster: Cluster, findings: Sequence[Finding]) -> MitigationCase | None:
        """Take the next step for a cluster; return its case, or None if there is none."""
        if not self._decide(cluster, self.context.observer.read_snapshot(cluster, findings)):
            return None
        with self.context.open_executor(cluster, self.limits) as executor:
            # Decided again, because the previous leader may have taken the same step.
            snapshot = executor.observe("")
            step = self._decide(cluster, snapshot)
            return self._take_step(step, executor, snapshot) if step else None

    def _decide(self, cluster: Cluster, snapshot: ClusterSnapshot) -> PolicyStep | None:
        return MitigationPolicy(cluster.id, snapshot, utc_now(), self.limits).decide()

    def _take_step(
        self, step: PolicyStep, executor: ActionExecutor, snapshot: ClusterSnapshot
    ) -> MitigationCase:
        audit_log = self.context.observer.audit_log
        match step:
            case ApplyAction(request, reason):
                case = executor.apply(request, create_case_id(), AUTHOR, reason, notified=())
                if case.outcome is CaseOutcome.REFUSED:
                    # Open until its broker is healthy, as every refusal of the controller.
                    case = replace(case, ended=None)
                    audit_log.update_case(case)
            case FailCase(interrupted):
                words = (*interrupted.words, "interrupted")
                case = replace(interrupted, outcome=CaseOutcome.FAILED, words=words, told=())
                audit_log.update_case(case)
            case NotifyOperator():
                case = _create_notified_case(step, snapshot)
                audit_log.add_case(case)
            case UndoAction(applied):
                case = _undo_unless_refused(applied, executor)
            case ResolveCase(notified):
                case = replace(notified, ended=utc_now(), told=())
                audit_log.update_case(case)
        return case


def _undo_unless_refused(case: MitigationCase, executor: ActionExecutor) -> MitigationCase:
    """Return the case after the undo; the case as it is if fail-safes refuse the undo."""
    try:
        return executor.undo(case, None)
    except UndoRefusedError as error:
        _log.info("case %s: not undone: %s", case.case_id, error)
        return case


def _create_notified_case(step: NotifyOperator, snapshot: ClusterSnapshot) -> MitigationCase:
    """Return a case that remains open until its broker is healthy."""
    request = step.request
    words = tuple(refusal.explanation for refusal in step.refusals)
    if not words and request.action is not Action.EVACUATE:
        command = (
            f"fleetgauge mitigate apply --cluster {request.cluster_id} --broker {request.broker_id} "
            f"--action {request.action} --execute"
        )
        words = (f"no fail-safe refuses the action: {command}",)
    return MitigationCase(
        case_id=create_case_id(),
        action=request.action,
        cluster_id=request.cluster_id,
        broker_id=request.broker_id,
        zone=snapshot.zone(request.broker_id),
        author=AUTHOR,
        reason=step.reason,
        began=utc_now(),
        outcome=step.outcome,
        against=tuple(refusal.reason for refusal in step.refusals),
        words=words,
        told=(),
    )
