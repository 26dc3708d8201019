"""The simulated fleet: the same seed, the same fleet, whichever part is made first."""

import json
from random import Random
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fleetgauge_core.contract import Leg
from fleetgauge_core.fleet import Fleet
from fleetgauge_pipelines.simulation import Kind
from fleetgauge_pipelines.simulation.silver import Columns, cluster_minutes
from tests.unit.pipelines.simulation.histories import MONDAY, WEEK, history, records


def _same(one: Columns, other: Columns) -> bool:
    return one.keys() == other.keys() and all(_equal(one[name], other[name]) for name in one)


def _equal(one: Any, other: Any) -> bool:
    if not isinstance(one, np.ndarray):
        return bool(one == other)
    bits = [np.ma.filled(values, 0).tobytes() for values in (one, other)]
    return bits[0] == bits[1] and np.array_equal(np.ma.getmaskarray(one), np.ma.getmaskarray(other))


@given(st.integers(0, 2**63), st.randoms(use_true_random=False))
@settings(max_examples=5)
def test_any_order_of_making_gives_the_same_history(seed: int, order: Random) -> None:
    places = [(cluster, week) for cluster in range(2) for week in range(2)]
    inorder = {place: cluster_minutes(history(seed, 2).part(*place)) for place in places}
    order.shuffle(places)
    one = history(seed, 2)
    assert all(_same(cluster_minutes(one.part(*place)), inorder[place]) for place in places)


def test_another_seed_is_another_fleet() -> None:
    one, other = (history(seed).part(0, 0) for seed in (1, 2))
    assert one.profile != other.profile
    assert not np.array_equal(one.client.slowest_us[1, :, 0], other.client.slowest_us[1, :, 0])


def test_more_clusters_and_more_weeks_leave_those_there_were_as_they_were() -> None:
    small, large = history(clusters=2, minutes=WEEK), history(clusters=5, minutes=12 * WEEK)
    assert small.profiles == large.profiles[:2]
    assert all(_same(cluster_minutes(small.part(c, 0)), cluster_minutes(large.part(c, 0))) for c in range(2))


def test_an_hour_alone_is_the_hour_among_others() -> None:
    part = history(minutes=180).part(1, 0)
    alone = records(part, range(2, 3))
    assert records(part, range(3))[-len(alone) :] == alone


def test_a_history_may_end_within_an_hour_and_a_week() -> None:
    fleet = history(minutes=WEEK + 90)
    assert (fleet.weeks, fleet.hours) == (2, 170)
    assert fleet.part(0, 1).hour(169) == slice(60, 90)
    last = cluster_minutes(fleet.part(0, 1))["minute"]
    assert isinstance(last, np.ndarray)
    assert (len(last), str(last[-1])) == (90, "2026-03-09T01:29:00.000000")


def test_its_fleet_file_is_valid_and_marked() -> None:
    fleet = Fleet.model_validate(history(clusters=25).document())
    assert (fleet.name, fleet.simulated, len(fleet.clusters)) == ("simulated-1", True, 25)
    assert all(one.bootstrap.endswith(".invalid:9092") and one.cloud and one.region for one in fleet.clusters)
    assert {one.tier for one in fleet.clusters} == {"single-zone", "multi-zone"}


def test_clusters_have_three_to_twelve_brokers() -> None:
    sizes = {len(profile.brokers) for profile in history(clusters=300).profiles}
    assert sizes == set(range(3, 13))


def test_the_ledger_names_everything_that_was_planted() -> None:
    fleet = history(clusters=10, minutes=10 * WEEK)
    entries = json.loads(json.dumps(fleet.ledger()))["incidents"]
    assert [entry["id"] for entry in entries] == [
        incident.id for cluster in range(10) for incident in fleet.incidents(cluster)
    ]
    assert {entry["kind"] for entry in entries} == set(Kind)
    assert len({entry["id"] for entry in entries}) == len(entries)
    assert 50 < len(entries) < 120, "0.8 a week and cluster"
    for entry in entries:
        assert entry["bad_minutes"] + entry["unmeasured_minutes"] > 0
        assert (entry["kind"] == Kind.AGENT_GONE) == (entry["unmeasured_minutes"] > 0)


@pytest.mark.parametrize("minutes", [1, 2, 59])
def test_the_shortest_histories_can_be_made(minutes: int) -> None:
    part = history(minutes=minutes, incidents_per_week=1e6).part(0, 0)
    assert len(records(part, range(1))) == minutes * len(part.profile.brokers) * len(Leg)
    assert part.start == MONDAY
