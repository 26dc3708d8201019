"""A week's draws: the slowest probes of a minute are distributed as they would be among all 100 probes."""

import numpy as np
import pytest
from numpy.typing import NDArray

from fleetgauge_core.contract import Leg
from fleetgauge_pipelines.simulation import SimulatedWeek
from fleetgauge_pipelines.simulation.incidents import LegHarm
from fleetgauge_pipelines.simulation.simulated_week import (
    MAX_SUCCESS_US,
    PROBES_PER_MINUTE,
    compute_latency_us,
    draw_leg_latencies,
)
from tests.unit.pipelines.simulation.histories import history

CELLS = (4_000, 5)
MEDIAN_US = 10_000.0


def _one_by_one(failed: int) -> NDArray[np.integer]:
    """Return single draws of the successful probes of each cell, the slowest first."""
    depths = np.random.default_rng(5).standard_exponential((*CELLS, PROBES_PER_MINUTE - failed))
    median_us = np.full(1, MEDIAN_US)
    return -np.sort(-compute_latency_us(depths, median_us, np.zeros(1)), axis=-1)


@pytest.mark.parametrize("failed", [0, 40, 98])
def test_the_slowest_probes_are_distributed_as_those_of_single_draws(failed: int) -> None:
    harm = LegHarm.none(*CELLS)
    harm.failing[:] = failed / PROBES_PER_MINUTE
    leg = draw_leg_latencies(np.random.default_rng(6), np.full(CELLS, MEDIAN_US), harm, 0.0, ranks=5)
    cells = leg.failed == failed
    drawn, single = leg.slowest_us[:, cells], _one_by_one(failed)
    for rank in range(min(5, PROBES_PER_MINUTE - failed)):
        for share in (0.1, 0.5, 0.9):
            expected = np.quantile(single[..., rank], share)
            assert np.quantile(drawn[rank], share) == pytest.approx(expected, rel=0.03)


def test_the_median_of_single_probes_is_the_minutes_median() -> None:
    week = history(minutes=120, incidents_per_week=0).simulate_week(0, 0)
    samples = week.samples_us(Leg.LEADER, 1)
    ratio = np.median(samples / week.leader.median_us[60:, :, None])
    assert ratio == pytest.approx(1, rel=0.01)


def _weeks() -> list[SimulatedWeek]:
    fleet = history(minutes=240, incidents_per_week=150)
    return [fleet.simulate_week(cluster, 0) for cluster in range(fleet.clusters)]


@pytest.mark.parametrize("leg", list(Leg))
def test_samples_are_zeros_for_failures_and_then_ascend_to_the_slowest_as_drawn(leg: Leg) -> None:
    for week in _weeks():
        draws, samples = week.leg(leg), week.samples_us(leg, 2)
        during = week.hour(2)
        assert np.all(np.diff(samples, axis=-1) >= 0)
        assert np.array_equal((samples == 0).sum(axis=-1), draws.failed[during])
        top = np.moveaxis(samples[..., ::-1][..., : len(draws.slowest_us)], -1, 0)
        assert np.array_equal(top, draws.slowest_us[:, during])
        assert samples.max() <= MAX_SUCCESS_US


def test_the_tail_is_heavy_but_every_success_is_within_the_deadline() -> None:
    slowest = np.concatenate([week.client.slowest_us[0].ravel() for week in _weeks()])
    calm = history(incidents_per_week=0).simulate_week(0, 0).client
    assert calm.slowest_us[0].max() > 6 * np.median(calm.slowest_us[0])
    assert slowest.max() <= MAX_SUCCESS_US


def test_a_week_without_incidents_is_the_same_outside_of_them() -> None:
    troubled, calm = (
        history(minutes=1000, incidents_per_week=per_week).simulate_week(0, 0) for per_week in (40, 0)
    )
    outside = ~(troubled.client.extra_us.any(axis=1) | (troubled.client.failed > 2).any(axis=1))
    assert 0 < outside.sum() < 1000
    for leg in Leg:
        drawn, plain = (week.leg(leg).slowest_us[:, outside] for week in (troubled, calm))
        assert np.array_equal(drawn, plain)
