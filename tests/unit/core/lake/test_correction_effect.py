"""Corrections of minutes that a lake does not hold, and will not."""

from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from fleetgauge_core.lake.correction_effect import explain_ineffective_correction
from fleetgauge_core.slo.correction_effect import CorrectableFleet
from fleetgauge_core.tables import BROKER_MINUTES, CLUSTER_MINUTES, CORRECTIONS
from tests.browser.lake import put

NOW = datetime(2026, 3, 2, 12, tzinfo=UTC)
HOUR, DAY = timedelta(hours=1), timedelta(days=1)
FLEET = CorrectableFleet(
    {"orders": frozenset({("region", "eu")}), "search": frozenset({("region", "eu")})}, "UTC"
)


@pytest.fixture(scope="module")
def lake(tmp_path_factory: pytest.TempPathFactory) -> str:
    """A lake with three brokers of one cluster, measured in the last two hours but for the last minute."""
    root = tmp_path_factory.mktemp("lake")
    minutes = [NOW - timedelta(minutes=n) for n in range(2, 120)]
    rows = [{"cluster_id": "orders", "minute": minute, "day": minute.date()} for minute in minutes]
    put(root, CLUSTER_MINUTES, rows)
    put(root, BROKER_MINUTES, [row | {"broker_id": n, "leg": "client"} for row in rows for n in (1, 2, 3)])
    put(root, CORRECTIONS, [])
    return str(root)


def explain(lake: str, starts: datetime, ends: datetime, **columns: Any) -> str:
    row = {"correction_id": "new", "scope": "cluster", "cluster_id": "orders", "starts": starts, "ends": ends}
    return explain_ineffective_correction(row | columns, lake, FLEET, NOW) or ""


@pytest.mark.parametrize("broker_id", [None, 2])
@pytest.mark.parametrize(
    ("starts", "ends"),
    [
        (NOW - HOUR, NOW - HOUR / 2),
        (NOW - 2 * DAY, NOW - HOUR),
        (NOW - timedelta(minutes=1), NOW),
        (NOW + DAY, NOW + DAY + HOUR),
    ],
)
def test_minutes_that_were_measured_or_may_still_be_can_be_excluded(
    lake: str, broker_id: int | None, starts: datetime, ends: datetime
) -> None:
    assert explain(lake, starts, ends, broker_id=broker_id) == ""


def test_minutes_before_the_first_one_of_the_lake_are_named(lake: str) -> None:
    reason = explain(lake, NOW - 2 * DAY, NOW - DAY)
    assert reason == "no minute of orders from 2026-02-28T12:00Z to 2026-03-01T12:00Z is in the lake"


def test_a_repetition_that_was_over_before_the_first_minute_is_named(lake: str) -> None:
    over = {"recurs": "daily", "recurs_until": NOW - 3 * DAY}
    assert "no minute of orders" in explain(lake, NOW - 9 * DAY, NOW - 9 * DAY + HOUR, **over)
    assert explain(lake, NOW - 9 * DAY, NOW - 9 * DAY + HOUR, recurs="daily") == ""


def test_a_cluster_that_was_never_measured_can_be_corrected_while_its_minutes_may_arrive(lake: str) -> None:
    assert explain(lake, NOW - 2 * DAY, NOW - DAY, cluster_id="search") == ""
    assert "no minute of search" in explain(lake, NOW - 99 * DAY, NOW - 98 * DAY, cluster_id="search")


def test_a_segment_can_be_corrected_if_one_of_its_clusters_can(lake: str) -> None:
    segment = {"scope": "segment", "cluster_id": None, "segment": "region", "segment_value": "eu"}
    assert explain(lake, NOW - HOUR, NOW, **segment) == ""
    assert "no minute of orders" in explain(lake, NOW - 99 * DAY, NOW - 98 * DAY, **segment)


@pytest.mark.parametrize(
    ("starts", "ends", "reason"),
    [
        (NOW - HOUR, NOW - HOUR / 2, "broker 9 was not measured within the range"),
        (NOW - HOUR, NOW + HOUR, "broker 9 was not measured in the last 7 days"),
        (NOW + DAY, NOW + DAY + HOUR, "broker 9 was not measured in the last 7 days"),
    ],
)
def test_a_broker_that_was_not_measured_is_named(
    lake: str, starts: datetime, ends: datetime, reason: str
) -> None:
    assert explain(lake, starts, ends, scope="broker", broker_id=9) == reason


def test_a_lake_without_minutes_refuses_nothing(tmp_path: Path) -> None:
    put(tmp_path, CORRECTIONS, [])
    for broker_id in (None, 9):
        assert explain(str(tmp_path), NOW - 99 * DAY, NOW - 98 * DAY, broker_id=broker_id) == ""
