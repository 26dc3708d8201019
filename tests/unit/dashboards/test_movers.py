"""What changed between two weeks."""

from typing import Any

from fleetgauge_dashboards.views.movers import Changes, changes, main_cause


def week(cluster_id: str, **changed: Any) -> dict[str, Any]:
    """A week within its budgets."""
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


def names(*of: Any) -> list[str]:
    return [one.cluster_id for group in of for one in group]


def test_budgets_are_lost_kept_lost_and_won_back() -> None:
    before = [week("a"), week("b", **OVER), week("c", **OVER)]
    found = changes([week("a", **OVER), week("b", **OVER), week("c")], before)
    assert (names(found.newly_over), names(found.still_over), names(found.recovered)) == (["a"], ["b"], ["c"])
    (lost,) = found.newly_over
    assert (lost.bad_minutes, lost.bad_minutes_before, lost.latency_left_minutes) == (120, 3, -19.2)


def test_availability_loses_a_budget_too() -> None:
    found = changes([week("a", availability_spent_minutes=6.0)], [week("a")])
    assert names(found.newly_over) == ["a"]
    assert found.newly_over[0].availability_left_minutes == 5.04 - 6.0


def test_the_worst_comes_first() -> None:
    found = changes([week("a", **OVER), week("b", **OVER | {"latency_budget_left_minutes": -60})], [])
    assert names(found.newly_over) == ["b", "a"]
    assert found.newly_over[0].bad_minutes_before is None


def test_movers_are_those_whose_p99_moved_by_a_tenth_and_a_millisecond() -> None:
    now = [
        week("twice", latency_p99_us=80_000),
        week("half", latency_p99_us=20_000),
        week("third", latency_p99_us=13_333),
        week("little", latency_p99_us=43_999),
        week("tiny", latency_p99_us=1_400),
        week("unseen", latency_p99_us=90_000, coverage=0.5),
        week("silent", latency_p99_us=None),
    ]
    before = [week(row["cluster_id"]) for row in now] + [week("gone")]
    before[4] = week("tiny", latency_p99_us=700)
    found = changes(now, before)
    assert names(found.slower) == ["twice"]
    assert names(found.faster) == ["third", "half"]
    assert found.slower[0].ratio == 2
    assert found.left == ("gone",)


def test_who_is_new_is_said_unless_all_are() -> None:
    assert changes([week("a"), week("b")], [week("b")]).joined == ("a",)
    assert changes([week("a")], []) == Changes((), (), (), (), (), (), ())


def test_the_main_cause_has_most_bad_minutes() -> None:
    # Arrow gives a map as pairs.
    assert main_cause(week("a", causes=[("roll", 2), ("broker_down", 7)])) == "broker_down"
    assert main_cause(week("a", causes={"b": 2, "a": 2})) == "a"
    assert main_cause(week("a")) is None
