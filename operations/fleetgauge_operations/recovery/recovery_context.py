"""The clients of all clusters, mirrors and groups of a fleet file that `fleetgauge recover` works with."""

import time
import uuid
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from fleetgauge_core.fleet import ClusterAccess, Fleet, load_fleet
from fleetgauge_core.kafka import KafkaUnavailableError, ReportTopicChange, log_topic_change
from fleetgauge_core.kafka.credentials_monitor import require_readable_credentials
from fleetgauge_core.runtime.cli import InputError
from fleetgauge_operations.recovery.checkpoint_store import CheckpointStore
from fleetgauge_operations.recovery.drill import DrillExecutor, DrillReport, GroupDrill
from fleetgauge_operations.recovery.group_offset_sync import GroupOffsetSync, GroupSyncPlan
from fleetgauge_operations.recovery.plan.forecast import GroupForecast, NotReadyReason
from fleetgauge_operations.recovery.plan.sync_decision import ClusterPair
from fleetgauge_operations.recovery.sync_collector import SyncCollector
from fleetgauge_operations.recovery.tracers.tracer_loop import TracerLoop


def now_ms() -> int:
    """Return the current time in milliseconds since the epoch."""
    return time.time_ns() // 1_000_000


@dataclass(frozen=True, slots=True)
class SyncPlans:
    """The plans of all groups; ``unavailable`` has a line for each cluster pair that could not be read."""

    groups: tuple[GroupSyncPlan, ...]
    unavailable: tuple[str, ...]

    @property
    def are_ok(self) -> bool:
        """Whether all clusters could be read, and all groups can resume."""
        return not self.unavailable and all(plan.is_ok for plan in self.groups)


@dataclass(frozen=True, slots=True)
class RecoveryContext:
    """The started clients of one fleet."""

    fleet: Fleet
    lake: str
    store: CheckpointStore
    collector: SyncCollector
    group_syncs: Sequence[GroupOffsetSync]

    def plan_groups(self, only: str | None, write: bool = False) -> SyncPlans:
        """Inspect the mirrors once, and plan the offsets of all groups, or of the group ``only``.

        With ``write`` the offsets are committed. New checkpoints are not stored: `recover run` does that.
        """
        self.collector.collect()
        plans: list[GroupSyncPlan] = []
        unavailable: list[str] = []
        for group_sync in self.group_syncs:
            try:
                for plan in group_sync.plan_groups(self.collector.state, only):
                    plans.append(group_sync.apply(plan) if write else plan)
            except KafkaUnavailableError as error:
                unavailable.append(f"{group_sync.pair.active} to {group_sync.pair.passive}: {error}")
        return SyncPlans(tuple(plans), tuple(unavailable))

    def run_drill(
        self, pair: ClusterPair, group_names: Sequence[str], execute: bool, author: str
    ) -> DrillReport:
        """Drill a failover of the named groups, or of all groups if none is named.

        A named group that has committed no offsets is reported as not ready.
        """
        self.collector.collect()
        at, state = datetime.now(UTC), self.collector.state
        drills: dict[str, GroupDrill] = {}
        for executor in (DrillExecutor(self.fleet, sync) for sync in self.group_syncs if sync.pair == pair):
            if execute:
                remaining = [name for name in group_names if name not in drills]
                executed = (executor.drill_group(name, state, now_ms()) for name in remaining)
                drills |= {drill.forecast.group: drill for drill in executed if drill}
            else:
                forecasts = executor.forecast_groups(state, now_ms())
                drills |= {drill.forecast.group: drill for drill in forecasts}
        reasons = (NotReadyReason.NOTHING_COMMITTED.value,)
        groups = tuple(
            drills.get(name) or GroupDrill(GroupForecast(name, (), reasons)) for name in group_names or drills
        )
        return DrillReport(uuid.uuid4().hex[:12], at, pair.active, pair.passive, author, groups)


@contextmanager
def open_recovery(config: Path, location: str | None) -> Iterator[RecoveryContext]:
    """Start the clients of a fleet; ``location`` replaces the fleet file's lake.

    Raises: FleetFileError; InputError if there are no mirrors; CredentialsUnreadableError; TableStoreError.
    """
    fleet = load_fleet(config)
    require_readable_credentials(None, list_mirrored_accesses(fleet))
    with start_recovery(fleet, config, location) as recovery:
        yield recovery


def list_mirrored_accesses(fleet: Fleet) -> dict[str, ClusterAccess]:
    """Return how to connect to each cluster of a mirror or of failover groups, by its ID."""
    ids = fleet.recovery.mirrored_clusters
    return {cluster.id: cluster.access for cluster in fleet.clusters if cluster.id in ids}


@contextmanager
def start_recovery(
    fleet: Fleet,
    config: Path,
    location: str | None,
    watermark_every_s: float = 0,
    report_topic_change: ReportTopicChange = log_topic_change,
    clock_ms: Callable[[], int] = now_ms,
) -> Iterator[RecoveryContext]:
    """Start the clients of a fleet that was read from ``config``.

    A cluster whose credentials cannot be read counts as unreachable. ``report_topic_change`` is called when a
    topic of offset syncs was recreated, or lost records.

    Raises: InputError if there are no mirrors; TableStoreError.
    """
    if not fleet.recovery.mirrors:
        raise InputError(f"{config}: recovery.mirrors is empty: list the mirrors between clusters")
    lake = location or fleet.lake
    store = CheckpointStore(lake)
    collector = SyncCollector(fleet, store, clock_ms, round(1000 * watermark_every_s), report_topic_change)
    group_syncs = tuple(GroupOffsetSync(fleet, groups, clock_ms) for groups in fleet.recovery.groups)
    collector.start()
    try:
        yield RecoveryContext(fleet, lake, store, collector, group_syncs)
    finally:
        for group_sync in group_syncs:
            group_sync.stop()
        collector.stop()


@contextmanager
def run_tracers(
    fleet: Fleet,
    report_topic_change: ReportTopicChange = log_topic_change,
    clock_ms: Callable[[], int] = now_ms,
) -> Iterator[TracerLoop | None]:
    """Run the tracer loop inside the context; None if the fleet file configures no tracers."""
    if fleet.recovery.tracers is None:
        yield None
        return
    tracer_loop = TracerLoop(
        fleet, fleet.recovery.tracers, uuid.uuid4().hex[:12], clock_ms, report_topic_change
    )
    tracer_loop.start()
    try:
        yield tracer_loop
    finally:
        tracer_loop.stop()
