"""The objects that all commands of `fleetgauge mitigate` use: fleet, observer, executor and notifier."""

import time
import uuid
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

from fleetgauge_core.fleet import (
    Cluster,
    Fleet,
    FleetFileError,
    load_fleet,
)
from fleetgauge_core.kafka import LeadershipStatus
from fleetgauge_core.lake.corrections import CorrectionStore
from fleetgauge_core.runtime.cli import InputError
from fleetgauge_operations.mitigation.audit_log import AuditLog
from fleetgauge_operations.mitigation.case import MitigationCase
from fleetgauge_operations.mitigation.case_notifier import CaseNotifier
from fleetgauge_operations.mitigation.executor import ActionExecutor
from fleetgauge_operations.mitigation.kafka_cluster import KafkaClusterControl, hold_mitigation_leadership
from fleetgauge_operations.mitigation.limits import DEFAULT_LIMITS, Limits
from fleetgauge_operations.mitigation.observer import ClusterObserver
from fleetgauge_operations.notify.notification import Notification
from fleetgauge_operations.notify.outboxes import Outboxes, notify_now

#: Validity of an alert; longer than a round that restarts brokers, in which no alert is sent again.
_ALERT_VALIDITY = timedelta(minutes=30)


@dataclass(frozen=True, slots=True)
class MitigationContext:
    """A fleet, the observer of its clusters, and the path of its file for error messages."""

    fleet: Fleet
    observer: ClusterObserver
    config: Path

    def find_cluster(self, cluster_id: str) -> Cluster:
        """Return a cluster by its ID. Raises: InputError if the fleet file has no such cluster."""
        clusters = {cluster.id: cluster for cluster in self.fleet.clusters}
        if cluster_id not in clusters:
            known = ", ".join(list(clusters)[:10])
            raise InputError(f"{self.config}: no cluster {cluster_id} (known: {known})")
        return clusters[cluster_id]

    @contextmanager
    def open_executor(self, cluster: Cluster, limits: Limits = DEFAULT_LIMITS) -> Iterator[ActionExecutor]:
        """Hold the mitigation leadership, and yield the executor for a cluster.

        Raises: KafkaUnavailableError; LeadershipTakenError if another process acts.
        """
        with hold_mitigation_leadership(self.observer.telemetry) as leadership:
            yield ActionExecutor(
                observe=lambda case_id: self.observer.read_latest_snapshot(cluster, case_id),
                cluster=KafkaClusterControl(cluster, self.observer.telemetry, utc_now),
                case_writer=self.observer.audit_log,
                is_leader=lambda: leadership.confirm() is LeadershipStatus.HELD,
                clock=utc_now,
                wait=time.sleep,
                limits=limits,
            )

    def notify(self, notification: Notification) -> list[str]:
        """Notify all receivers while an operator waits; return the hosts of those that accepted it."""
        return notify_now(self.fleet.notifiers, notification, utc_now, time.monotonic, time.sleep)

    def create_case_notifier(self) -> CaseNotifier:
        """Return the notifier of `mitigate run`, which retries for as long as the process runs."""
        outboxes = Outboxes(self.fleet.notifiers, utc_now, time.monotonic, _ALERT_VALIDITY)
        return CaseNotifier(
            _AuditedCases(self.observer.audit_log),
            outboxes,
            lambda: hold_mitigation_leadership(self.observer.telemetry),
            utc_now,
        )


@dataclass(frozen=True, slots=True)
class _AuditedCases:
    """The cases of the audit log, as case_notifier.CaseStore."""

    audit_log: AuditLog

    def read_cases(self) -> Iterable[MitigationCase]:
        return self.audit_log.read_entries(utc_now()).cases

    def update_case(self, case: MitigationCase) -> None:
        self.audit_log.update_case(case)


def open_mitigation(config: Path, location: str | None) -> MitigationContext:
    """Read a fleet file; ``location`` is the lake if it is not the file's. Raises: InputError."""
    fleet = read_fleet_file(config)
    if fleet.telemetry is None:
        raise InputError(
            f"{config}: telemetry.bootstrap is missing; mitigate reads the watch's findings from there"
        )
    lake = location or fleet.lake
    observer = ClusterObserver(fleet, fleet.telemetry, AuditLog(lake), CorrectionStore(lake), utc_now)
    return MitigationContext(fleet, observer, config)


def read_fleet_file(config: Path) -> Fleet:
    """Return the fleet of a file. Raises: InputError if it is missing or invalid."""
    try:
        return load_fleet(config)
    except FleetFileError as error:
        raise InputError(str(error)) from error


def create_case_id() -> str:
    """Return a new random case ID of 12 hexadecimal digits."""
    return uuid.uuid4().hex[:12]


def utc_now() -> datetime:
    """Return the present time as an aware UTC datetime."""
    return datetime.now(UTC)
