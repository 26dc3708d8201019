"""Three distances, one history: whole records, broker-minutes and cluster-minutes agree."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fleetgauge_core.contract import Leg
from fleetgauge_core.slo.levels import CENSORED_US
from fleetgauge_core.tables import BROKER_MINUTES, CLUSTER_MINUTES, Table
from fleetgauge_pipelines.simulation import Part
from fleetgauge_pipelines.simulation.silver import broker_minutes, cluster_minutes
from tests.oracle import minute_rules
from tests.oracle.compare import differences
from tests.oracle.settings import ClusterSettings
from tests.unit.pipelines.simulation.histories import Row, history, records, rows

#: So many that an hour has one or two.
TROUBLED = 150

seeds = st.integers(0, 2**32)


def _silver(part: Part, hours: range) -> list[Row]:
    found = [row for hour in hours for leg in Leg for row in rows(broker_minutes(part, leg, hour))]
    return [row | _collections(row) for row in found]


def _collections(row: Row) -> Row:
    """Masked is empty where a column holds lists or maps."""
    failed, led_by = row["failures"], row["led_by"]
    return {
        "failures": {} if failed is None else {"MSG_TIMED_OUT": failed},
        "led_by": [] if led_by is None else [led_by],
    }


@given(seeds)
@settings(max_examples=6)
def test_the_oracle_makes_the_very_same_silver_of_the_records(seed: int) -> None:
    fleet = history(seed, clusters=1, minutes=150, incidents_per_week=TROUBLED)
    part, hours = fleet.part(0, 0), range(3)
    brokers = minute_rules.broker_minutes(
        records(part, hours), ClusterSettings(part.profile.cluster_id), 100_000
    )
    _equal(BROKER_MINUTES, [one.row for one in brokers], _silver(part, hours))
    _equal(CLUSTER_MINUTES, minute_rules.cluster_minutes(brokers), rows(cluster_minutes(part)))


def _equal(table: Table, wanted: list[Row], found: list[Row]) -> None:
    assert wanted
    assert [str(one) for one in differences(table, wanted, found)] == []
    assert all(row.keys() == set(table.names) for row in found)


@given(seeds, st.floats(0, 500))
@settings(max_examples=20)
def test_what_must_hold_of_every_cluster_minute_holds(seed: int, incidents_per_week: float) -> None:
    fleet = history(seed, clusters=1, minutes=600, incidents_per_week=incidents_per_week)
    part = fleet.part(0, 0)
    columns: dict[str, Any] = dict(cluster_minutes(part))
    brokers = columns["brokers_expected"]
    assert np.all(columns["succeeded"] <= columns["attempted"])
    assert np.all(columns["latency_pooled_p99_us"] <= columns["latency_p99_us"])
    assert np.all(columns["latency_p99_us"] <= columns["latency_p99_censored_us"])
    assert np.all(columns["availability"] <= columns["availability_pooled"])
    assert np.all(columns["latency_p99_censored_us"] <= CENSORED_US["client"])
    for name in ("latency_worst_home", "availability_worst_home", "leader_worst_broker"):
        assert np.all((columns[name] >= 1) & (columns[name] <= brokers))


@given(seeds)
@settings(max_examples=20)
def test_minutes_that_nobody_measured_hold_nothing_but_who_was_expected(seed: int) -> None:
    fleet = history(seed, clusters=1, minutes=600, incidents_per_week=300)
    part = fleet.part(0, 0)
    counted = {"brokers_measured", "attempted", "succeeded"}
    known = {"cluster_id", "minute", "day", "brokers_expected"}
    for row, silent in zip(rows(cluster_minutes(part)), part.silent, strict=True):
        if silent:
            assert {row[name] for name in counted} == {0}
            assert {row[name] for name in row.keys() - counted - known} == {None}
            assert row["brokers_expected"] == len(part.profile.brokers)
        else:
            assert row["brokers_measured"] == len(part.profile.brokers)


def test_the_worst_of_the_broker_minutes_is_the_cluster_minutes() -> None:
    part = history(minutes=180, incidents_per_week=TROUBLED).part(1, 0)
    worst: dict[Any, int] = {}
    for row in rows(broker_minutes(part, Leg.CLIENT, 1)):
        worst[row["minute"]] = max(worst.get(row["minute"], 0), row["latency_p99_us"] or 0)
    of_cluster = {row["minute"]: row["latency_p99_us"] for row in rows(cluster_minutes(part))}
    assert worst
    assert worst == {minute: of_cluster[minute] or 0 for minute in worst}


@pytest.mark.parametrize("cluster", range(3))
def test_every_minute_of_an_incident_is_as_bad_as_its_ledger_says_or_not_measured(cluster: int) -> None:
    fleet = history(minutes=2 * 10_080, incidents_per_week=30)
    minutes = [row for week in range(fleet.weeks) for row in rows(cluster_minutes(fleet.part(cluster, week)))]
    at = {row["minute"]: row for row in minutes}
    for incident in fleet.incidents(cluster):
        entry = incident.entry()
        during = [row for minute, row in at.items() if incident.start <= minute < incident.end]
        bad = [row for row in during if (row["latency_p99_censored_us"] or 0) > 100_000]
        silent = [row for row in during if row["brokers_measured"] == 0]
        assert (len(bad), len(silent)) == (entry["bad_minutes"], entry["unmeasured_minutes"])
        at_least = entry["latency_p99_censored_us_at_least"]
        assert all(row["latency_p99_censored_us"] >= at_least for row in bad)
