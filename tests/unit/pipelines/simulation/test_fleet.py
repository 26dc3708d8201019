"""The simulated fleet: the same seed gives the same fleet, in whichever order its weeks are simulated."""

import json
from random import Random
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fleetgauge_core.contract import Leg
from fleetgauge_core.fleet import Fleet
from fleetgauge_pipelines.simulation import IncidentKind
from fleetgauge_pipelines.simulation.silver import Columns, make_cluster_minutes
from tests.unit.pipelines.simulation.histories import MONDAY, WEEK, history, records


def _same_columns(left: Columns, right: Columns) -> bool:
    return left.keys() == right.keys() and all(_same_values(left[name], right[name]) for name in left)


def _same_values(left: Any, right: Any) -> bool:
    if not isinstance(left, np.ndarray):
        return bool(left == right)
    bits = [np.ma.filled(values, 0).tobytes() for values in (left, right)]
    return bits[0] == bits[1] and np.array_equal(np.ma.getmaskarray(left), np.ma.getmaskarray(right))


@given(st.integers(0, 2**63), st.randoms(use_true_random=False))
@settings(max_examples=5)
def test_simulating_weeks_in_any_order_gives_the_same_history(seed: int, order: Random) -> None:
    weeks = [(cluster, week) for cluster in range(2) for week in range(2)]
    in_order = {
        (cluster, week): make_cluster_minutes(history(seed, 2).simulate_week(cluster, week))
        for cluster, week in weeks
    }
    order.shuffle(weeks)
    fleet = history(seed, 2)
    for cluster, week in weeks:
        columns = make_cluster_minutes(fleet.simulate_week(cluster, week))
        assert _same_columns(columns, in_order[cluster, week])


def test_another_seed_gives_another_fleet() -> None:
    first, second = (history(seed).simulate_week(0, 0) for seed in (1, 2))
    assert first.profile != second.profile
    assert not np.array_equal(first.client.slowest_us[1, :, 0], second.client.slowest_us[1, :, 0])


def test_more_clusters_and_weeks_do_not_change_the_existing_ones() -> None:
    small, large = history(clusters=2, minutes=WEEK), history(clusters=5, minutes=12 * WEEK)
    assert small.profiles == large.profiles[:2]
    for cluster in range(2):
        columns = [make_cluster_minutes(fleet.simulate_week(cluster, 0)) for fleet in (small, large)]
        assert _same_columns(*columns)


def test_an_hour_has_the_same_records_alone_and_among_others() -> None:
    week = history(minutes=180).simulate_week(1, 0)
    alone = records(week, range(2, 3))
    assert records(week, range(3))[-len(alone) :] == alone


def test_a_history_may_end_within_an_hour_and_a_week() -> None:
    fleet = history(minutes=WEEK + 90)
    assert (fleet.weeks, fleet.hours) == (2, 170)
    assert fleet.simulate_week(0, 1).hour(169) == slice(60, 90)
    last = make_cluster_minutes(fleet.simulate_week(0, 1))["minute"]
    assert isinstance(last, np.ndarray)
    assert (len(last), str(last[-1])) == (90, "2026-03-09T01:29:00.000000")


def test_the_fleet_file_is_valid_and_marked_as_simulated() -> None:
    fleet = Fleet.model_validate(history(clusters=25).fleet_document())
    assert (fleet.name, fleet.simulated, len(fleet.clusters)) == ("simulated-1", True, 25)
    for cluster in fleet.clusters:
        assert cluster.bootstrap.endswith(".invalid:9092")
        assert cluster.cloud
        assert cluster.region
    assert {cluster.tier for cluster in fleet.clusters} == {"single-zone", "multi-zone"}


def test_clusters_have_three_to_twelve_brokers() -> None:
    sizes = {len(profile.brokers) for profile in history(clusters=300).profiles}
    assert sizes == set(range(3, 13))


def test_the_ledger_lists_every_incident() -> None:
    fleet = history(clusters=10, minutes=10 * WEEK)
    entries = json.loads(json.dumps(fleet.ledger()))["incidents"]
    assert [entry["id"] for entry in entries] == [
        incident.id for cluster in range(10) for incident in fleet.incidents(cluster)
    ]
    assert {entry["kind"] for entry in entries} == set(IncidentKind)
    assert len({entry["id"] for entry in entries}) == len(entries)
    planned = {"roll", "reassignment", "throttle", "release"}
    assert 50 < sum(entry["kind"] not in planned for entry in entries) < 120, "0.8 per week and cluster"
    for entry in entries:
        assert (entry["cause"] is None) == (entry["kind"] == IncidentKind.AGENT_GONE)
        assert entry["bad_minutes"] + entry["unmeasured_minutes"] > 0
        assert (entry["kind"] == IncidentKind.AGENT_GONE) == (entry["unmeasured_minutes"] > 0)


@pytest.mark.parametrize("minutes", [1, 2, 59])
def test_the_shortest_histories_can_be_simulated(minutes: int) -> None:
    week = history(minutes=minutes, incidents_per_week=1e6).simulate_week(0, 0)
    assert len(records(week, range(1))) == minutes * len(week.profile.brokers) * len(Leg)
    assert week.start == MONDAY
