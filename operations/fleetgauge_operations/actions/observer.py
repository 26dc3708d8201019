"""Reading of findings and of cluster snapshots; nothing is cached between two reads."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime

from fleetgauge_core.detection import Finding
from fleetgauge_core.detection.record_reader import LatestFindingTimes, decode_finding
from fleetgauge_core.fleet import Cluster, Fleet, Telemetry
from fleetgauge_core.kafka import ConsumerGroups, read_cluster_metadata, read_topic_values
from fleetgauge_core.lake.corrections import CorrectionStore
from fleetgauge_operations.actions.audit_log import AuditLog
from fleetgauge_operations.actions.plan.snapshot import (
    ClusterSnapshot,
    find_active_alerts,
    find_healthy_since,
)
from fleetgauge_operations.corrections.planned_maintenance import build_maintenance_plan

_CLIENT_ID = "fleetgauge-mitigate"


def read_findings(telemetry: Telemetry) -> tuple[Finding, ...]:
    """Return all retained findings of the fleet in order of time. Raises: KafkaUnavailableError."""
    latest_times = LatestFindingTimes()
    values = read_topic_values(telemetry.access, telemetry.topics.health_events.name, _CLIENT_ID)
    return tuple(
        finding
        for value in values
        if (finding := decode_finding(value)) and latest_times.record_if_newer(finding)
    )


@dataclass(frozen=True, slots=True)
class ClusterObserver:
    """Reads snapshots. All methods raise KafkaUnavailableError and TableStoreError."""

    fleet: Fleet
    telemetry: Telemetry
    audit_log: AuditLog
    corrections: CorrectionStore
    clock: Callable[[], datetime]

    def read_snapshot(
        self, cluster: Cluster, findings: Sequence[Finding], excluded_case_id: str | None = None
    ) -> ClusterSnapshot:
        """Return a snapshot of a cluster without the case of that ID."""
        now = self.clock()
        entries = self.audit_log.read_entries()
        rolling = self.audit_log.find_rolling_clusters(entries, now)
        plan = build_maintenance_plan(self.corrections.rows(), self.fleet)
        return ClusterSnapshot(
            metadata=read_cluster_metadata(cluster.access),
            alerts=find_active_alerts(findings, cluster.id),
            cases=tuple(
                case
                for case in entries.cases
                if case.cluster_id == cluster.id and case.case_id != excluded_case_id
            ),
            healthy_since=find_healthy_since(findings, cluster.id),
            modes=cluster.mitigation.model_dump(),
            has_restart_command=bool(cluster.restart),
            is_rolling=cluster.id in rolling,
            planned_broker_ids=plan.find_planned_brokers(cluster.id, now),
            is_watched=self._is_watched(),
        )

    def read_latest_snapshot(self, cluster: Cluster, excluded_case_id: str) -> ClusterSnapshot:
        """Return a snapshot with the latest findings, without the case of that ID."""
        return self.read_snapshot(cluster, read_findings(self.telemetry), excluded_case_id)

    def _is_watched(self) -> bool:
        """Return whether the watch's group has a member; a killed or hung watch is removed within seconds."""
        group = self.telemetry.topics.watch_state.name
        groups = ConsumerGroups(self.telemetry.access, _CLIENT_ID)
        groups.start()
        try:
            return group in groups.find_groups_with_members([group])
        finally:
            groups.stop()
