"""The objects that all commands of `fleetgauge mitigate` use: fleet, observer, executor and notifier."""

import time
import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path

from fleetgauge_core.detection import Finding
from fleetgauge_core.fleet import Cluster, Fleet, load_fleet, require_cluster, require_telemetry
from fleetgauge_core.kafka import LeadershipStatus, read_cluster_metadata
from fleetgauge_core.lake.corrections import CorrectionStore
from fleetgauge_core.runtime.steady_clock import read_wall_clock
from fleetgauge_operations.actions.audit_log import AuditLog
from fleetgauge_operations.actions.case_notifier import CaseNotifier
from fleetgauge_operations.actions.executor import ActionExecutor
from fleetgauge_operations.actions.leadership import hold_cluster_leadership
from fleetgauge_operations.actions.observer import ClusterObserver, read_findings
from fleetgauge_operations.actions.plan.case import ActionCase
from fleetgauge_operations.actions.plan.snapshot import ClusterSnapshot
from fleetgauge_operations.mitigation.cluster_control import KafkaClusterControl
from fleetgauge_operations.mitigation.control_loop import ControlLoop
from fleetgauge_operations.mitigation.plan.limits import DEFAULT_LIMITS, MitigationLimits
from fleetgauge_operations.mitigation.plan.rules import build_rules
from fleetgauge_operations.mitigation.steps import build_steps
from fleetgauge_operations.notify.notification import Notification
from fleetgauge_operations.notify.outboxes import Outboxes, notify_now

#: Validity of an alert; longer than a restart, during which its case fires no alert.
_ALERT_VALIDITY = timedelta(minutes=30)


@dataclass(frozen=True, slots=True)
class MitigationContext:
    """A fleet, the observer of its clusters, and the path of its file for error messages."""

    fleet: Fleet
    observer: ClusterObserver
    config: Path
    clock: Callable[[], datetime]
    wait: Callable[[float], object]

    def find_cluster(self, cluster_id: str) -> Cluster:
        """Return a cluster by its ID. Raises: FleetFileError if the fleet file has no such cluster."""
        return require_cluster(self.fleet, self.config, cluster_id)

    def read_findings(self) -> Sequence[Finding]:
        """Return all retained findings in order of time. Raises: KafkaUnavailableError."""
        return read_findings(self.observer.telemetry)

    def read_cases(self) -> Sequence[ActionCase]:
        """Return all cases by start time. Raises: TableStoreError."""
        return self.observer.audit_log.read_entries().cases

    @contextmanager
    def open_executor(
        self, cluster: Cluster, limits: MitigationLimits = DEFAULT_LIMITS
    ) -> Iterator[ActionExecutor]:
        """Hold the leadership of a cluster's actions, and yield the executor for it.

        Raises: KafkaUnavailableError; LeadershipTakenError if another process acts on the cluster.
        """
        with hold_cluster_leadership(self.observer.telemetry, cluster.id) as leadership:
            control = KafkaClusterControl(cluster, self.observer.telemetry, self.clock)
            yield ActionExecutor(
                observe=lambda case_id: self.observer.read_latest_snapshot(cluster, case_id),
                read_metadata=lambda: read_cluster_metadata(cluster.access),
                rules=build_rules(limits),
                steps=build_steps(control, limits),
                case_writer=self.observer.audit_log,
                is_leader=lambda: leadership.confirm() is LeadershipStatus.HELD,
                clock=self.clock,
                elapsed_s=time.monotonic,
                wait=self.wait,
            )

    def create_control_loops(self, limits: MitigationLimits = DEFAULT_LIMITS) -> Mapping[str, ControlLoop]:
        """Return the control loop of each cluster, by its ID."""
        return {
            cluster.id: ControlLoop(
                _ControlledCluster(self, cluster, limits), self.clock, create_case_id, limits
            )
            for cluster in self.fleet.clusters
        }

    def notify(self, notification: Notification) -> list[str]:
        """Notify all receivers while an operator waits; return the hosts of those that accepted it."""
        return notify_now(self.fleet.notifiers, notification, self.clock, time.monotonic, self.wait)

    def create_case_notifier(self) -> CaseNotifier:
        """Return the notifier of `mitigate run`, which retries for as long as the process runs."""
        outboxes = Outboxes(self.fleet.notifiers, self.clock, time.monotonic, _ALERT_VALIDITY)
        return CaseNotifier(self.observer.audit_log, outboxes, self.clock)


@dataclass(frozen=True, slots=True)
class _ControlledCluster:
    """A cluster of the fleet, as control_loop.ClusterUnderControl."""

    context: MitigationContext
    cluster: Cluster
    limits: MitigationLimits

    @property
    def cluster_id(self) -> str:
        return self.cluster.id

    def read_snapshot(self, findings: Sequence[Finding]) -> ClusterSnapshot:
        return self.context.observer.read_snapshot(self.cluster, findings)

    def open_executor(self) -> AbstractContextManager[ActionExecutor]:
        return self.context.open_executor(self.cluster, self.limits)


def open_mitigation(config: Path, location: str | None) -> MitigationContext:
    """Read a fleet file; ``location`` is the lake if it is not the file's. Raises: FleetFileError."""
    return create_context(load_fleet(config), config, location)


def create_context(
    fleet: Fleet, config: Path, location: str | None, clock: Callable[[], datetime] = read_wall_clock
) -> MitigationContext:
    """Return the context of a fleet that was read from ``config``. Raises: FleetFileError."""
    telemetry = require_telemetry(fleet, config)
    lake = location or fleet.lake
    observer = ClusterObserver(fleet, telemetry, AuditLog(lake), CorrectionStore(lake), clock)
    return MitigationContext(fleet, observer, config, clock, time.sleep)


def create_case_id() -> str:
    """Return a new random case ID of 12 hexadecimal digits."""
    return uuid.uuid4().hex[:12]
