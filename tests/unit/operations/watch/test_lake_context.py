import logging
from dataclasses import replace
from datetime import date, timedelta
from pathlib import Path

import pytest

from fleetgauge_core.detection import FindingSubject, HealthCondition
from fleetgauge_core.fleet import Fleet
from fleetgauge_core.tables import ACTIONS, CLUSTER_WEEKS, CORRECTIONS
from fleetgauge_operations.mitigation.case import Action, Case, Outcome
from fleetgauge_operations.mitigation.record import Record
from fleetgauge_operations.watch import lake_context
from fleetgauge_operations.watch.lake_context import LakeContext
from tests.browser.lake import put
from tests.unit.operations.watch.sample_findings import NOON, planned
from tests.waiting import wait_until

HOUR = timedelta(hours=1)
CLUSTER = FindingSubject("orders", HealthCondition.CLUSTER_DOWN)
PATIENCE_S = 30
#: Of noon on a Monday.
WEEK = date(2026, 3, 2)
CASE = Case("c1", Action.DEMOTE, "orders", 2, "z1", "kim", "slow", NOON - HOUR, Outcome.DONE)


def lake(folder: Path, *, of: date = WEEK, left: float | None = 31.25, revision: int = 0) -> None:
    """A row of a cluster's week."""
    row = {
        "cluster_id": "orders",
        "week": of,
        "revision": revision,
        "latency_budget_minutes": 100.8,
        "latency_budget_left_minutes": left,
        "availability_budget_minutes": 5.04,
        "availability_spent_minutes": 6.0,
    }
    put(folder, CLUSTER_WEEKS, [dict.fromkeys(CLUSTER_WEEKS.column_names) | row])


def of_lake(folder: Path) -> LakeContext:
    clusters = [{"id": "orders", "bootstrap": "nobody:1"}]
    return LakeContext(Fleet.model_validate({"lake": str(folder), "clusters": clusters}), lambda: NOON)


def lines(folder: Path) -> tuple[str, ...]:
    """What it says of the cluster once it has read."""
    found = of_lake(folder)
    found.start()
    found.stop()
    return found.of("orders")


def test_the_plan_is_read_when_it_starts_and_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lake_context, "_READ_EVERY_S", 0.05)
    withdrawn = planned(NOON, NOON + HOUR, correction_id="c2", withdrawn_at=NOON)
    put(tmp_path, CORRECTIONS, [withdrawn])
    found = of_lake(tmp_path)
    found.start()
    assert not found.plan.covers(CLUSTER, NOON)
    put(tmp_path, CORRECTIONS, [withdrawn, planned(NOON, NOON + HOUR)])
    wait_until(lambda: found.plan.covers(CLUSTER, NOON), PATIENCE_S, "what was added")
    found.stop()


def test_a_lake_that_is_not_there_is_told_once_and_knows_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(lake_context, "_READ_EVERY_S", 0.01)
    with caplog.at_level(logging.WARNING, "fleetgauge.watch"):
        found = of_lake(tmp_path / "none")
        found.start()
        assert found.of("orders") == ()
        put(tmp_path / "none", CORRECTIONS, [planned(NOON, NOON + HOUR)])
        wait_until(lambda: found.plan.covers(CLUSTER, NOON), PATIENCE_S, "the lake")
        found.stop()
    assert [one.getMessage().partition(":")[0] for one in caplog.records] == [
        "maintenance is not known, so all is told",
        "what was done to brokers is not known",
    ]


def test_what_is_left_of_this_weeks_budgets_is_said_by_the_latest_revision(tmp_path: Path) -> None:
    lake(tmp_path, left=50.0)
    lake(tmp_path, revision=1)
    lake(tmp_path, of=WEEK - timedelta(days=7), left=1.0, revision=2)
    assert lines(tmp_path) == (
        "31.2 of 100.8 minutes of this week's latency budget are left",
        "-1.0 of 5.0 minutes of this week's availability budget are left",
    )


def test_a_budget_that_is_not_known_is_not_said(tmp_path: Path) -> None:
    lake(tmp_path, left=None)
    assert [line.split()[-4] for line in lines(tmp_path)] == ["availability"]


def test_what_was_done_of_late_is_said_in_its_order(tmp_path: Path) -> None:
    put(tmp_path, ACTIONS, [])
    record = Record(str(tmp_path))
    for number in range(4):
        record.add(replace(CASE, case_id=f"c{number}", broker_id=number, began=NOON - number * HOUR))
    record.add(replace(CASE, case_id="of another", cluster_id="payments"))
    record.add(replace(CASE, case_id="long ago", began=NOON - timedelta(days=2)))
    assert lines(tmp_path) == tuple(
        f"demote of broker {number} by kim, 2026-03-02 {12 - number}:00 UTC: done" for number in (2, 1, 0)
    )
