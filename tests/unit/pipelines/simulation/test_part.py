"""A part's draws: the slowest of a minute are what they would be among all 100 probes."""

import numpy as np
import pytest
from numpy.typing import NDArray

from fleetgauge_core.contract import Leg
from fleetgauge_pipelines.simulation import Part
from fleetgauge_pipelines.simulation.incidents import Harm
from fleetgauge_pipelines.simulation.part import ATTEMPTS, LONGEST_US, draw_leg, latency_us
from tests.unit.pipelines.simulation.histories import history

CELLS = (4_000, 5)
MEDIAN_US = 10_000.0


def _one_by_one(failed: int) -> NDArray[np.integer]:
    """Cells of as many single draws as succeed, the slowest first."""
    depths = np.random.default_rng(5).standard_exponential((*CELLS, ATTEMPTS - failed))
    every = np.full(1, MEDIAN_US)
    return -np.sort(-latency_us(depths, every, np.zeros(1)), axis=-1)


@pytest.mark.parametrize("failed", [0, 40, 98])
def test_the_slowest_are_distributed_as_the_slowest_of_single_draws(failed: int) -> None:
    harm = Harm.none(*CELLS)
    harm.failing[:] = failed / ATTEMPTS
    leg = draw_leg(np.random.default_rng(6), np.full(CELLS, MEDIAN_US), harm, 0.0, ranks=5)
    exactly = leg.failed == failed
    drawn, single = leg.slowest_us[:, exactly], _one_by_one(failed)
    for rank in range(min(5, ATTEMPTS - failed)):
        for share in (0.1, 0.5, 0.9):
            wanted = np.quantile(single[..., rank], share)
            assert np.quantile(drawn[rank], share) == pytest.approx(wanted, rel=0.03)


def test_the_median_of_single_probes_is_the_minutes_median() -> None:
    part = history(minutes=120, incidents_per_week=0).part(0, 0)
    samples = part.samples_us(Leg.LEADER, 1)
    ratio = np.median(samples / part.leader.median_us[60:, :, None])
    assert ratio == pytest.approx(1, rel=0.01)


def _parts() -> list[Part]:
    fleet = history(minutes=240, incidents_per_week=150)
    return [fleet.part(cluster, 0) for cluster in range(fleet.clusters)]


@pytest.mark.parametrize("leg", list(Leg))
def test_samples_ascend_and_hold_the_slowest_as_drawn_after_as_many_zeros_as_failed(leg: Leg) -> None:
    for part in _parts():
        draws, samples = part.leg(leg), part.samples_us(leg, 2)
        during = part.hour(2)
        assert np.all(np.diff(samples, axis=-1) >= 0)
        assert np.array_equal((samples == 0).sum(axis=-1), draws.failed[during])
        top = np.moveaxis(samples[..., ::-1][..., : len(draws.slowest_us)], -1, 0)
        assert np.array_equal(top, draws.slowest_us[:, during])
        assert samples.max() <= LONGEST_US


def test_the_tail_is_heavy_but_no_success_outlasts_a_deadline() -> None:
    slowest = np.concatenate([part.client.slowest_us[0].ravel() for part in _parts()])
    calm = history(incidents_per_week=0).part(0, 0).client
    assert calm.slowest_us[0].max() > 6 * np.median(calm.slowest_us[0])
    assert slowest.max() <= LONGEST_US


def test_without_its_incidents_a_part_is_the_same_outside_them() -> None:
    troubled, calm = (history(minutes=1000, incidents_per_week=n).part(0, 0) for n in (40, 0))
    outside = ~(troubled.client.extra_us.any(axis=1) | (troubled.client.failed > 2).any(axis=1))
    assert 0 < outside.sum() < 1000
    for leg in Leg:
        drawn, plain = (part.leg(leg).slowest_us[:, outside] for part in (troubled, calm))
        assert np.array_equal(drawn, plain)
