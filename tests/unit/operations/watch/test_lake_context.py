"""What notifications add from the lake: budgets, recent actions, planned maintenance."""

import logging
from dataclasses import replace
from datetime import date, timedelta
from pathlib import Path

import pytest

from fleetgauge_core.detection import FindingSubject, HealthCondition
from fleetgauge_core.fleet import Fleet
from fleetgauge_core.tables import ACTIONS, CLUSTER_WEEKS, CORRECTIONS, ActionKind, ActionOutcome
from fleetgauge_operations.actions.audit_log import AuditLog
from fleetgauge_operations.actions.plan.case import ActionCase
from fleetgauge_operations.watch import lake_context, lake_tables
from fleetgauge_operations.watch.lake_context import LakeContext
from tests.browser.lake import put
from tests.unit.operations.watch.sample_findings import NOON, maintenance_row
from tests.waiting import wait_until

HOUR = timedelta(hours=1)
CLUSTER = FindingSubject("orders", HealthCondition.CLUSTER_DOWN)
DEADLINE_S = 30
#: The week of NOON, which is on a Monday.
WEEK = date(2026, 3, 2)
CASE = ActionCase("c1", ActionKind.DEMOTE, "orders", 2, "z1", "kim", "slow", NOON - HOUR, ActionOutcome.DONE)


def put_week(folder: Path, *, week: date = WEEK, left: float | None = 31.25, revision: int = 0) -> None:
    """Write a row of gold/cluster_weeks."""
    row = {
        "cluster_id": "orders",
        "week": week,
        "revision": revision,
        "latency_budget_minutes": 100.8,
        "latency_budget_left_minutes": left,
        "availability_budget_minutes": 5.04,
        "availability_spent_minutes": 6.0,
    }
    put(folder, CLUSTER_WEEKS, [dict.fromkeys(CLUSTER_WEEKS.column_names) | row])


def open_context(folder: Path) -> LakeContext:
    clusters = [{"id": "orders", "bootstrap": "unreachable:1"}]
    return LakeContext(Fleet.model_validate({"lake": str(folder), "clusters": clusters}), lambda: NOON)


def describe(folder: Path) -> tuple[str, ...]:
    """Return the lines about the cluster after the first read."""
    context = open_context(folder)
    context.start()
    context.stop()
    return context.describe_cluster("orders")


def test_the_plan_is_read_at_the_start_and_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lake_context, "_READ_INTERVAL_S", 0.05)
    withdrawn = maintenance_row(NOON, NOON + HOUR, correction_id="c2", withdrawn_at=NOON)
    put(tmp_path, CORRECTIONS, [withdrawn])
    context = open_context(tmp_path)
    context.start()
    assert not context.plan.covers(CLUSTER, NOON)
    put(tmp_path, CORRECTIONS, [withdrawn, maintenance_row(NOON, NOON + HOUR)])
    wait_until(lambda: context.plan.covers(CLUSTER, NOON), DEADLINE_S, "the added maintenance")
    context.stop()


def test_a_missing_lake_is_logged_once_and_adds_no_context(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(lake_context, "_READ_INTERVAL_S", 0.01)
    with caplog.at_level(logging.WARNING, "fleetgauge.watch"):
        context = open_context(tmp_path / "none")
        context.start()
        assert context.describe_cluster("orders") == ()
        put(tmp_path / "none", CORRECTIONS, [maintenance_row(NOON, NOON + HOUR)])
        wait_until(lambda: context.plan.covers(CLUSTER, NOON), DEADLINE_S, "the lake")
        context.stop()
    assert [record.getMessage().partition(":")[0] for record in caplog.records] == [
        "planned maintenance is unknown, so findings during maintenance are notified",
        "recent actions on brokers are unknown and left out of notifications",
    ]


def test_remaining_budgets_are_those_of_the_latest_revision_of_this_week(tmp_path: Path) -> None:
    put_week(tmp_path, left=50.0)
    put_week(tmp_path, revision=1)
    put_week(tmp_path, week=WEEK - timedelta(days=7), left=1.0, revision=2)
    assert describe(tmp_path) == (
        "31.2 of 100.8 minutes of this week's latency error budget remain",
        "-1.0 of 5.0 minutes of this week's availability error budget remain",
    )


def test_an_unknown_budget_is_left_out(tmp_path: Path) -> None:
    put_week(tmp_path, left=None)
    assert [line.split()[-4] for line in describe(tmp_path)] == ["availability"]


def test_recent_actions_are_described_in_order(tmp_path: Path) -> None:
    put(tmp_path, ACTIONS, [])
    audit_log = AuditLog(str(tmp_path))
    for number in range(4):
        audit_log.add_case(replace(CASE, case_id=f"c{number}", broker_id=number, began=NOON - number * HOUR))
    audit_log.add_case(replace(CASE, case_id="other cluster", cluster_id="payments"))
    audit_log.add_case(replace(CASE, case_id="too old", began=NOON - timedelta(days=2)))
    assert describe(tmp_path) == tuple(
        f"demote of broker {number} by kim, 2026-03-02 {12 - number}:00 UTC: done" for number in (2, 1, 0)
    )


def test_a_defect_of_a_reader_is_logged_and_ends_neither_the_thread_nor_the_other_readers(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(lake_context, "_READ_INTERVAL_S", 0.05)
    put_week(tmp_path)
    put(tmp_path, CORRECTIONS, [maintenance_row(NOON, NOON + HOUR)])

    def fail(*_: object) -> None:
        raise KeyError("week")

    with monkeypatch.context() as patch:
        patch.setattr(lake_tables, "read_budgets", fail)
        context = open_context(tmp_path)
        context.start()
        assert context.plan.covers(CLUSTER, NOON)
        assert context.describe_cluster("orders") == ()
    assert [record.message for record in caplog.records if "KeyError" in record.message] == [
        "remaining error budgets are unknown and left out of notifications: unexpected KeyError: 'week'"
    ]
    wait_until(lambda: bool(context.describe_cluster("orders")), DEADLINE_S, "the budgets")
    context.stop()
