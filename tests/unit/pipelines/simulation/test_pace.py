"""Rhythm and improvement: what a reviewer should be able to see."""

import numpy as np

from fleetgauge_pipelines.simulation.pace import DAY, WEEK, draw_releases, improvement, rhythm
from fleetgauge_pipelines.simulation.silver import cluster_minutes
from tests.unit.pipelines.simulation.histories import history

#: 2026-03-02, a Monday, in minutes since 1970.
MONDAY = 29_540_160


def test_the_busiest_hour_is_the_regions_own_and_nights_are_quiet() -> None:
    for profile in history(clusters=6).profiles:
        of_day = rhythm(profile, MONDAY + np.arange(DAY))
        assert of_day.argmax() == profile.peak_hour * 60
        assert of_day.argmin() == (profile.peak_hour + 12) % 24 * 60
        assert np.isclose(of_day.max() / of_day.min(), 1 + profile.daily)


def test_weekends_are_quieter_than_the_same_hours_of_other_days() -> None:
    profile = history().profile(0)
    days = rhythm(profile, MONDAY + np.arange(WEEK)).reshape(7, DAY)
    assert np.allclose(days[:5], days[0])
    assert np.allclose(days[5:], days[0] * (1 - profile.weekend))


def test_latency_falls_with_every_release_and_a_little_between_them() -> None:
    profile, releases = history().profile(0), draw_releases(1, 35)
    level = improvement(profile, releases, np.arange(35 * WEEK))
    steps = np.flatnonzero(np.diff(level) / level[:-1] < -0.005)
    assert len(steps) == len(releases.minutes) == 7
    assert level[0] == 1
    assert np.all(np.diff(level) < 0)
    assert 0.4 < level[-1] < 0.8


def test_a_release_arrives_after_its_clusters_own_rollout() -> None:
    releases = draw_releases(1, 35)
    for profile in history(clusters=5).profiles:
        level = improvement(profile, releases, np.arange(35 * WEEK))
        last_without = int(np.flatnonzero(np.diff(level) / level[:-1] < -0.005)[0])
        assert last_without < releases.minutes[0] + profile.rollout_minutes <= last_without + 1


def test_the_weekly_p99_of_a_long_history_falls_by_more_than_a_quarter() -> None:
    fleet = history(clusters=4, minutes=35 * WEEK, incidents_per_week=0)
    for cluster in range(4):
        first, last = (cluster_minutes(fleet.part(cluster, week))["latency_p99_us"] for week in (0, 34))
        assert np.quantile(last.data, 0.99) < 0.75 * np.quantile(first.data, 0.99)
