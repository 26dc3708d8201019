"""`fleetgauge mitigate run`: the control loops of all clusters, and the notifications of their cases."""

import logging
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from dataclasses import dataclass, field
from typing import Protocol

from fleetgauge_core.detection import Finding
from fleetgauge_core.errors import OperationalError
from fleetgauge_core.lake.table_store import TableStoreError
from fleetgauge_core.runtime.health_server import ProcessHealth
from fleetgauge_core.runtime.shutdown import ShutdownFlag
from fleetgauge_core.runtime.supervision import request_shutdown_on_error
from fleetgauge_core.tables import ActionOutcome
from fleetgauge_operations.actions.case_notifier import CaseNotifier
from fleetgauge_operations.actions.plan.case import ActionCase
from fleetgauge_operations.actions.plan.snapshot import find_active_alerts
from fleetgauge_operations.mitigation.control_loop import ControlLoop
from fleetgauge_operations.mitigation.plan.policy import AUTHOR
from fleetgauge_operations.mitigation.plan.rules import build_rules

_log = logging.getLogger("fleetgauge.mitigate")

_WAIT_S = 0.5
#: 15 s between two rounds; no action is applied before its alert is 20 s old.
_WAITS_PER_ROUND = 30
#: 3 s while an action stands from which clients may suffer at any time.
_WAITS_WHILE_ONE_STANDS = 6
#: Clusters on which actions run at the same time; each has a thread and a consumer group member.
_MAX_CONCURRENT_CLUSTERS = 16
#: A step makes progress at least every minute, except while a restart command runs, for 5 minutes at most.
_MAX_SILENCE_S = 15 * 60.0
_KINDS_WITH_HARM = frozenset(kind for kind, rules in build_rules().items() if rules.find_harm)


class FleetReader(Protocol):
    """What a round reads of the whole fleet."""

    def read_findings(self) -> Sequence[Finding]:
        """Return all retained findings in order of time. Raises: KafkaUnavailableError."""

    def read_cases(self) -> Sequence[ActionCase]:
        """Return all cases by start time. Raises: TableStoreError."""


@dataclass(slots=True)
class _RunningStep:
    """A step that a control loop takes in another thread, and when it last made progress."""

    loop: ControlLoop
    findings: Sequence[Finding]
    elapsed_s: Callable[[], float]
    progressed_at_s: float | None = None
    """None until a thread begins with the step."""

    def take(self) -> ActionCase | None:
        """Take the step."""
        self._report_progress()
        return self.loop.take_next_step(self.findings, self._report_progress)

    def is_stuck(self) -> bool:
        """Return whether the step was begun, and has made no progress for too long."""
        return self.progressed_at_s is not None and self.elapsed_s() - self.progressed_at_s > _MAX_SILENCE_S

    def _report_progress(self) -> None:
        self.progressed_at_s = self.elapsed_s()


@dataclass(slots=True)
class MitigationController:
    """Checks all clusters every 15 s; a step of one cluster delays no other cluster.

    ``loops`` are by cluster ID. ``report_faults`` is called in each round, ``show`` with every case that is
    new or has changed. ``elapsed_s`` reads a monotonic clock.
    """

    fleet: FleetReader
    loops: Mapping[str, ControlLoop]
    notifier: CaseNotifier
    report_faults: Callable[[], None]
    health: ProcessHealth
    show: Callable[[ActionCase], None]
    elapsed_s: Callable[[], float]
    _steps: dict[str, _RunningStep] = field(default_factory=dict, init=False)
    _futures: dict[str, Future[ActionCase | None]] = field(default_factory=dict, init=False)
    _changed_cases: list[ActionCase] = field(default_factory=list, init=False)

    def run(self, shutdown: ShutdownFlag) -> tuple[ActionCase, ...]:
        """Run until shutdown; return the cases that were new or changed, as they were then.

        Steps that are running at shutdown are completed, because an interrupted action fails its case; no
        further step begins.
        """
        workers = ThreadPoolExecutor(_MAX_CONCURRENT_CLUSTERS, thread_name_prefix="mitigate")
        try:
            with request_shutdown_on_error(shutdown):
                while not shutdown.is_set():
                    self._take_round(workers, shutdown)
        finally:
            workers.shutdown(wait=False, cancel_futures=True)
            self._drain()
        return tuple(self._changed_cases)

    def _take_round(self, workers: ThreadPoolExecutor, shutdown: ShutdownFlag) -> None:
        """Start the steps of a round, and collect and notify until the next one."""
        self._record_heartbeat()
        self.report_faults()
        waits = _WAITS_PER_ROUND
        try:
            if self._start_round(workers):
                waits = _WAITS_WHILE_ONE_STANDS
            self.health.mark_ready()
        except OperationalError as error:
            _log.warning("findings or ops/actions cannot be read: %s", error)
        self._notify()
        for _ in range(waits):
            if shutdown.wait(_WAIT_S):
                break
            self._record_heartbeat()
            if self._collect() or self.notifier.is_due:
                self._notify()

    def _start_round(self, workers: ThreadPoolExecutor) -> bool:
        """Start a step for each cluster with work that has none running.

        Return whether an action stands that has to be judged again soon.
        """
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
            if has_work and cluster_id not in self._futures:
                step = self._steps[cluster_id] = _RunningStep(loop, findings, self.elapsed_s)
                self._futures[cluster_id] = workers.submit(step.take)
        return any(_stands(case) for case in cases if case.cluster_id in self.loops)

    def _collect(self) -> bool:
        """Take the results of completed steps; return whether there were any."""
        completed = [cluster_id for cluster_id, future in self._futures.items() if future.done()]
        for cluster_id in completed:
            del self._steps[cluster_id]
            self._take_result(cluster_id, self._futures.pop(cluster_id))
        return bool(completed)

    def _take_result(self, cluster_id: str, future: Future[ActionCase | None]) -> None:
        if future.cancelled():
            return
        try:
            case = future.result()
        except TableStoreError as error:
            _log.warning("%s: no action is taken: %s", cluster_id, error)
            self.notifier.report_outage(cluster_id, str(error))
        except OperationalError as error:
            _log.warning("%s: no action is taken: %s", cluster_id, error)
        except Exception:
            # A fault of this program on one cluster must not stop the actions on all others.
            _log.exception("%s: the step failed; it is tried again in the next round", cluster_id)
        else:
            self.notifier.end_outage(cluster_id)
            if case:
                self._changed_cases.append(case)
                self.show(case)

    def _drain(self) -> None:
        """Complete the running steps, and notify of their cases."""
        while self._futures:
            self._record_heartbeat()
            wait(self._futures.values(), _WAIT_S, FIRST_COMPLETED)
            self._collect()
        self._notify()

    def _notify(self) -> None:
        try:
            self.notifier.notify(self.fleet.read_cases())
        except TableStoreError as error:
            _log.warning("ops/actions cannot be read: %s", error)
        self.notifier.send()

    def _record_heartbeat(self) -> None:
        """Record that this process works, unless a step is stuck."""
        if not any(step.is_stuck() for step in self._steps.values()):
            self.health.record_heartbeat()


def _is_pending(case: ActionCase) -> bool:
    """Return whether the control loop of the case's cluster may have to continue the case."""
    return case.ended is None and (
        case.author == AUTHOR
        or case.outcome is ActionOutcome.BEGUN
        or case.undone_since is not None
        or _stands(case)
    )


def _stands(case: ActionCase) -> bool:
    """Return whether clients may suffer from an action that was applied, if only in part, and not undone."""
    return case.outcome is not ActionOutcome.BEGUN and case.is_open and case.kind in _KINDS_WITH_HARM
