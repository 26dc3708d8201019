"""Simulated incidents: when they occur, and how they affect each leg."""

from datetime import timedelta
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fleetgauge_pipelines.simulation import IncidentKind, SimulatedIncident
from fleetgauge_pipelines.simulation.incidents import IncidentHarm, draw_incidents
from fleetgauge_pipelines.simulation.latency_trend import Floats
from fleetgauge_pipelines.simulation.randomness import RandomStream, create_generator
from tests.unit.pipelines.simulation.histories import MONDAY, history

MINUTE = timedelta(minutes=1)
PROFILE = history().profile(0)


@given(st.integers(0, 2**32), st.integers(1, 3000), st.floats(0, 500))
def test_incidents_are_never_adjacent_and_never_in_the_first_or_last_minute(
    seed: int, minutes: int, per_week: float
) -> None:
    rng = create_generator(seed, RandomStream.INCIDENTS)
    incidents = draw_incidents(rng, PROFILE, "x", MONDAY, minutes, per_week)
    last = MONDAY + (minutes - 1) * MINUTE
    assert all(MONDAY < incident.start < incident.end <= last for incident in incidents)
    assert all(incident.end < following.start for incident, following in pairwise(incidents))


def _compute_harm(kind: IncidentKind, brokers: tuple[int, ...]) -> IncidentHarm:
    incident = SimulatedIncident("x", kind, "x", brokers, MONDAY + 2 * MINUTE, MONDAY + 5 * MINUTE, 200_000)
    return IncidentHarm.compute([incident], PROFILE, MONDAY, 8)


def _find_affected(values: Floats) -> dict[int, set[int]]:
    """Return for each affected minute the brokers with a value."""
    return {
        minute: {int(index) + 1 for index in np.flatnonzero(row)}
        for minute, row in enumerate(values)
        if row.any()
    }


def test_a_slow_broker_slows_its_leader_leg_and_all_homes_with_a_replica_on_it() -> None:
    harm = _compute_harm(IncidentKind.BROKER_SLOW, (4,))
    during = range(2, 5)
    assert _find_affected(harm.leader.extra_us) == {minute: {4} for minute in during}
    assert _find_affected(harm.client.extra_us) == {minute: {2, 3, 4} for minute in during}
    assert not harm.client.failing.any()


def test_the_first_broker_holds_replicas_of_the_last_two_homes() -> None:
    last = len(PROFILE.brokers)
    harm = _compute_harm(IncidentKind.BROKER_SLOW, (1,))
    assert _find_affected(harm.client.extra_us)[2] == {1, last, last - 1}


def test_a_hung_broker_affects_other_homes_only_until_it_leaves_the_isr() -> None:
    harm = _compute_harm(IncidentKind.BROKER_HUNG, (4,))
    assert _find_affected(harm.client.failing) == {2: {2, 3, 4}, 3: {4}, 4: {4}}
    assert _find_affected(harm.leader.failing) == {minute: {4} for minute in range(2, 5)}
    assert harm.leader.failing.max() == harm.client.failing[:, 3].max() == 1


def test_a_slow_cluster_is_slow_on_every_broker() -> None:
    harm = _compute_harm(IncidentKind.CLUSTER_SLOW, PROFILE.brokers)
    all_brokers = set(PROFILE.brokers)
    assert _find_affected(harm.leader.extra_us)[2] == _find_affected(harm.client.extra_us)[2] == all_brokers


def test_a_slow_zone_affects_every_home_and_the_leader_leg_of_its_own_brokers() -> None:
    profile = next(profile for profile in history(clusters=10).profiles if profile.tier == "multi-zone")
    racks = zip(profile.brokers, profile.racks, strict=True)
    zone = tuple(broker for broker, rack in racks if rack == profile.racks[0])
    incident = SimulatedIncident(
        "x", IncidentKind.ZONE_NETWORK, "x", zone, MONDAY + MINUTE, MONDAY + 2 * MINUTE, 1
    )
    harm = IncidentHarm.compute([incident], profile, MONDAY, 3)
    assert _find_affected(harm.leader.failing) == {1: set(zone)}
    assert _find_affected(harm.client.failing) == {1: set(profile.brokers)}


def test_without_an_agent_nothing_is_measured_and_no_probe_fails() -> None:
    harm = _compute_harm(IncidentKind.AGENT_GONE, ())
    assert np.flatnonzero(harm.silent).tolist() == [2, 3, 4]
    assert not harm.client.failing.any()
    assert not harm.client.extra_us.any()


@pytest.mark.parametrize(
    "kind",
    [
        IncidentKind.BROKER_HUNG,
        IncidentKind.BROKER_SLOW,
        IncidentKind.CLUSTER_SLOW,
        IncidentKind.ZONE_NETWORK,
    ],
)
def test_incidents_exceed_every_default_objective_for_several_minutes(kind: IncidentKind) -> None:
    fleet = history(clusters=20, minutes=30 * 10_080)
    incidents = [incident for cluster in range(20) for incident in fleet.incidents(cluster)]
    entries = [incident.ledger_entry() for incident in incidents if incident.kind is kind]
    assert all(entry["latency_p99_censored_us_at_least"] > 100_000 for entry in entries)
    assert all(entry["bad_minutes"] >= 3 for entry in entries)
