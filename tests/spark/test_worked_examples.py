"""Weeks whose levels can be computed by hand, as Spark computes them."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from itertools import count
from typing import Any

import pytest
from pyspark.sql import SparkSession

from fleetgauge_core.contract import PROBE_MINUTE
from fleetgauge_core.tables import (
    BROKER_MINUTES,
    CLUSTER_MINUTES,
    CLUSTER_WEEKS,
    FLEET_WEEKS,
)
from tests.spark.broken import Record, good_record
from tests.spark.lakes import opened, raw_frame, rows

MINUTE = timedelta(minutes=1)
#: Its clocks go back for Ramadan and forward after it, so that both weeks are near each other.
ZONE = "Africa/Casablanca"
LONG = datetime(2026, 2, 8, 23, tzinfo=UTC), datetime(2026, 2, 16, tzinfo=UTC)
EMPTY = datetime(2026, 2, 23, tzinfo=UTC), datetime(2026, 3, 2, tzinfo=UTC)
SHORT = datetime(2026, 3, 16, tzinfo=UTC), datetime(2026, 3, 22, 23, tzinfo=UTC)
#: A Monday; its week, and the next one, of which one cluster tells.
NOON = datetime(2026, 3, 2, 12, tzinfo=UTC)
THIS_WEEK, NEXT_WEEK = date(2026, 3, 2), date(2026, 3, 9)
CASES = ("long", "empty", "alone", "rebuilt", "renumbered", "sparse", "short")
FLEET: dict[str, Any] = {
    "week": {"zone": ZONE, "start": "monday"},
    "clusters": [{"id": case, "bootstrap": "nowhere:9092", "labels": {"case": case}} for case in CASES],
}
Row = dict[str, Any]


def _records() -> Iterator[Record]:
    """Yield records of healthy minutes: their p99 is 2,990 us plus an offset by sequence."""
    for case, first, last in (
        ("long", LONG[0], LONG[1] - MINUTE),
        ("short", SHORT[0], SHORT[1] - MINUTE),
        ("empty", EMPTY[0] - MINUTE, EMPTY[1]),
    ):
        yield from _observe(case, [first, last])
        # A single late record would not begin the measurement.
        yield good_record(0, first, case, 1, "leader") | {"expected_brokers": (1,)}
    yield from _observe("alone", _minutes(range(20)))
    yield from _observe("rebuilt", _minutes(range(10)), (1, 2, 3))
    yield from _observe("rebuilt", _minutes(range(12, 20)), (11, 12, 13), kafka_cluster_uuid="another")
    yield from _observe("renumbered", _minutes(range(10)), (1, 2, 3))
    yield from _observe("renumbered", _minutes(range(10, 20)), (1, 2, 4))
    yield from _observe("sparse", [case + timedelta(days=7) for case in _minutes([0, 1, 2, 3, 4, 5, 6, 9])])


def _minutes(numbers: Iterable[int]) -> list[datetime]:
    return [NOON + number * MINUTE for number in numbers]


def _observe(
    cluster: str, minutes: Iterable[datetime], brokers: Sequence[int] = (1,), **more: Any
) -> Iterator[Record]:
    for minute in minutes:
        for broker in brokers:
            yield good_record(0, minute, cluster, broker) | {"expected_brokers": brokers} | more


@dataclass(frozen=True, slots=True)
class Worked:
    """The tables, read once."""

    broker_minutes: list[Row]
    cluster_minutes: list[Row]
    weeks: dict[tuple[str, date], Row]
    fleet: dict[tuple[date, str, str, str], Row]

    def minute(self, cluster: str, number: int) -> Row:
        (row,) = (
            row
            for row in self.cluster_minutes
            if (row["cluster_id"], row["minute"]) == (cluster, NOON + number * MINUTE)
        )
        return row

    def brokers(self, cluster: str, number: int) -> set[int]:
        at = (cluster, NOON + number * MINUTE, "client")
        return {
            row["broker_id"]
            for row in self.broker_minutes
            if (row["cluster_id"], row["minute"], row["leg"]) == at
        }


@pytest.fixture(scope="module")
def worked(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Worked:
    folder = tmp_path_factory.mktemp("worked")
    _, pipeline = opened(spark, folder, FLEET)
    numbers = count()
    values = [PROBE_MINUTE.encode(record | {"sequence": next(numbers)}) for record in _records()]
    pipeline.process(raw_frame(spark, values), "worked", datetime(2026, 12, 1, tzinfo=UTC))
    return Worked(
        rows(folder, BROKER_MINUTES),
        rows(folder, CLUSTER_MINUTES),
        {(row["cluster_id"], row["week"]): row for row in rows(folder, CLUSTER_WEEKS)},
        {
            (row["week"], row["metric"], row["segment"], row["segment_value"]): row
            for row in rows(folder, FLEET_WEEKS)
        },
    )


@pytest.mark.parametrize(
    ("case", "week", "minutes", "budget"),
    [("short", date(2026, 3, 16), 10_020, 100.2), ("long", date(2026, 2, 9), 10_140, 101.4)],
)
def test_a_week_with_a_clock_change_has_the_budget_of_its_minutes(
    worked: Worked, case: str, week: date, minutes: int, budget: float
) -> None:
    row = worked.weeks[case, week]
    assert (row["minutes_expected"], row["minutes_measured"]) == (minutes, 2)
    assert row["latency_budget_minutes"] == row["latency_budget_left_minutes"] == budget
    assert row["availability_budget_minutes"] == pytest.approx(minutes * 0.0005)
    assert row["coverage"] == pytest.approx(2 / minutes, rel=1e-12)
    assert [key for key in worked.weeks if key[0] == case] == [(case, week)]


def test_a_week_without_records_is_expected_and_has_no_levels(worked: Worked) -> None:
    row = worked.weeks["empty", EMPTY[0].date()]
    assert (row["minutes_expected"], row["minutes_measured"], row["coverage"]) == (10_080, 0, 0.0)
    levels = ("latency_p99_us", "latency_p99_censored_us", "availability_p99", "availability_ratio")
    assert {row[name] for name in levels} == {None}
    assert (row["bad_minutes"], row["latency_budget_left_minutes"]) == (0, 100.8)
    assert row["availability_spent_minutes"] == 0.0


def test_all_quantiles_of_a_fleet_of_one_cluster_are_that_clusters_levels(worked: Worked) -> None:
    cluster = worked.weeks["alone", THIS_WEEK]
    for metric in ("latency_p99_us", "availability_p99", "availability_ratio", "latency_budget_left_minutes"):
        row = worked.fleet[THIS_WEEK, metric, "case", "alone"]
        assert row["median"] == row["p90"] == row["p99"] == cluster[metric]
        assert (row["clusters"], row["clusters_excluded"]) == (1, 0)


def test_a_rebuilt_cluster_continues_with_its_new_brokers(worked: Worked) -> None:
    """18 of 20 minutes have all three brokers; the two between expect the earlier brokers."""
    assert [worked.brokers("rebuilt", minute) for minute in (9, 10, 11)] == [{1, 2, 3}] * 3
    assert worked.brokers("rebuilt", 12) == {11, 12, 13}
    row = worked.weeks["rebuilt", THIS_WEEK]
    assert (row["minutes_expected"], row["minutes_measured"], row["coverage"]) == (20, 18, 0.9)
    assert worked.fleet[THIS_WEEK, "latency_p99_us", "case", "rebuilt"]["clusters"] == 1


def test_a_renumbered_broker_is_expected_under_one_id_at_a_time(worked: Worked) -> None:
    assert worked.brokers("renumbered", 9) == {1, 2, 3}
    assert worked.brokers("renumbered", 10) == {1, 2, 4}
    assert {worked.minute("renumbered", minute)["brokers_expected"] for minute in range(20)} == {3}
    assert worked.weeks["renumbered", THIS_WEEK]["coverage"] == 1.0


def test_a_cluster_under_ninety_percent_coverage_is_excluded_from_the_fleets_week(
    worked: Worked,
) -> None:
    row = worked.weeks["sparse", NEXT_WEEK]
    assert (row["minutes_expected"], row["minutes_measured"], row["coverage"]) == (10, 8, 0.8)
    assert row["latency_p99_us"] is not None


def test_a_fleet_week_without_a_counting_cluster_has_rows_without_levels(worked: Worked) -> None:
    fleet_rows = [row for (week, *_), row in worked.fleet.items() if week == NEXT_WEEK]
    assert {(row["segment"], row["segment_value"]) for row in fleet_rows} == {
        ("fleet", ""),
        ("tier", "single-zone"),
        ("case", "sparse"),
    }
    assert {(row["clusters"], row["clusters_excluded"]) for row in fleet_rows} == {(0, 1)}
    assert {row[name] for row in fleet_rows for name in ("median", "p90", "p99")} == {None}
