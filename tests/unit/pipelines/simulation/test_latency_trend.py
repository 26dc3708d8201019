"""Load by the hour and improvement with releases: trends that a weekly review should show."""

import numpy as np

from fleetgauge_pipelines.simulation.latency_trend import (
    DAY,
    WEEK,
    compute_load_factor,
    compute_release_factor,
    draw_releases,
)
from fleetgauge_pipelines.simulation.silver import make_cluster_minutes
from tests.unit.pipelines.simulation.histories import history

#: 2026-03-02, a Monday, in minutes since 1970.
MONDAY = 29_540_160


def test_load_peaks_at_the_regions_peak_hour_and_is_lowest_twelve_hours_later() -> None:
    for profile in history(clusters=6).profiles:
        factors = compute_load_factor(profile, MONDAY + np.arange(DAY))
        assert factors.argmax() == profile.peak_hour * 60
        assert factors.argmin() == (profile.peak_hour + 12) % 24 * 60
        assert np.isclose(factors.max() / factors.min(), 1 + profile.daily)


def test_weekends_have_less_load_than_the_same_hours_of_other_days() -> None:
    profile = history().profile(0)
    days = compute_load_factor(profile, MONDAY + np.arange(WEEK)).reshape(7, DAY)
    assert np.allclose(days[:5], days[0])
    assert np.allclose(days[5:], days[0] * (1 - profile.weekend))


def test_latency_decreases_with_every_release_and_slowly_between_them() -> None:
    profile, releases = history().profile(0), draw_releases(1, 35)
    factor = compute_release_factor(profile, releases, np.arange(35 * WEEK))
    steps = np.flatnonzero(np.diff(factor) / factor[:-1] < -0.005)
    assert len(steps) == len(releases.minutes) == 7
    assert factor[0] == 1
    assert np.all(np.diff(factor) < 0)
    assert 0.4 < factor[-1] < 0.8


def test_a_cluster_gets_a_release_after_its_rollout_delay() -> None:
    releases = draw_releases(1, 35)
    for profile in history(clusters=5).profiles:
        factor = compute_release_factor(profile, releases, np.arange(35 * WEEK))
        last_without = int(np.flatnonzero(np.diff(factor) / factor[:-1] < -0.005)[0])
        assert last_without < releases.minutes[0] + profile.rollout_minutes <= last_without + 1


def test_the_weekly_p99_of_a_long_history_decreases_by_more_than_a_quarter() -> None:
    fleet = history(clusters=4, minutes=35 * WEEK, incidents_per_week=0)
    for cluster in range(4):
        first, last = (
            make_cluster_minutes(fleet.simulate_week(cluster, week))["latency_p99_us"] for week in (0, 34)
        )
        assert np.quantile(last.data, 0.99) < 0.75 * np.quantile(first.data, 0.99)
