"""The clusters, mirrors and groups of a fleet file, as `fleetgauge recover` works with them."""

import time
import uuid
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from fleetgauge_core.fleet import Fleet, FleetFileError, load
from fleetgauge_core.kafka import KafkaUnavailableError
from fleetgauge_core.runtime.cli import InputError
from fleetgauge_operations.recovery.checkpoint_store import CheckpointStore
from fleetgauge_operations.recovery.drill import Drill, Drilled, Drills
from fleetgauge_operations.recovery.group_offset_sync import GroupPlan, Mover
from fleetgauge_operations.recovery.plan.forecast import GroupForecast, Reason
from fleetgauge_operations.recovery.plan.sync_decision import Pair
from fleetgauge_operations.recovery.sync_collector import Collector
from fleetgauge_operations.recovery.tracers.tracer_loop import Tracing


@dataclass(frozen=True, slots=True)
class Plans:
    """``unseen``: pairs of clusters of which one does not answer, and what was said."""

    groups: tuple[GroupPlan, ...]
    unseen: tuple[str, ...]

    @property
    def are_fine(self) -> bool:
        return not self.unseen and all(one.is_fine for one in self.groups)


@dataclass(frozen=True, slots=True)
class Regions:
    """What the commands that ask real clusters work with."""

    fleet: Fleet
    lake: str
    store: CheckpointStore
    collector: Collector
    movers: Sequence[Mover]

    def plans(self, only: str | None, write: bool = False) -> Plans:
        """After one more look, which is not kept: that is for whoever collects."""
        self.collector.look()
        plans: list[GroupPlan] = []
        unseen: list[str] = []
        for mover in self.movers:
            try:
                for plan in mover.plans(self.collector.known, only):
                    plans.append(mover.write(plan) if write else plan)
            except KafkaUnavailableError as error:
                unseen.append(f"{mover.pair.active} to {mover.pair.passive}: {error}")
        return Plans(tuple(plans), tuple(unseen))

    def drilled(self, pair: Pair, named: Sequence[str], execute: bool, author: str) -> Drill:
        """Of groups that are named and have committed nothing it says so."""
        self.collector.look()
        at, known = datetime.now(UTC), self.collector.known
        found: dict[str, Drilled] = {}
        for drills in (Drills(self.fleet, mover) for mover in self.movers if mover.pair == pair):
            if execute:
                tried = (drills.tried(name, known, now_ms()) for name in named if name not in found)
                found |= {one.forecast.group: one for one in tried if one}
            else:
                found |= {one.forecast.group: one for one in drills.forecasts(known, now_ms())}
        nothing = (Reason.NOTHING_COMMITTED.value,)
        groups = tuple(
            found.get(name) or Drilled(GroupForecast(name, (), nothing)) for name in named or found
        )
        return Drill(uuid.uuid4().hex[:12], at, pair.active, pair.passive, author, groups)


@contextmanager
def regions_of(config: Path, location: str | None, watermark_every_s: float = 0) -> Iterator[Regions]:
    """Raises InputError, KafkaUnavailableError, TableStoreError."""
    try:
        fleet = load(config)
    except FleetFileError as error:
        raise InputError(str(error)) from error
    if not fleet.recovery.mirrors:
        raise InputError(f"{config}: recovery.mirrors is empty: say what is copied between which clusters")
    lake = location or fleet.lake
    store = CheckpointStore(lake)
    collector = Collector(fleet, store, now_ms, round(1000 * watermark_every_s))
    movers = tuple(Mover(fleet, one, now_ms) for one in fleet.recovery.groups)
    collector.start()
    try:
        for mover in movers:
            mover.start()
        yield Regions(fleet, lake, store, collector, movers)
    finally:
        for mover in movers:
            mover.stop()
        collector.stop()


@contextmanager
def tracing_of(fleet: Fleet) -> Iterator[Tracing | None]:
    """Under way, where the fleet has tracers."""
    if fleet.recovery.tracers is None:
        yield None
        return
    tracing = Tracing(fleet, fleet.recovery.tracers, uuid.uuid4().hex[:12], now_ms)
    tracing.start()
    try:
        yield tracing
    finally:
        tracing.stop()


def now_ms() -> int:
    return time.time_ns() // 1_000_000
