"""Reading a situation, all of it anew each time."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime

from fleetgauge_core.detection import Finding
from fleetgauge_core.detection.record_reader import LatestFindingTimes, decode_finding
from fleetgauge_core.fleet import Cluster, Fleet, Telemetry
from fleetgauge_core.kafka import ConsumerGroups, read_cluster_metadata, read_topic_values
from fleetgauge_core.lake.corrections import CorrectionStore
from fleetgauge_operations.corrections.planned_maintenance import planned
from fleetgauge_operations.mitigation.record import Record
from fleetgauge_operations.mitigation.situation import Situation, sick_now, well_since


def findings_of(telemetry: Telemetry) -> tuple[Finding, ...]:
    """All that watches have found, in order, as long as it is kept. Raises KafkaUnavailableError."""
    name, changed = telemetry.topics.health_events.name, LatestFindingTimes()
    values = read_topic_values(telemetry.access, name, "fleetgauge-mitigate")
    return tuple(
        found for value in values if (found := decode_finding(value)) and changed.record_if_newer(found)
    )


@dataclass(frozen=True, slots=True)
class Look:
    """Where the parts of a situation are read."""

    fleet: Fleet
    telemetry: Telemetry
    record: Record
    corrections: CorrectionStore
    clock: Callable[[], datetime]

    def at(self, cluster: Cluster, findings: Sequence[Finding], but: str | None = None) -> Situation:
        """Without the case ``but``. Raises KafkaUnavailableError, TableStoreError."""
        now = self.clock()
        said, plan = self.record.read(now), planned(self.corrections.rows(), self.fleet)
        return Situation(
            layout=read_cluster_metadata(cluster.access),
            sick=sick_now(findings, cluster.id),
            cases=tuple(case for case in said.cases if case.cluster_id == cluster.id and case.case_id != but),
            well_since=well_since(findings, cluster.id),
            modes=cluster.mitigation.model_dump(),
            can_restart=bool(cluster.restart),
            rolling=cluster.id in said.rolling,
            planned=plan.out(cluster.id, now),
            watched=self._is_watched(),
        )

    def _is_watched(self) -> bool:
        """A watch that is killed or hangs loses its place in its group within seconds."""
        group = self.telemetry.topics.watch_state.name
        groups = ConsumerGroups(self.telemetry.access, "fleetgauge-mitigate")
        groups.start()
        try:
            return group in groups.find_groups_with_members([group])
        finally:
            groups.stop()

    def again(self, cluster: Cluster, but: str) -> Situation:
        """With what has been found by now."""
        return self.at(cluster, findings_of(self.telemetry), but)
