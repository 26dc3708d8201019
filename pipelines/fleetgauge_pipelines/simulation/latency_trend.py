"""How a cluster's median latency changes: by the hour, at weekends, and with releases over the weeks."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from fleetgauge_pipelines.simulation.profile import ClusterProfile
from fleetgauge_pipelines.simulation.randomness import RandomStream, create_generator

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

HOUR = 60
DAY = 24 * HOUR
WEEK = 7 * DAY

#: Factor on the latency for each week, by tuning between releases.
_WEEKLY_TREND = 0.996
_WEEKS_BETWEEN_RELEASES = 5
_RELEASE_GAIN = (0.01, 0.10)
#: 1970-01-01 was a Thursday.
_EPOCH_WEEKDAY = 3
_SATURDAY = 5


@dataclass(frozen=True, slots=True)
class Releases:
    """When the first cluster got each release, in minutes of the history, and its factor on the latency."""

    minutes: Floats
    factors: Floats


def draw_releases(seed: int, weeks: int) -> Releases:
    """Draw the releases that begin within a number of weeks; more weeks only add releases."""
    rng = create_generator(seed, RandomStream.RELEASES)
    drawn = rng.random((-(-weeks // _WEEKS_BETWEEN_RELEASES), 2))
    within = 0.3 + 0.4 * drawn[:, 0]
    low, high = _RELEASE_GAIN
    minutes = (np.arange(len(drawn)) + within) * _WEEKS_BETWEEN_RELEASES * WEEK
    return Releases(minutes, 1 - (low + (high - low) * drawn[:, 1]))


def compute_load_factor(profile: ClusterProfile, epoch_minutes: Ints) -> Floats:
    """Return the factor of the hour and the weekday on the latency, for minutes since 1970 (UTC)."""
    hour = (epoch_minutes % DAY) / HOUR
    by_day = 1 + profile.daily * (1 + np.cos((hour - profile.peak_hour) * 2 * np.pi / 24)) / 2
    weekday = (epoch_minutes // DAY + _EPOCH_WEEKDAY) % 7
    return by_day * np.where(weekday >= _SATURDAY, 1 - profile.weekend, 1.0)


def compute_release_factor(profile: ClusterProfile, releases: Releases, minutes: Ints) -> Floats:
    """Return the factor of the trend and of the releases that the cluster has, for minutes of the history."""
    steps = np.concatenate([[1.0], np.cumprod(releases.factors)])
    arrived = np.searchsorted(releases.minutes + profile.rollout_minutes, minutes, side="right")
    return steps[arrived] * _WEEKLY_TREND ** (minutes / WEEK)
