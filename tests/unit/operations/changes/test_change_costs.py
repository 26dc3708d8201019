"""What `changes --cost` shows of a change's cost."""

from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from fleetgauge_core.tables import CHANGE_COSTS
from fleetgauge_operations.changes.change_costs import cost_document, format_costs, read_costs
from tests.browser.lake import put

NOON = datetime(2026, 3, 2, 12, tzinfo=UTC)


def cost(cluster_id: str = "orders", change_id: str = "c", **values: Any) -> dict[str, Any]:
    return {
        "cluster_id": cluster_id,
        "change_id": change_id,
        "kind": "reassignment",
        "starts": NOON,
        "ends": NOON,
        "minutes_measured": 60,
        "control_weeks": 4,
        "bad_minutes": 14.0,
        "bad_minutes_expected": 2.0,
        "bad_minutes_low": 9.5,
        "bad_minutes_high": 13.25,
        "bad_minutes_verdict": "cost",
        "latency_budget_share": 0.119,
        "availability_spent_minutes": 0.5,
        "availability_spent_minutes_expected": 0.5,
        "availability_spent_minutes_low": None,
        "availability_spent_minutes_high": None,
        "availability_spent_minutes_verdict": "unknown",
        "availability_budget_share": 0.0,
        "computed_at": NOON,
    } | values


def test_a_cost_is_the_difference_with_its_interval_and_what_was_expected() -> None:
    assert format_costs([cost()]) == [
        "orders: bad minutes +12.0, +9.5 to +13.2 (cost: 14.0, 2.0 expected; 12% of a week's budget);"
        " minutes of availability +0.0 (unknown: 0.5, 0.5 expected; 0% of a week's budget)"
    ]
    nothing_known = dict.fromkeys(("bad_minutes", "bad_minutes_expected", "latency_budget_share"))
    (line,) = format_costs([cost(**nothing_known)])
    assert line.startswith(
        "orders: bad minutes unknown: fewer than two of the four weeks before were measured;"
    )
    (line,) = format_costs([cost(**nothing_known, minutes_measured=0)])
    assert line.startswith("orders: bad minutes unknown: nothing was measured meanwhile;")
    (line,) = format_costs([cost(**nothing_known, ends=NOON + timedelta(days=8))])
    assert line.startswith("orders: bad minutes unknown: it lasted longer than a week,")


def test_costs_are_read_by_change_and_the_highest_comes_first(tmp_path: Path) -> None:
    assert read_costs(str(tmp_path), ["c"]) == {}
    rows = [cost(), cost("payments", bad_minutes=50.0), cost("search", "d"), cost("mail", bad_minutes=None)]
    put(tmp_path, CHANGE_COSTS, rows)
    (costs,) = read_costs(str(tmp_path), ["c", "e"]).values()
    assert [row["cluster_id"] for row in costs] == ["payments", "orders", "mail"]


def test_a_document_has_all_but_what_the_change_has() -> None:
    document = cost_document(cost())
    assert (document["cluster"], document["bad_minutes_verdict"]) == ("orders", "cost")
    assert document["computed_at"] == NOON.isoformat()
    assert not document.keys() & {"change_id", "kind", "starts"}
