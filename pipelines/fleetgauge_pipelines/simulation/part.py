"""One cluster over one week of the simulation: how slow its slowest probes were, minute by minute."""

from dataclasses import dataclass
from datetime import datetime
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fleetgauge_core.contract import Leg
from fleetgauge_pipelines.simulation.incidents import Harm
from fleetgauge_pipelines.simulation.pace import HOUR, Floats
from fleetgauge_pipelines.simulation.profile import Profile
from fleetgauge_pipelines.simulation.randomness import Stream, generator

Integers = NDArray[np.integer[Any]]

#: Probes a minute, broker and leg.
ATTEMPTS = 100
#: The tail index is its inverse: one probe in a million takes seventeen times the median.
TAIL = 0.2
#: Successes are faster than either leg's deadline.
LONGEST_US = 4_900_000


@dataclass(frozen=True, slots=True, eq=False)
class LegDraws:
    """One leg's minutes x brokers."""

    median_us: Floats
    extra_us: Floats
    failed: Integers
    slowest_us: Integers
    """rank x minutes x brokers: the successes from the slowest down; 0 where there are fewer."""
    depth: Floats
    """How deep the last of these lies: every other success lies deeper."""

    @property
    def succeeded(self) -> Integers:
        return ATTEMPTS - self.failed


@dataclass(frozen=True, slots=True, eq=False)
class Part:
    """One cluster, one week; ``first_minute`` counts from the history's start, ``start`` is its time."""

    seed: int
    cluster: int
    profile: Profile
    first_minute: int
    start: datetime
    silent: NDArray[np.bool_]
    """Per minute, whether nobody measured."""
    client: LegDraws
    leader: LegDraws

    def leg(self, leg: Leg) -> LegDraws:
        return self.client if leg is Leg.CLIENT else self.leader

    def hour(self, hour: int) -> slice:
        """The part's own minutes of an hour, counted from the history's start."""
        first = hour * HOUR - self.first_minute
        return slice(first, min(first + HOUR, len(self.silent)))

    def samples_us(self, leg: Leg, hour: int) -> Integers:
        """minutes x brokers x ATTEMPTS of an hour, ascending; failures are zeros before the successes."""
        stream = Stream.CLIENT_SAMPLES if leg is Leg.CLIENT else Stream.LEADER_SAMPLES
        return _samples_us(self.leg(leg), self.hour(hour), generator(self.seed, stream, self.cluster, hour))


def draw_leg(rng: np.random.Generator, median_us: Floats, harm: Harm, failing: float, ranks: int) -> LegDraws:
    """So many of the slowest probes of every broker-minute (all, where ``ranks`` is more than there are)."""
    ranks = min(ranks, ATTEMPTS)
    spacings = rng.standard_exponential((ranks, *median_us.shape))
    failed = _failed(rng, harm, failing)
    depths = _depths(spacings, failed)
    slowest_us = latency_us(depths, median_us, harm.extra_us)
    slowest_us[ATTEMPTS - failed <= np.arange(ranks)[:, None, None]] = 0
    return LegDraws(median_us, harm.extra_us, failed, slowest_us, depths[-1])


def _depths(spacings: Floats, failed: Integers) -> Floats:
    """Renyi: below the k slowest of n, the next lies an exponential over n - k deeper. Made in place."""
    for rank, spacing in enumerate(spacings):
        spacing /= np.maximum(ATTEMPTS - failed - rank, 1)
        if rank:
            spacing += spacings[rank - 1]
    return spacings


def latency_us(depth: Floats, median_us: Floats, extra_us: Floats) -> Integers:
    """The latency at a depth: the deeper, the faster."""
    # Single precision has more digits than a latency, and takes half the time.
    deep, median, extra = (one.astype(np.float32) for one in (depth, median_us, extra_us))
    factor = np.exp(np.float32(-TAIL) * np.log(deep / np.float32(np.log(2))))
    whole: Integers = np.minimum(factor * median + extra, np.float32(LONGEST_US)).astype(np.int32)
    return whole


def _failed(rng: np.random.Generator, harm: Harm, failing: float) -> Integers:
    """Failures that always happen, one by one, and those of incidents in their place."""
    cells = harm.failing.size
    stray = rng.integers(cells, size=rng.poisson(failing * ATTEMPTS * cells))
    failed = np.minimum(np.bincount(stray, minlength=cells), ATTEMPTS).reshape(harm.failing.shape)
    # Drawn last: without its incidents a part is the same but for them.
    hit = harm.failing > 0
    failed[hit] = rng.binomial(ATTEMPTS, harm.failing[hit])
    return failed


def _samples_us(leg: LegDraws, during: slice, rng: np.random.Generator) -> Integers:
    """The slowest as drawn, and beyond them as many others as succeeded."""
    slowest = np.moveaxis(leg.slowest_us[:, during], 0, -1)
    minutes, brokers, ranks = slowest.shape
    # A whole hour's, whatever is left of it, so that a minute's do not depend on where the history ends.
    beyond = rng.standard_exponential((HOUR, brokers, ATTEMPTS - ranks))[:minutes]
    deeper = leg.depth[during, :, None] + beyond
    others = latency_us(deeper, leg.median_us[during, :, None], leg.extra_us[during, :, None])
    others = np.minimum(others, slowest[..., -1:])  # to the last digit
    exists = np.arange(ranks, ATTEMPTS) < leg.succeeded[during, :, None]
    return np.sort(np.concatenate([slowest, np.where(exists, others, np.int32(0))], axis=-1), axis=-1)
