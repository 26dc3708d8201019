"""The loop of `recover run` on mirrors and groups in memory."""

import logging
from dataclasses import dataclass, field, replace
from typing import Any

import pytest

from fleetgauge_core.fleet import Fleet
from fleetgauge_core.kafka import KafkaUnavailableError
from fleetgauge_core.lake.table_store import TableStoreError
from fleetgauge_core.runtime.health_server import ProcessHealth
from fleetgauge_core.runtime.shutdown import ShutdownFlag
from fleetgauge_operations.recovery import controller as controller_module
from fleetgauge_operations.recovery.checkpoint_store import CheckpointStoreLostError
from fleetgauge_operations.recovery.controller import RecoveryController
from fleetgauge_operations.recovery.group_offset_sync import GroupSyncPlan
from fleetgauge_operations.recovery.offsets.mirror_state import ReplicationState
from fleetgauge_operations.recovery.plan.sync_decision import ClusterPair

FLEET = Fleet.model_validate(
    {
        "clusters": [
            {"id": "east", "bootstrap": "nobody:1"},
            {"id": "west", "bootstrap": "nobody:1"},
            {"id": "north", "bootstrap": "nobody:1"},
        ]
    }
)
EAST_WEST, EAST_NORTH = ClusterPair("east", "west"), ClusterPair("east", "north")
OBSERVE_EVERY_S, SYNC_EVERY_S = 10.0, 30.0


class SimulatedTime(ShutdownFlag):
    """A clock that moves while the loop waits, and ends the loop after ``end_s`` seconds."""

    def __init__(self, end_s: float) -> None:
        super().__init__()
        self.now_s = 0.0
        self._end_s = end_s

    def wait(self, seconds: float) -> bool:
        self.now_s += seconds
        if self.now_s >= self._end_s:
            self.set()
        return self.is_set()


@dataclass
class MemoryMirrors:
    """The collector of checkpoints, and the store that it writes, in memory."""

    can_be_observed: bool = True
    store_error: Exception | None = None
    state: ReplicationState = field(default_factory=ReplicationState)
    collected: int = 0
    compacted_after: list[int] = field(default_factory=list)

    def collect(self) -> bool:
        self.collected += 1
        return self.can_be_observed

    def store_checkpoints(self) -> int:
        if self.store_error:
            raise self.store_error
        return 1

    def compact(self) -> None:
        self.compacted_after.append(self.collected)


@dataclass
class MemoryGroups:
    """The groups of a cluster pair in memory."""

    pair: ClusterPair
    groups: tuple[str, ...] = ("billing", "search")
    error_after: int | None = None
    """After how many groups reading fails."""
    applied: list[str] = field(default_factory=list)

    def plan_groups(self, _: ReplicationState) -> Any:
        for number, group in enumerate(self.groups):
            if number == self.error_after:
                raise KafkaUnavailableError("no broker responds")
            yield GroupSyncPlan(group, self.pair, ())

    def apply(self, plan: GroupSyncPlan) -> GroupSyncPlan:
        self.applied.append(plan.group)
        return replace(plan, was_applied=True)


@dataclass
class RecordingReadiness:
    """Records which groups of which cluster pairs each evaluation was given."""

    evaluations: list[dict[ClusterPair, list[str]]] = field(default_factory=list)

    def observe_rates(self, *_: object) -> None:
        pass

    def evaluate(self, _: object, forecasts: Any, __: object) -> None:
        self.evaluations.append(
            {pair: [forecast.group for forecast in groups] for pair, groups in forecasts.items()}
        )


class IgnoringMetrics:
    """Metrics that nobody reads."""

    def update_mirrors(self, *_: object) -> None:
        pass

    def update_groups(self, *_: object) -> None:
        pass

    def update_readiness(self, *_: object) -> None:
        pass


@dataclass
class RecoveryRun:
    """One run of the controller for a simulated duration."""

    mirrors: MemoryMirrors = field(default_factory=MemoryMirrors)
    groups: list[MemoryGroups] = field(default_factory=lambda: [MemoryGroups(EAST_WEST)])
    execute: bool = False
    readiness: RecordingReadiness = field(default_factory=RecordingReadiness)
    health: ProcessHealth = field(default_factory=lambda: ProcessHealth("recover", 60))
    shown: list[GroupSyncPlan] = field(default_factory=list)

    def run(self, end_s: float) -> None:
        time = SimulatedTime(end_s)
        mirrors: Any = self.mirrors
        groups: Any = self.groups
        metrics: Any = IgnoringMetrics()
        readiness: Any = self.readiness
        RecoveryController(
            collector=mirrors,
            store=mirrors,
            group_syncs=groups,
            health=self.health,
            metrics=metrics,
            fleet=FLEET,
            tracer_loop=None,
            readiness=readiness,
            report_faults=lambda: None,
            show=self.shown.append,
            now_ms=lambda: int(time.now_s * 1000),
            monotonic=lambda: time.now_s,
            observe_every_s=OBSERVE_EVERY_S,
            sync_every_s=SYNC_EVERY_S,
            execute=self.execute,
        ).run(time)


def test_mirrors_are_observed_and_groups_are_synced_each_at_its_own_interval() -> None:
    run = RecoveryRun()
    run.run(end_s=60)
    assert run.mirrors.collected == 6
    assert len(run.readiness.evaluations) == 2
    assert run.health.is_ready


def test_offsets_are_committed_only_with_execute() -> None:
    planned, executed = RecoveryRun(), RecoveryRun(execute=True)
    for run in (planned, executed):
        run.run(end_s=5)
    assert (planned.groups[0].applied, executed.groups[0].applied) == ([], ["billing", "search"])
    assert [plan.was_applied for plan in planned.shown] == [False, False]
    assert [plan.was_applied for plan in executed.shown] == [True, True]


def test_a_pair_of_which_only_some_groups_can_be_read_is_not_evaluated() -> None:
    """Readiness must not be computed from some of the groups as if they were all."""
    partly = MemoryGroups(EAST_WEST, error_after=1)
    run = RecoveryRun(groups=[partly, MemoryGroups(EAST_NORTH)])
    run.run(end_s=5)
    assert run.readiness.evaluations == [{EAST_NORTH: ["billing", "search"]}]


def test_without_any_observed_mirror_the_process_is_not_ready() -> None:
    run = RecoveryRun(mirrors=MemoryMirrors(can_be_observed=False))
    run.run(end_s=5)
    assert not run.health.is_ready


def test_groups_are_synced_while_checkpoints_cannot_be_stored(caplog: pytest.LogCaptureFixture) -> None:
    run = RecoveryRun(mirrors=MemoryMirrors(store_error=TableStoreError("no such bucket")), execute=True)
    with caplog.at_level(logging.WARNING):
        run.run(end_s=15)
    assert run.mirrors.collected == 2
    assert run.groups[0].applied == ["billing", "search"]
    assert "checkpoints are not written: no such bucket" in caplog.text


def test_a_lost_checkpoint_store_ends_the_process() -> None:
    run = RecoveryRun(mirrors=MemoryMirrors(store_error=CheckpointStoreLostError("restart")))
    with pytest.raises(CheckpointStoreLostError):
        run.run(end_s=60)
    assert run.mirrors.collected == 1


def test_the_store_is_compacted_after_many_commits(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(controller_module, "_COMPACT_AFTER", 3)
    run = RecoveryRun()
    run.run(end_s=70)
    assert run.mirrors.compacted_after == [3, 6]
