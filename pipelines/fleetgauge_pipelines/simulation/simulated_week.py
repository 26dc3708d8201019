"""One simulated week of one cluster: the latencies of the slowest probes of each broker-minute."""

from dataclasses import dataclass
from datetime import datetime
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fleetgauge_core.contract import Leg
from fleetgauge_pipelines.simulation.incidents import LegHarm
from fleetgauge_pipelines.simulation.latency_trend import HOUR, Floats
from fleetgauge_pipelines.simulation.profile import ClusterProfile
from fleetgauge_pipelines.simulation.randomness import RandomStream, create_generator

Integers = NDArray[np.integer[Any]]

#: Probes in a minute, of each broker and leg.
PROBES_PER_MINUTE = 100
#: Inverse of the distribution's tail index. One probe in a million takes 17 times the median.
TAIL_EXPONENT = 0.2
#: A successful probe is faster than the deadline of either leg.
MAX_SUCCESS_US = 4_900_000


@dataclass(frozen=True, slots=True, eq=False)
class LegDraws:
    """The draws of one leg, as arrays of minutes x brokers."""

    median_us: Floats
    extra_us: Floats
    failed: Integers
    slowest_us: Integers
    """Array of rank x minutes x brokers: successes from the slowest one down; 0 where there are fewer."""
    depth: Floats
    """The depth of the last of these; every other success is deeper, and so faster."""

    @property
    def succeeded(self) -> Integers:
        """Return the number of successful probes."""
        return PROBES_PER_MINUTE - self.failed


@dataclass(frozen=True, slots=True, eq=False)
class SimulatedWeek:
    """A week of a cluster; its first minute is number ``first_minute`` of the history, at time ``start``."""

    seed: int
    cluster: int
    profile: ClusterProfile
    first_minute: int
    start: datetime
    silent: NDArray[np.bool_]
    """For each minute, whether no agent measured."""
    client: LegDraws
    leader: LegDraws

    def leg(self, leg: Leg) -> LegDraws:
        """Return the draws of a leg."""
        return self.client if leg is Leg.CLIENT else self.leader

    def hour(self, hour: int) -> slice:
        """Return the slice of the week's minutes that lie in an hour, counted from the history's start."""
        first = hour * HOUR - self.first_minute
        return slice(first, min(first + HOUR, len(self.silent)))

    def samples_us(self, leg: Leg, hour: int) -> Integers:
        """Return the latencies of an hour's probes, as an array of minutes x brokers x PROBES_PER_MINUTE.

        They are ascending; failures are zeros before the successes.
        """
        stream = RandomStream.CLIENT_SAMPLES if leg is Leg.CLIENT else RandomStream.LEADER_SAMPLES
        return _draw_samples_us(
            self.leg(leg), self.hour(hour), create_generator(self.seed, stream, self.cluster, hour)
        )


def draw_leg_latencies(
    rng: np.random.Generator, median_us: Floats, harm: LegHarm, failing: float, ranks: int
) -> LegDraws:
    """Draw the ``ranks`` slowest probes of every broker-minute, or all if there are fewer."""
    ranks = min(ranks, PROBES_PER_MINUTE)
    spacings = rng.standard_exponential((ranks, *median_us.shape))
    failed = _draw_failures(rng, harm, failing)
    depths = _accumulate_depths(spacings, failed)
    slowest_us = compute_latency_us(depths, median_us, harm.extra_us)
    slowest_us[PROBES_PER_MINUTE - failed <= np.arange(ranks)[:, None, None]] = 0
    return LegDraws(median_us, harm.extra_us, failed, slowest_us, depths[-1])


def _accumulate_depths(spacings: Floats, failed: Integers) -> Floats:
    # Renyi's representation: after the k slowest of n, the next depth is larger by an exponential / (n - k).
    # ``spacings`` is changed in place.
    for rank, spacing in enumerate(spacings):
        spacing /= np.maximum(PROBES_PER_MINUTE - failed - rank, 1)
        if rank:
            spacing += spacings[rank - 1]
    return spacings


def compute_latency_us(depth: Floats, median_us: Floats, extra_us: Floats) -> Integers:
    """Return the latency at a depth in microseconds: the deeper, the faster."""
    # Single precision has more digits than a latency needs, and takes half the time.
    depth32, median, extra = (array.astype(np.float32) for array in (depth, median_us, extra_us))
    factor = np.exp(np.float32(-TAIL_EXPONENT) * np.log(depth32 / np.float32(np.log(2))))
    rounded: Integers = np.minimum(factor * median + extra, np.float32(MAX_SUCCESS_US)).astype(np.int32)
    return rounded


def _draw_failures(rng: np.random.Generator, harm: LegHarm, failing: float) -> Integers:
    """Draw the number of failures: background failures, replaced by those of incidents where there is one."""
    cells = harm.failing.size
    background = rng.integers(cells, size=rng.poisson(failing * PROBES_PER_MINUTE * cells))
    failed = np.minimum(np.bincount(background, minlength=cells), PROBES_PER_MINUTE).reshape(
        harm.failing.shape
    )
    # Drawn last, so that all other draws of the week are the same with and without its incidents.
    affected = harm.failing > 0
    failed[affected] = rng.binomial(PROBES_PER_MINUTE, harm.failing[affected])
    return failed


def _draw_samples_us(leg: LegDraws, during: slice, rng: np.random.Generator) -> Integers:
    """Return the slowest probes as drawn, and draw the other successful ones, which are deeper."""
    slowest = np.moveaxis(leg.slowest_us[:, during], 0, -1)
    minutes, brokers, ranks = slowest.shape
    # A whole hour is drawn even if the history ends within it, so that draws do not depend on where it ends.
    beyond = rng.standard_exponential((HOUR, brokers, PROBES_PER_MINUTE - ranks))[:minutes]
    depths = leg.depth[during, :, None] + beyond
    others = compute_latency_us(depths, leg.median_us[during, :, None], leg.extra_us[during, :, None])
    others = np.minimum(others, slowest[..., -1:])  # rounding must not make one slower
    exists = np.arange(ranks, PROBES_PER_MINUTE) < leg.succeeded[during, :, None]
    return np.sort(np.concatenate([slowest, np.where(exists, others, np.int32(0))], axis=-1), axis=-1)
