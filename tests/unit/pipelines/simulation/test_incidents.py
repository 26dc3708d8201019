"""Planted incidents: where they may lie, and what they do to which leg."""

from datetime import timedelta
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fleetgauge_pipelines.simulation import Incident, Kind
from fleetgauge_pipelines.simulation.incidents import Harms, plant
from fleetgauge_pipelines.simulation.pace import Floats
from fleetgauge_pipelines.simulation.randomness import Stream, generator
from tests.unit.pipelines.simulation.histories import MONDAY, history

MINUTE = timedelta(minutes=1)
PROFILE = history().profile(0)


@given(st.integers(0, 2**32), st.integers(1, 3000), st.floats(0, 500))
def test_incidents_lie_apart_and_never_in_the_first_or_last_minute(
    seed: int, minutes: int, per_week: float
) -> None:
    rng = generator(seed, Stream.INCIDENTS)
    found = plant(rng, PROFILE, "x", MONDAY, minutes, per_week)
    last = MONDAY + (minutes - 1) * MINUTE
    assert all(MONDAY < one.start < one.end <= last for one in found)
    assert all(one.end < next_one.start for one, next_one in pairwise(found))


def _harms(kind: Kind, brokers: tuple[int, ...]) -> Harms:
    incident = Incident("x", kind, "x", brokers, MONDAY + 2 * MINUTE, MONDAY + 5 * MINUTE, 200_000)
    return Harms.of([incident], PROFILE, MONDAY, 8)


def _touched(values: Floats) -> dict[int, set[int]]:
    """Minute to the brokers that have a value then."""
    return {
        minute: {int(b) + 1 for b in np.flatnonzero(row)} for minute, row in enumerate(values) if row.any()
    }


def test_a_slow_broker_is_slow_itself_and_felt_wherever_it_holds_a_replica() -> None:
    harms = _harms(Kind.BROKER_SLOW, (4,))
    during = range(2, 5)
    assert _touched(harms.leader.extra_us) == {minute: {4} for minute in during}
    assert _touched(harms.client.extra_us) == {minute: {2, 3, 4} for minute in during}
    assert not harms.client.failing.any()


def test_the_first_brokers_replicas_are_on_the_homes_before_it_in_the_ring() -> None:
    last = len(PROFILE.brokers)
    harms = _harms(Kind.BROKER_SLOW, (1,))
    assert _touched(harms.client.extra_us)[2] == {1, last, last - 1}


def test_a_hung_broker_fails_alone_once_it_is_out_of_sync() -> None:
    harms = _harms(Kind.BROKER_HUNG, (4,))
    assert _touched(harms.client.failing) == {2: {2, 3, 4}, 3: {4}, 4: {4}}
    assert _touched(harms.leader.failing) == {minute: {4} for minute in range(2, 5)}
    assert harms.leader.failing.max() == harms.client.failing[:, 3].max() == 1


def test_a_slow_cluster_is_slow_everywhere() -> None:
    harms = _harms(Kind.CLUSTER_SLOW, PROFILE.brokers)
    everybody = set(PROFILE.brokers)
    assert _touched(harms.leader.extra_us)[2] == _touched(harms.client.extra_us)[2] == everybody


def test_a_zones_network_is_felt_by_every_client_and_blamed_on_its_own_brokers() -> None:
    multi = next(one for one in history(clusters=10).profiles if one.tier == "multi-zone")
    zone = tuple(b for b, rack in zip(multi.brokers, multi.racks, strict=True) if rack == multi.racks[0])
    incident = Incident("x", Kind.ZONE_NETWORK, "x", zone, MONDAY + MINUTE, MONDAY + 2 * MINUTE, 1)
    harms = Harms.of([incident], multi, MONDAY, 3)
    assert _touched(harms.leader.failing) == {1: set(zone)}
    assert _touched(harms.client.failing) == {1: set(multi.brokers)}


def test_an_agent_that_is_gone_measures_nothing_and_harms_nobody() -> None:
    harms = _harms(Kind.AGENT_GONE, ())
    assert np.flatnonzero(harms.silent).tolist() == [2, 3, 4]
    assert not harms.client.failing.any()
    assert not harms.client.extra_us.any()


@pytest.mark.parametrize("kind", [Kind.BROKER_HUNG, Kind.BROKER_SLOW, Kind.CLUSTER_SLOW, Kind.ZONE_NETWORK])
def test_a_ledgers_line_promises_bad_minutes_over_any_built_in_objective(kind: Kind) -> None:
    fleet = history(clusters=20, minutes=30 * 10_080)
    entries = [i.entry() for c in range(20) for i in fleet.incidents(c) if i.kind is kind]
    assert all(entry["latency_p99_censored_us_at_least"] > 100_000 for entry in entries)
    assert all(entry["bad_minutes"] >= 3 for entry in entries)
