"""`fleetgauge recover run`: look, keep, move groups along, until it is stopped."""

import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from fleetgauge_operations.recovery.collecting import Collector
from fleetgauge_operations.recovery.metrics import RecoverMetrics
from fleetgauge_operations.recovery.moving import GroupPlan, Mover
from fleetgauge_operations.recovery.store import CheckpointStore
from fleetgauge_pipelines.lakes.kept import KeptTableError
from fleetgauge_probes.fleet import Mirror
from fleetgauge_probes.kafka import KafkaUnavailableError
from fleetgauge_probes.stopping import Stopping
from fleetgauge_probes.vitals import Vitals

_log = logging.getLogger("fleetgauge.recover")

#: A commit each makes small files; so many together are put into one.
_TIDY_AFTER = 360
_LISTEN_S = 0.5


@dataclass(frozen=True, slots=True)
class Watchman:
    """Every ``look_every_s`` one look, and every ``move_every_s`` one at the groups, written if ``execute``.

    ``show`` is given each group's plan.
    """

    collector: Collector
    store: CheckpointStore
    movers: Sequence[Mover]
    vitals: Vitals
    metrics: RecoverMetrics
    mirrors: Sequence[Mirror]
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
                self.metrics.looked(self.collector.known, self.mirrors, self.now_ms())
                commits += self.collector.keep() > 0
                if commits >= _TIDY_AFTER:
                    self.store.tidy()
                    commits = 0
            except KeptTableError as error:
                _log.warning("nothing is kept: %s", error)
            if self.monotonic() >= move_at:
                move_at = self.monotonic() + self.move_every_s
                self._move()
            look_at = self.monotonic() + self.look_every_s
            while self.monotonic() < look_at and not stopping.wait(_LISTEN_S):
                pass

    def _move(self) -> None:
        for mover in self.movers:
            seen = []
            try:
                for plan in mover.plans(self.collector.known):
                    seen.append(mover.write(plan) if self.execute else plan)
                    self.show(seen[-1])
            except KafkaUnavailableError as error:
                _log.warning("groups cannot be seen: %s", error)
                continue
            self.metrics.moved(mover.pair.active, mover.pair.passive, seen)
