"""The loop of `fleetgauge recover run`: observe mirrors, sync group offsets, evaluate readiness."""

import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from fleetgauge_core.fleet import Fleet
from fleetgauge_core.kafka import KafkaUnavailableError
from fleetgauge_core.lake.table_store import TableStoreError
from fleetgauge_core.runtime.health_server import ProcessHealth
from fleetgauge_core.runtime.shutdown import ShutdownFlag
from fleetgauge_operations.recovery.checkpoint_store import CheckpointStore
from fleetgauge_operations.recovery.drill import forecast_failover
from fleetgauge_operations.recovery.group_offset_sync import GroupOffsetSync, GroupSyncPlan
from fleetgauge_operations.recovery.metrics import RecoveryMetrics
from fleetgauge_operations.recovery.plan.forecast import GroupForecast
from fleetgauge_operations.recovery.plan.sync_decision import ClusterPair
from fleetgauge_operations.recovery.readiness.tracker import ReadinessTracker
from fleetgauge_operations.recovery.sync_collector import SyncCollector
from fleetgauge_operations.recovery.tracers.tracer_loop import EMPTY_TRACER_REPORT, TracerLoop

_log = logging.getLogger("fleetgauge.recover")

#: Commits between compactions, because every commit adds a small file.
_COMPACT_AFTER = 360
_SHUTDOWN_POLL_S = 0.5


@dataclass(frozen=True, slots=True)
class RecoveryController:
    """Observes mirrors every ``observe_every_s`` seconds, and groups every ``sync_every_s`` seconds.

    Group offsets are committed if ``execute`` is set; ``report_faults`` is called before each observation,
    ``show`` with the plan of each group.
    """

    collector: SyncCollector
    store: CheckpointStore
    group_syncs: Sequence[GroupOffsetSync]
    health: ProcessHealth
    metrics: RecoveryMetrics
    fleet: Fleet
    tracer_loop: TracerLoop | None
    readiness: ReadinessTracker
    report_faults: Callable[[], None]
    show: Callable[[GroupSyncPlan], None]
    now_ms: Callable[[], int]
    monotonic: Callable[[], float]
    observe_every_s: float
    sync_every_s: float
    execute: bool

    def run(self, shutdown: ShutdownFlag) -> None:
        """Run until ``shutdown`` is set. Raises CheckpointStoreLostError."""
        commits, sync_at = 0, self.monotonic()
        while not shutdown.is_set():
            self.health.record_heartbeat()
            self.report_faults()
            try:
                if self.collector.collect():
                    self.health.mark_ready()
                self.readiness.observe_rates(self.collector, self.now_ms())
                self.metrics.update_mirrors(self.collector.state, self.fleet.recovery.mirrors, self.now_ms())
                commits += self.collector.store_checkpoints() > 0
                if commits >= _COMPACT_AFTER:
                    self.store.compact()
                    commits = 0
            except TableStoreError as error:
                _log.warning("checkpoints are not written: %s", error)
            if self.monotonic() >= sync_at:
                sync_at = self.monotonic() + self.sync_every_s
                report = self.tracer_loop.take_report() if self.tracer_loop else EMPTY_TRACER_REPORT
                evaluation = self.readiness.evaluate(self.collector, self._sync_groups(), report)
                self.metrics.update_readiness(evaluation)
            observe_at = self.monotonic() + self.observe_every_s
            while self.monotonic() < observe_at and not shutdown.wait(_SHUTDOWN_POLL_S):
                pass

    def _sync_groups(self) -> dict[ClusterPair, list[GroupForecast]]:
        """Sync all groups; return the forecasts of the cluster pairs whose groups could all be read."""
        plans_by_pair: dict[ClusterPair, list[GroupSyncPlan]] = {sync.pair: [] for sync in self.group_syncs}
        for group_sync in self.group_syncs:
            try:
                for plan in group_sync.plan_groups(self.collector.state):
                    applied = group_sync.apply(plan) if self.execute else plan
                    self.show(applied)
                    if group_sync.pair in plans_by_pair:
                        plans_by_pair[group_sync.pair].append(applied)
            except KafkaUnavailableError as error:
                _log.warning("cannot read consumer groups: %s", error)
                # Some of the pair's groups must not be taken for all of them.
                plans_by_pair.pop(group_sync.pair, None)
        state, now_ms = self.collector.state, self.now_ms()
        forecasts: dict[ClusterPair, list[GroupForecast]] = {}
        for pair, plans in plans_by_pair.items():
            self.metrics.update_groups(pair.active, pair.passive, plans)
            effective = plans if self.execute else [plan.without_writes for plan in plans]
            forecasts[pair] = [forecast_failover(self.fleet, plan, state, now_ms) for plan in effective]
        return forecasts
