"""Changes between two weeks."""

from typing import Any

from fleetgauge_dashboards.views.week_changes import WeekChanges, find_main_cause, find_week_changes


def week(cluster_id: str, **changed: Any) -> dict[str, Any]:
    """Return a week within its budgets."""
    values = {
        "cluster_id": cluster_id,
        "latency_p99_us": 40_000,
        "latency_p99_censored_us": 41_000,
        "bad_minutes": 3,
        "latency_budget_minutes": 100.8,
        "latency_budget_left_minutes": 97.8,
        "availability_budget_minutes": 5.04,
        "availability_spent_minutes": 1.0,
        "coverage": 0.99,
        "causes": None,
    }
    return values | changed


OVER = {"bad_minutes": 120, "latency_budget_left_minutes": -19.2}


def names(*groups: Any) -> list[str]:
    return [cluster.cluster_id for group in groups for cluster in group]


def test_budgets_are_newly_exceeded_still_exceeded_or_recovered() -> None:
    before = [week("a"), week("b", **OVER), week("c", **OVER)]
    changes = find_week_changes([week("a", **OVER), week("b", **OVER), week("c")], before)
    assert (names(changes.newly_over), names(changes.still_over), names(changes.recovered)) == (
        ["a"],
        ["b"],
        ["c"],
    )
    (lost,) = changes.newly_over
    assert (lost.bad_minutes, lost.bad_minutes_before, lost.latency_left_minutes) == (120, 3, -19.2)


def test_an_exceeded_availability_budget_counts() -> None:
    changes = find_week_changes([week("a", availability_spent_minutes=6.0)], [week("a")])
    assert names(changes.newly_over) == ["a"]
    assert changes.newly_over[0].availability_left_minutes == 5.04 - 6.0


def test_the_cluster_furthest_over_budget_comes_first() -> None:
    changes = find_week_changes(
        [week("a", **OVER), week("b", **OVER | {"latency_budget_left_minutes": -60})], []
    )
    assert names(changes.newly_over) == ["b", "a"]
    assert changes.newly_over[0].bad_minutes_before is None


def test_movers_changed_their_p99_by_at_least_a_tenth_and_a_millisecond() -> None:
    weeks = [
        week("twice", latency_p99_us=80_000),
        week("half", latency_p99_us=20_000),
        week("third", latency_p99_us=13_333),
        week("little", latency_p99_us=43_999),
        week("tiny", latency_p99_us=1_400),
        week("unseen", latency_p99_us=90_000, coverage=0.5),
        week("silent", latency_p99_us=None),
    ]
    before = [week(row["cluster_id"]) for row in weeks] + [week("gone")]
    before[4] = week("tiny", latency_p99_us=700)
    changes = find_week_changes(weeks, before)
    assert names(changes.slower) == ["twice"]
    assert names(changes.faster) == ["third", "half"]
    assert changes.slower[0].ratio == 2
    assert changes.left == ("gone",)


def test_new_clusters_are_listed_unless_all_are_new() -> None:
    assert find_week_changes([week("a"), week("b")], [week("b")]).joined == ("a",)
    assert find_week_changes([week("a")], []) == WeekChanges((), (), (), (), (), (), ())


def test_the_main_cause_has_most_bad_minutes() -> None:
    # Arrow returns a map as pairs.
    assert find_main_cause(week("a", causes=[("roll", 2), ("broker_down", 7)])) == "broker_down"
    assert find_main_cause(week("a", causes={"b": 2, "a": 2})) == "a"
    assert find_main_cause(week("a")) is None
