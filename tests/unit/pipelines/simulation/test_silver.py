"""Simulated probe records, broker-minutes and cluster-minutes agree with each other."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fleetgauge_core.contract import Leg
from fleetgauge_core.slo.levels import CENSORED_LATENCY_US
from fleetgauge_core.tables import BROKER_MINUTES, CLUSTER_MINUTES, Table
from fleetgauge_pipelines.simulation import SimulatedWeek
from fleetgauge_pipelines.simulation.silver import make_broker_minutes, make_cluster_minutes
from tests.oracle import minute_rules
from tests.oracle.compare import find_differences
from tests.oracle.settings import ClusterSettings
from tests.unit.pipelines.simulation.histories import Row, history, records, rows

#: Enough incidents in a week that an hour has one or two.
MANY_INCIDENTS = 150

seeds = st.integers(0, 2**32)


def _silver(week: SimulatedWeek, hours: range) -> list[Row]:
    silver = [row for hour in hours for leg in Leg for row in rows(make_broker_minutes(week, leg, hour))]
    return [row | _collections(row) for row in silver]


def _collections(row: Row) -> Row:
    """Return the columns of lists and maps, in which a masked value is empty."""
    failed, led_by = row["failures"], row["led_by"]
    return {
        "failures": {} if failed is None else {"MSG_TIMED_OUT": failed},
        "led_by": [] if led_by is None else [led_by],
    }


@given(seeds)
@settings(max_examples=6)
def test_the_oracle_computes_the_same_silver_from_the_records(seed: int) -> None:
    fleet = history(seed, clusters=1, minutes=150, incidents_per_week=MANY_INCIDENTS)
    week, hours = fleet.simulate_week(0, 0), range(3)
    brokers = minute_rules.compute_broker_minutes(
        records(week, hours), ClusterSettings(week.profile.cluster_id), 100_000
    )
    _equal(BROKER_MINUTES, [broker.row for broker in brokers], _silver(week, hours))
    _equal(CLUSTER_MINUTES, minute_rules.compute_cluster_minutes(brokers), rows(make_cluster_minutes(week)))


def _equal(table: Table, wanted: list[Row], actual: list[Row]) -> None:
    assert wanted
    assert [str(difference) for difference in find_differences(table, wanted, actual)] == []
    assert all(row.keys() == set(table.column_names) for row in actual)


@given(seeds, st.floats(0, 500))
@settings(max_examples=20)
def test_every_cluster_minute_keeps_the_invariants_of_silver(seed: int, incidents_per_week: float) -> None:
    fleet = history(seed, clusters=1, minutes=600, incidents_per_week=incidents_per_week)
    week = fleet.simulate_week(0, 0)
    columns: dict[str, Any] = dict(make_cluster_minutes(week))
    brokers = columns["brokers_expected"]
    assert np.all(columns["succeeded"] <= columns["attempted"])
    assert np.all(columns["latency_pooled_p99_us"] <= columns["latency_p99_us"])
    assert np.all(columns["latency_p99_us"] <= columns["latency_p99_censored_us"])
    assert np.all(columns["availability"] <= columns["availability_pooled"])
    assert np.all(columns["latency_p99_censored_us"] <= CENSORED_LATENCY_US["client"])
    for name in ("latency_worst_home", "availability_worst_home", "leader_worst_broker"):
        assert np.all((columns[name] >= 1) & (columns[name] <= brokers))


@given(seeds)
@settings(max_examples=20)
def test_unmeasured_minutes_have_only_the_expected_brokers(seed: int) -> None:
    fleet = history(seed, clusters=1, minutes=600, incidents_per_week=300)
    week = fleet.simulate_week(0, 0)
    counted = {"brokers_measured", "attempted", "succeeded"}
    always_set = {"cluster_id", "minute", "day", "brokers_expected"}
    for row, silent in zip(rows(make_cluster_minutes(week)), week.silent, strict=True):
        if silent:
            assert {row[name] for name in counted} == {0}
            assert {row[name] for name in row.keys() - counted - always_set} == {None}
            assert row["brokers_expected"] == len(week.profile.brokers)
        else:
            assert row["brokers_measured"] == len(week.profile.brokers)


def test_a_cluster_minute_has_the_p99_of_its_worst_broker_minute() -> None:
    week = history(minutes=180, incidents_per_week=MANY_INCIDENTS).simulate_week(1, 0)
    worst: dict[Any, int] = {}
    for row in rows(make_broker_minutes(week, Leg.CLIENT, 1)):
        worst[row["minute"]] = max(worst.get(row["minute"], 0), row["latency_p99_us"] or 0)
    p99_by_minute = {row["minute"]: row["latency_p99_us"] for row in rows(make_cluster_minutes(week))}
    assert worst
    assert worst == {minute: p99_by_minute[minute] or 0 for minute in worst}


@pytest.mark.parametrize("cluster", range(3))
def test_the_minutes_of_an_incident_match_its_ledger_entry(cluster: int) -> None:
    fleet = history(minutes=2 * 10_080, incidents_per_week=30)
    minutes = [
        row
        for week in range(fleet.weeks)
        for row in rows(make_cluster_minutes(fleet.simulate_week(cluster, week)))
    ]
    row_by_minute = {row["minute"]: row for row in minutes}
    for incident in fleet.incidents(cluster):
        entry = incident.ledger_entry()
        during = [row for minute, row in row_by_minute.items() if incident.start <= minute < incident.end]
        bad = [row for row in during if (row["latency_p99_censored_us"] or 0) > 100_000]
        silent = [row for row in during if row["brokers_measured"] == 0]
        assert (len(bad), len(silent)) == (entry["bad_minutes"], entry["unmeasured_minutes"])
        at_least = entry["latency_p99_censored_us_at_least"]
        assert all(row["latency_p99_censored_us"] >= at_least for row in bad)
