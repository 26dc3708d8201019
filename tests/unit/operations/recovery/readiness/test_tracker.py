"""Readiness over several evaluations: one row per minute, and findings that outlive the process."""

from datetime import UTC, datetime, timedelta
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

from deltalake import DeltaTable

from fleetgauge_core.fleet import Fleet
from fleetgauge_core.tables import (
    GROUP_MINUTES,
    MIRROR_MINUTES,
    PRODUCER_MINUTES,
    RECOVERY_FINDINGS,
)
from fleetgauge_operations.recovery.offsets.checkpoint import (
    Checkpoint,
    CheckpointOrigin,
    PartitionRoute,
    TopicIds,
)
from fleetgauge_operations.recovery.offsets.mirror_state import ReplicationState
from fleetgauge_operations.recovery.plan.forecast import GroupForecast
from fleetgauge_operations.recovery.plan.sync_decision import ClusterPair
from fleetgauge_operations.recovery.readiness.plan.conditions import ConditionKind
from fleetgauge_operations.recovery.readiness.tracker import ReadinessTracker
from fleetgauge_operations.recovery.sync_collector import SyncCollector
from fleetgauge_operations.recovery.tracers.plan.delays import (
    MirrorDelay,
    MirrorRoute,
    TracerAcks,
    TracerMapping,
)
from fleetgauge_operations.recovery.tracers.tracer_loop import EMPTY_TRACER_REPORT, TracerReport
from tests.receiver import Receiver

NOON = datetime(2026, 3, 2, 12, tzinfo=UTC)
PAIR = ClusterPair("north", "south")


class MirrorScenario:
    """A mirror from north to south and its readiness tracker, with a clock that tests advance."""

    def __init__(self, lake: Path, webhook_url: str) -> None:
        self.lake = lake
        self.now = NOON + timedelta(seconds=20)
        self.state = ReplicationState()
        self.added_checkpoints: list[tuple[PartitionRoute, Checkpoint]] = []
        self.observe_progress()
        self.fleet = Fleet.model_validate(
            {
                "clusters": [{"id": "north", "bootstrap": "a:1"}, {"id": "south", "bootstrap": "b:1"}],
                "recovery": {
                    "mirrors": [{"source": "north", "destination": "south"}],
                    "groups": [{"groups": ".*", "active": "north", "passive": "south"}],
                    "tracers": {},
                    "limits": {"stale_s": 100},
                },
                "notifiers": [{"kind": "webhook", "url": webhook_url}],
            }
        )
        self.tracker = self.start_tracker()

    def observe_progress(self) -> None:
        at_ms = round(self.now.timestamp() * 1000)
        watermark = Checkpoint(100, 100, at_ms, CheckpointOrigin.IDLE_WATERMARK)
        self.state.apply_checkpoint(
            PartitionRoute("north", "south", "orders", 0), TopicIds("s", "d"), watermark
        )
        self.state.mark_progress(PartitionRoute("north", "south", "orders", 0), at_ms)

    def start_tracker(self) -> ReadinessTracker:
        tracker = ReadinessTracker(self.fleet, str(self.lake), lambda _: (), lambda: self.now)
        tracker.start()
        return tracker

    def evaluate_after(
        self,
        after_s: float,
        report: TracerReport = EMPTY_TRACER_REPORT,
        reasons: tuple[str, ...] = (),
        are_groups_readable: bool = True,
    ) -> list[ConditionKind]:
        self.now += timedelta(seconds=after_s)
        collector = cast(
            SyncCollector,
            SimpleNamespace(
                state=self.state,
                reachable=frozenset(),
                source_ends={},
                add_checkpoint=lambda route, checkpoint: self.added_checkpoints.append((route, checkpoint)),
            ),
        )
        forecasts = {PAIR: [GroupForecast("billing", (), reasons)]} if are_groups_readable else {}
        evaluation = self.tracker.evaluate(collector, forecasts, report)
        return [condition.key.kind for condition in evaluation.opened]

    def read_rows(self, table: Any) -> list[dict[str, Any]]:
        path = self.lake / table.path
        return DeltaTable(str(path)).to_pyarrow_table().to_pylist() if path.exists() else []


def minute_numbers(rows: list[dict[str, Any]]) -> list[int]:
    return sorted(row["minute"].minute for row in rows)


def test_one_row_per_minute_is_stored_without_the_minute_of_a_restart(
    tmp_path: Path, receiver: Receiver
) -> None:
    scenario = MirrorScenario(tmp_path, receiver.url)
    for _ in range(16):
        scenario.evaluate_after(15)
        scenario.observe_progress()
    for table in (MIRROR_MINUTES, GROUP_MINUTES, PRODUCER_MINUTES):
        assert minute_numbers(scenario.read_rows(table)) == [1, 2, 3]
    scenario.tracker = scenario.start_tracker()
    for _ in range(8):
        scenario.evaluate_after(15)
    assert minute_numbers(scenario.read_rows(MIRROR_MINUTES)) == [1, 2, 3, 5]


def test_a_minute_row_covers_all_tracers_of_the_minute(tmp_path: Path, receiver: Receiver) -> None:
    scenario = MirrorScenario(tmp_path, receiver.url)
    scenario.evaluate_after(40)
    route = MirrorRoute("north", "south")
    first = TracerReport(
        {route: MirrorDelay((10,), 0.01)},
        {"north": TracerAcks(2, (3, 4))},
        (TracerMapping(route, 5, 7, 9_000),),
    )
    scenario.evaluate_after(20, first)
    scenario.evaluate_after(
        20, TracerReport({route: MirrorDelay((30,), 0.03)}, {"north": TracerAcks(1, (5,))}, ())
    )
    scenario.evaluate_after(20)
    (mirror,), (producer,) = scenario.read_rows(MIRROR_MINUTES), scenario.read_rows(PRODUCER_MINUTES)
    assert (mirror["tracers"], mirror["tracer_p50_ms"], mirror["behind_s"]) == (2, 10, 0.03)
    assert (producer["sent"], producer["acknowledged"], producer["ack_p99_ms"]) == (3, 3, 5)
    tracers = PartitionRoute("north", "south", "fleetgauge.tracers", 0)
    assert scenario.added_checkpoints == [(tracers, Checkpoint(5, 7, 9_000, CheckpointOrigin.TRACER))]
    scenario.evaluate_after(60)
    assert len(scenario.added_checkpoints) == 1


def test_a_finding_is_notified_stored_and_closed_by_the_next_process(
    tmp_path: Path, receiver: Receiver
) -> None:
    scenario = MirrorScenario(tmp_path, receiver.url)
    assert scenario.evaluate_after(15, reasons=("connected",)) == []
    assert scenario.evaluate_after(15, reasons=("connected",)) == [ConditionKind.GROUPS_NOT_READY]
    assert [body["status"] for body in receiver.bodies] == ["firing"]
    scenario.tracker = scenario.start_tracker()
    assert scenario.evaluate_after(15) == [ConditionKind.GROUPS_NOT_READY]
    assert scenario.evaluate_after(15) == []
    assert [body["status"] for body in receiver.bodies] == ["firing", "firing", "resolved"]
    assert len({body["fingerprint"] for body in receiver.bodies}) == 1
    assert receiver.bodies[0]["id"] == receiver.bodies[1]["id"]
    rows = sorted(scenario.read_rows(RECOVERY_FINDINGS), key=lambda row: row["at"])
    assert [row["opens"] for row in rows] == [True, False]


def test_a_stale_mirror_explains_its_groups(tmp_path: Path, receiver: Receiver) -> None:
    scenario = MirrorScenario(tmp_path, receiver.url)
    scenario.evaluate_after(101, reasons=("stale",))
    assert scenario.evaluate_after(15, reasons=("stale",)) == [ConditionKind.MIRROR_STALE]


def test_findings_of_groups_that_cannot_be_read_stay_open(tmp_path: Path, receiver: Receiver) -> None:
    scenario = MirrorScenario(tmp_path, receiver.url)
    for _ in range(2):
        kinds = scenario.evaluate_after(15, reasons=("unbounded",))
    assert kinds == [ConditionKind.GROUPS_NOT_READY]
    for _ in range(5):
        scenario.observe_progress()
        assert scenario.evaluate_after(15, are_groups_readable=False) == [ConditionKind.GROUPS_NOT_READY]
    for _ in range(2):
        scenario.observe_progress()
        kinds = scenario.evaluate_after(15)
    assert kinds == []


def test_rows_are_kept_while_the_lake_is_unavailable(tmp_path: Path, receiver: Receiver) -> None:
    scenario = MirrorScenario(tmp_path / "lake", receiver.url)
    (tmp_path / "lake").write_text("a file where a folder is to be")
    for _ in range(9):
        scenario.evaluate_after(15)
    (tmp_path / "lake").unlink()
    for _ in range(4):
        scenario.evaluate_after(15)
    assert minute_numbers(scenario.read_rows(MIRROR_MINUTES)) == [1, 2]
