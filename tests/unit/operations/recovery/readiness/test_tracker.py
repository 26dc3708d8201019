"""Turn by turn: a row a minute whatever the pace, and findings that outlive the process."""

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
    Origin,
    Route,
    TopicIds,
)
from fleetgauge_operations.recovery.offsets.mirror_state import Known
from fleetgauge_operations.recovery.plan.forecast import GroupForecast
from fleetgauge_operations.recovery.plan.sync_decision import Pair
from fleetgauge_operations.recovery.readiness.plan.conditions import Kind
from fleetgauge_operations.recovery.readiness.tracker import Readiness
from fleetgauge_operations.recovery.sync_collector import Collector
from fleetgauge_operations.recovery.tracers.plan.delays import (
    Acks,
    Delay,
    Pairing,
    Way,
)
from fleetgauge_operations.recovery.tracers.tracer_loop import NOTHING_TOLD, Told
from tests.receiver import Receiver

NOON = datetime(2026, 3, 2, 12, tzinfo=UTC)
PAIR = Pair("north", "south")


class World:
    """A mirror from north to south, whose clock is set by hand."""

    def __init__(self, lake: Path, hook: str) -> None:
        self.lake = lake
        self.now = NOON + timedelta(seconds=20)
        self.known = Known()
        self.learned: list[tuple[Route, Checkpoint]] = []
        self.hear()
        self.fleet = Fleet.model_validate(
            {
                "clusters": [{"id": "north", "bootstrap": "a:1"}, {"id": "south", "bootstrap": "b:1"}],
                "recovery": {
                    "mirrors": [{"source": "north", "destination": "south"}],
                    "groups": [{"groups": ".*", "active": "north", "passive": "south"}],
                    "tracers": {},
                    "limits": {"stale_s": 100},
                },
                "notifiers": [{"kind": "webhook", "url": hook}],
            }
        )
        self.readiness = self.another()

    def hear(self) -> None:
        at_ms = round(self.now.timestamp() * 1000)
        mark = Checkpoint(100, 100, at_ms, Origin.IDLE_WATERMARK)
        self.known.learn(Route("north", "south", "orders", 0), TopicIds("s", "d"), mark)
        self.known.keep_up(Route("north", "south", "orders", 0), at_ms)

    def another(self) -> Readiness:
        found = Readiness(self.fleet, str(self.lake), lambda _: (), lambda: self.now)
        found.start()
        return found

    def turn(
        self,
        after_s: float,
        told: Told = NOTHING_TOLD,
        reasons: tuple[str, ...] = (),
        groups_are_seen: bool = True,
    ) -> list[Kind]:
        self.now += timedelta(seconds=after_s)
        collector = cast(
            Collector,
            SimpleNamespace(
                known=self.known,
                answering=frozenset(),
                ends={},
                learn=lambda *what: self.learned.append(what),
            ),
        )
        forecasts = {PAIR: [GroupForecast("billing", (), reasons)]} if groups_are_seen else {}
        judged = self.readiness.judge(collector, forecasts, told)
        return [one.whom.kind for one in judged.opened]

    def rows(self, table: Any) -> list[dict[str, Any]]:
        path = self.lake / table.path
        return DeltaTable(str(path)).to_pyarrow_table().to_pylist() if path.exists() else []


def minutes(rows: list[dict[str, Any]]) -> list[int]:
    return sorted(row["minute"].minute for row in rows)


def test_a_row_a_minute_and_none_of_the_one_that_was_under_way(tmp_path: Path) -> None:
    with Receiver().listening() as hook:
        world = World(tmp_path, hook.url)
        for _ in range(16):
            world.turn(15)
            world.hear()
        for table in (MIRROR_MINUTES, GROUP_MINUTES, PRODUCER_MINUTES):
            assert minutes(world.rows(table)) == [1, 2, 3]
        world.readiness = world.another()
        for _ in range(8):
            world.turn(15)
        assert minutes(world.rows(MIRROR_MINUTES)) == [1, 2, 3, 5]


def test_what_tracers_told_in_a_minute_is_in_its_row(tmp_path: Path) -> None:
    with Receiver().listening() as hook:
        world = World(tmp_path, hook.url)
        world.turn(40)
        way = Way("north", "south")
        first = Told({way: Delay((10,), 0.01)}, {"north": Acks(2, (3, 4))}, (Pairing(way, 5, 7, 9_000),))
        world.turn(20, first)
        world.turn(20, Told({way: Delay((30,), 0.03)}, {"north": Acks(1, (5,))}, ()))
        world.turn(20)
        (mirror,), (producer,) = world.rows(MIRROR_MINUTES), world.rows(PRODUCER_MINUTES)
        assert (mirror["tracers"], mirror["tracer_p50_ms"], mirror["behind_s"]) == (2, 10, 0.03)
        assert (producer["sent"], producer["acknowledged"], producer["ack_p99_ms"]) == (3, 3, 5)
        tracers = Route("north", "south", "fleetgauge.tracers", 0)
        assert world.learned == [(tracers, Checkpoint(5, 7, 9_000, Origin.TRACER))]
        world.turn(60)
        assert len(world.learned) == 1


def test_a_finding_is_told_kept_and_ended_by_the_next_process(tmp_path: Path) -> None:
    with Receiver().listening() as hook:
        world = World(tmp_path, hook.url)
        assert world.turn(15, reasons=("connected",)) == []
        assert world.turn(15, reasons=("connected",)) == [Kind.GROUPS_NOT_READY]
        assert [post["status"] for post in hook.bodies] == ["firing"]
        world.readiness = world.another()
        assert world.turn(15) == [Kind.GROUPS_NOT_READY]
        assert world.turn(15) == []
        assert [post["status"] for post in hook.bodies] == ["firing", "firing", "resolved"]
        assert len({post["fingerprint"] for post in hook.bodies}) == 1
        assert hook.bodies[0]["id"] == hook.bodies[1]["id"]
        rows = sorted(world.rows(RECOVERY_FINDINGS), key=lambda row: row["at"])
        assert [row["opens"] for row in rows] == [True, False]


def test_a_mirror_that_is_not_heard_explains_its_groups(tmp_path: Path) -> None:
    with Receiver().listening() as hook:
        world = World(tmp_path, hook.url)
        world.turn(101, reasons=("stale",))
        assert world.turn(15, reasons=("stale",)) == [Kind.MIRROR_STALE]


def test_of_groups_that_are_not_seen_nothing_is_over(tmp_path: Path) -> None:
    with Receiver().listening() as hook:
        world = World(tmp_path, hook.url)
        for _ in range(2):
            found = world.turn(15, reasons=("unbounded",))
        assert found == [Kind.GROUPS_NOT_READY]
        for _ in range(5):
            world.hear()
            assert world.turn(15, groups_are_seen=False) == [Kind.GROUPS_NOT_READY]
        for _ in range(2):
            world.hear()
            found = world.turn(15)
        assert found == []


def test_a_lake_that_takes_nothing_loses_nothing(tmp_path: Path) -> None:
    with Receiver().listening() as hook:
        world = World(tmp_path / "lake", hook.url)
        (tmp_path / "lake").write_text("a file where a folder is to be")
        for _ in range(9):
            world.turn(15)
        (tmp_path / "lake").unlink()
        for _ in range(4):
            world.turn(15)
        assert minutes(world.rows(MIRROR_MINUTES)) == [1, 2]
