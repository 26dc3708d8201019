"""Primary findings as readiness conditions."""

from datetime import UTC, datetime
from pathlib import Path

from fleetgauge_core.fleet import Fleet
from fleetgauge_operations.recovery.primaries.primary_conditions import PrimaryMonitor
from fleetgauge_operations.recovery.readiness.plan.conditions import ConditionKey, ConditionKind

NOON = datetime(2026, 3, 2, 12, tzinfo=UTC)


def build_monitor(command: list[str] | None) -> PrimaryMonitor:
    recovery = {"primaries": {"command": command, "services": {"billing": ".*"}}} if command else {}
    clusters = [{"id": "north", "bootstrap": "a:1"}, {"id": "south", "bootstrap": "b:1"}]
    return PrimaryMonitor(Fleet.model_validate({"clusters": clusters, "recovery": recovery}), lambda: NOON)


def test_a_fleet_without_a_lease_store_has_no_conditions() -> None:
    assert build_monitor(None).check(frozenset()) == ()


def test_conditions_remain_while_the_lease_store_cannot_be_read(tmp_path: Path) -> None:
    store = tmp_path / "leases.json"
    store.write_text(
        '[{"service": "billing", "primary": "north"}, {"service": "billing", "primary": "south"}]'
    )
    monitor = build_monitor(["cat", str(store)])
    (conflict,) = monitor.check(frozenset({"north", "south"}))
    assert conflict.key == ConditionKey(ConditionKind.PRIMARY_TWO, "", subject="billing")
    assert conflict.summary.startswith("billing: ")
    store.unlink()
    kept, unread = monitor.check(frozenset({"north", "south"}))
    assert (kept, unread.key) == (conflict, ConditionKey(ConditionKind.PRIMARIES_UNREAD, ""))
    assert "leases.json" in unread.details[0]
    store.write_text('[{"service": "billing", "primary": "south"}]')
    assert monitor.check(frozenset({"north", "south"})) == ()
