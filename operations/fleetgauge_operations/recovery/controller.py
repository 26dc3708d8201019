"""`fleetgauge recover run`: look, keep, move groups along, judge how ready all is, until it is stopped."""

import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from fleetgauge_core.fleet import Fleet
from fleetgauge_core.kafka import KafkaUnavailableError
from fleetgauge_core.lake.table_store import TableStoreError
from fleetgauge_core.runtime.health_server import Vitals
from fleetgauge_core.runtime.shutdown import Stopping
from fleetgauge_operations.recovery.checkpoint_store import CheckpointStore
from fleetgauge_operations.recovery.drill import forecast_of
from fleetgauge_operations.recovery.group_offset_sync import GroupPlan, Mover
from fleetgauge_operations.recovery.metrics import RecoverMetrics
from fleetgauge_operations.recovery.plan.forecast import GroupForecast
from fleetgauge_operations.recovery.plan.sync_decision import Pair
from fleetgauge_operations.recovery.readiness.tracker import Readiness
from fleetgauge_operations.recovery.sync_collector import Collector
from fleetgauge_operations.recovery.tracers.tracer_loop import NOTHING_TOLD, Tracing

_log = logging.getLogger("fleetgauge.recover")

#: A commit each makes small files; so many together are put into one.
_TIDY_AFTER = 360
_LISTEN_S = 0.5


@dataclass(frozen=True, slots=True)
class Watchman:
    """Every ``look_every_s`` one look, and every ``move_every_s`` one at the groups, written if ``execute``,
    and at how ready all is.

    ``show`` is given each group's plan.
    """

    collector: Collector
    store: CheckpointStore
    movers: Sequence[Mover]
    vitals: Vitals
    metrics: RecoverMetrics
    fleet: Fleet
    tracing: Tracing | None
    readiness: Readiness
    show: Callable[[GroupPlan], None]
    now_ms: Callable[[], int]
    monotonic: Callable[[], float]
    look_every_s: float
    move_every_s: float
    execute: bool

    def run(self, stopping: Stopping) -> None:
        """Until ``stopping`` is set. Raises StoreLostError."""
        commits, move_at = 0, self.monotonic()
        while not stopping.is_set():
            self.vitals.beat()
            try:
                if self.collector.look():
                    self.vitals.ready()
                self.readiness.looked(self.collector, self.now_ms())
                self.metrics.looked(self.collector.known, self.fleet.recovery.mirrors, self.now_ms())
                commits += self.collector.keep() > 0
                if commits >= _TIDY_AFTER:
                    self.store.compact()
                    commits = 0
            except TableStoreError as error:
                _log.warning("nothing is kept: %s", error)
            if self.monotonic() >= move_at:
                move_at = self.monotonic() + self.move_every_s
                told = self.tracing.told() if self.tracing else NOTHING_TOLD
                self.metrics.judged(self.readiness.judge(self.collector, self._moved(), told))
            look_at = self.monotonic() + self.look_every_s
            while self.monotonic() < look_at and not stopping.wait(_LISTEN_S):
                pass

    def _moved(self) -> dict[Pair, list[GroupForecast]]:
        """What a failover would cost each group as it stands then, of pairs that can be seen."""
        seen: dict[Pair, list[GroupPlan]] = {mover.pair: [] for mover in self.movers}
        for mover in self.movers:
            try:
                for plan in mover.plans(self.collector.known):
                    done = mover.write(plan) if self.execute else plan
                    self.show(done)
                    if mover.pair in seen:
                        seen[mover.pair].append(done)
            except KafkaUnavailableError as error:
                _log.warning("groups cannot be seen: %s", error)
                # Of some of a pair's groups nobody is to take for all of them.
                seen.pop(mover.pair, None)
        known, now_ms = self.collector.known, self.now_ms()
        found: dict[Pair, list[GroupForecast]] = {}
        for pair, plans in seen.items():
            self.metrics.moved(pair.active, pair.passive, plans)
            stand = plans if self.execute else [plan.unwritten for plan in plans]
            found[pair] = [forecast_of(self.fleet, plan, known, now_ms) for plan in stand]
        return found
