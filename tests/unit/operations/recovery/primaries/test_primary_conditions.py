"""What `recover run` hears of services."""

from datetime import UTC, datetime
from pathlib import Path

from fleetgauge_core.fleet import Fleet
from fleetgauge_operations.recovery.primaries.primary_conditions import ServicesEye
from fleetgauge_operations.recovery.readiness.plan.conditions import Kind, Whom

NOON = datetime(2026, 3, 2, 12, tzinfo=UTC)


def eye(command: list[str] | None) -> ServicesEye:
    recovery = {"primaries": {"command": command, "services": {"billing": ".*"}}} if command else {}
    clusters = [{"id": "north", "bootstrap": "a:1"}, {"id": "south", "bootstrap": "b:1"}]
    return ServicesEye(Fleet.model_validate({"clusters": clusters, "recovery": recovery}), lambda: NOON)


def test_a_fleet_without_a_store_says_nothing() -> None:
    assert eye(None).conditions(frozenset()) == ()


def test_a_store_that_cannot_be_read_ends_nothing_that_it_said(tmp_path: Path) -> None:
    said = tmp_path / "claims.json"
    said.write_text(
        '[{"service": "billing", "primary": "north"}, {"service": "billing", "primary": "south"}]'
    )
    of = eye(["cat", str(said)])
    (two,) = of.conditions(frozenset({"north", "south"}))
    assert two.whom == Whom(Kind.PRIMARY_TWO, "", subject="billing")
    assert two.summary.startswith("billing: ")
    said.unlink()
    kept, unread = of.conditions(frozenset({"north", "south"}))
    assert (kept, unread.whom) == (two, Whom(Kind.PRIMARIES_UNREAD, ""))
    assert "claims.json" in unread.words[0]
    said.write_text('[{"service": "billing", "primary": "south"}]')
    assert of.conditions(frozenset({"north", "south"})) == ()
