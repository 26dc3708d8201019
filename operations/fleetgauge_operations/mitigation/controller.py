"""`fleetgauge mitigate run`: the control loops of all clusters, and the notifications of their cases."""

import logging
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Protocol

from fleetgauge_core.detection import Finding
from fleetgauge_core.kafka import KafkaUnavailableError
from fleetgauge_core.lake.table_store import TableStoreError
from fleetgauge_core.runtime.health_server import ProcessHealth
from fleetgauge_core.runtime.shutdown import ShutdownFlag
from fleetgauge_core.tables import ActionOutcome
from fleetgauge_operations.actions.case_notifier import CaseNotifier
from fleetgauge_operations.actions.leadership import LeadershipTakenError
from fleetgauge_operations.actions.plan.case import ActionCase
from fleetgauge_operations.actions.plan.snapshot import find_active_alerts
from fleetgauge_operations.mitigation.control_loop import ControlLoop
from fleetgauge_operations.mitigation.plan.policy import AUTHOR

_log = logging.getLogger("fleetgauge.mitigate")

_WAIT_S = 0.5
#: 15 s between two rounds; no action is applied before its alert is 20 s old.
_WAITS_PER_ROUND = 30
#: Clusters on which actions run at the same time; each has a thread and a consumer group member.
_MAX_CONCURRENT_CLUSTERS = 16
#: Longer than any action: a restart takes up to 5 minutes, and its verification as long again.
_MAX_STEP = timedelta(minutes=15)


class FleetReader(Protocol):
    """What a round reads of the whole fleet."""

    def read_findings(self) -> Sequence[Finding]:
        """Return all retained findings in order of time. Raises: KafkaUnavailableError."""

    def read_cases(self) -> Sequence[ActionCase]:
        """Return all cases by start time. Raises: TableStoreError."""


@dataclass(frozen=True, slots=True)
class _RunningStep:
    """A control loop that takes a step in a thread of its own."""

    future: Future[ActionCase | None]
    started: datetime


@dataclass(slots=True)
class MitigationController:
    """Checks all clusters every 15 s; a step of one cluster delays no other cluster.

    ``loops`` are by cluster ID. ``show`` is called with every case that is new or has changed.
    """

    fleet: FleetReader
    loops: Mapping[str, ControlLoop]
    notifier: CaseNotifier
    health: ProcessHealth
    show: Callable[[ActionCase], None]
    clock: Callable[[], datetime]
    _running: dict[str, _RunningStep] = field(default_factory=dict, init=False)
    _changed_cases: list[ActionCase] = field(default_factory=list, init=False)

    def run(self, shutdown: ShutdownFlag) -> tuple[ActionCase, ...]:
        """Run until shutdown; return the cases that were new or changed, as they were then.

        Steps that are running at shutdown are completed, because an interrupted action fails its case.
        """
        with ThreadPoolExecutor(_MAX_CONCURRENT_CLUSTERS, thread_name_prefix="mitigate") as workers:
            while not shutdown.is_set():
                self._record_heartbeat()
                try:
                    self._start_round(workers)
                    self.health.mark_ready()
                except (KafkaUnavailableError, TableStoreError) as error:
                    _log.warning("findings or ops/actions cannot be read: %s", error)
                self._notify()
                for _ in range(_WAITS_PER_ROUND):
                    if shutdown.wait(_WAIT_S):
                        break
                    self._record_heartbeat()
                    if self._collect() or self.notifier.is_due:
                        self._notify()
        self._collect()
        self._notify()
        return tuple(self._changed_cases)

    def _start_round(self, workers: ThreadPoolExecutor) -> None:
        """Start a step for each cluster with work that has none running."""
        findings = self.fleet.read_findings()
        alerts = {cluster_id: find_active_alerts(findings, cluster_id) for cluster_id in self.loops}
        try:
            cases = self.fleet.read_cases()
        except TableStoreError as error:
            for cluster_id, active in alerts.items():
                if any(alert.broker_id is not None for alert in active):
                    self.notifier.report_outage(cluster_id, str(error))
            raise
        with_pending_cases = {case.cluster_id for case in cases if _is_pending(case)}
        for cluster_id, loop in self.loops.items():
            has_work = alerts[cluster_id] or cluster_id in with_pending_cases
            has_work = has_work or self.notifier.has_outage(cluster_id)
            if has_work and cluster_id not in self._running:
                future = workers.submit(loop.take_next_step, findings)
                self._running[cluster_id] = _RunningStep(future, self.clock())

    def _collect(self) -> bool:
        """Take the results of completed steps; return whether there were any."""
        completed = [cluster_id for cluster_id, step in self._running.items() if step.future.done()]
        for cluster_id in completed:
            future = self._running.pop(cluster_id).future
            try:
                case = future.result()
            except (KafkaUnavailableError, LeadershipTakenError) as error:
                _log.warning("%s: no action is taken: %s", cluster_id, error)
            except TableStoreError as error:
                _log.warning("%s: no action is taken: %s", cluster_id, error)
                self.notifier.report_outage(cluster_id, str(error))
            else:
                self.notifier.end_outage(cluster_id)
                if case:
                    self._changed_cases.append(case)
                    self.show(case)
        return bool(completed)

    def _notify(self) -> None:
        try:
            self.notifier.notify(self.fleet.read_cases())
        except TableStoreError as error:
            _log.warning("ops/actions cannot be read: %s", error)
        self.notifier.send()

    def _record_heartbeat(self) -> None:
        """Record that this process works, unless a step takes longer than any action."""
        now = self.clock()
        if all(now - step.started < _MAX_STEP for step in self._running.values()):
            self.health.record_heartbeat()


def _is_pending(case: ActionCase) -> bool:
    """Return whether the control loop of the case's cluster may have to continue the case."""
    return case.ended is None and (
        case.author == AUTHOR or case.outcome is ActionOutcome.BEGUN or case.undone_since is not None
    )
