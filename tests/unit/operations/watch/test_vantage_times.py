"""Which vantages are silent, as a watch stores it for its successor."""

from datetime import timedelta
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from fleetgauge_operations.watch.state_store import VantageRecord, restore_state
from fleetgauge_operations.watch.vantage_times import RETIRED_AFTER, ClusterVantage, VantageTimes
from tests.unit.core.detection.pulses import at

A, B = ClusterVantage("orders", "a"), ClusterVantage("orders", "b")


def _take_over(times: VantageTimes, seconds: float) -> VantageTimes:
    """Return the times that a successor restores from the records of all clusters."""
    clusters = {key.cluster_id for key, _ in times.last_heard()}
    records = [VantageRecord(cluster=each, vantages=dict(times.silent_since(each))) for each in clusters]
    restored = restore_state((), [record.model_dump_json().encode() for record in records])
    return VantageTimes(restored.vantages, at(seconds))


def test_a_silent_vantage_stays_silent_at_the_successor_until_it_is_heard_again() -> None:
    times = VantageTimes({}, at(0))
    assert times.record_pulse(*A, at(5))
    assert times.record_pulse(*B, at(5))
    assert not times.record_pulse(*A, at(34))
    assert times.find_silent(at(34)) == frozenset()
    assert times.find_silent(at(35)) == {"orders"}
    assert times.find_silent(at(36)) == frozenset()
    successor = _take_over(times, 100)
    # Whom the earlier watch heard may have been heard until now.
    assert dict(successor.last_heard()) == {A: at(100), B: at(5)}
    assert successor.record_pulse(*B, at(101))
    assert not successor.record_pulse(*A, at(101))
    assert successor.silent_since("orders") == {"a": None, "b": None}


def test_an_old_pulse_does_not_end_a_silence() -> None:
    times = VantageTimes({"orders": {"a": at(10)}}, at(50))
    assert not times.record_pulse(*A, at(9))
    assert times.silent_since("orders") == {"a": at(10)}


def test_a_vantage_is_retired_after_a_day_or_with_its_cluster() -> None:
    times = VantageTimes({"orders": {"a": at(0), "b": None}, "carts": {"a": None}}, at(60))
    assert times.retire(lambda _: True, at(0) + RETIRED_AFTER - timedelta(seconds=1)) == frozenset()
    assert times.retire(lambda _: True, at(0) + RETIRED_AFTER) == {A}
    assert times.retire(lambda cluster_id: cluster_id == "orders", at(0)) == {("carts", "a")}
    assert dict(times.last_heard()) == {B: at(60)}
    assert times.silent_since("carts") == {}


def test_a_clock_that_was_set_back_hides_no_silence() -> None:
    times = VantageTimes({}, at(0))
    times.record_pulse(*A, at(3_600))
    assert times.find_silent(at(10)) == frozenset()
    assert times.find_silent(at(39)) == frozenset()
    assert times.find_silent(at(40)) == {"orders"}


_EVENTS = st.lists(st.tuples(st.sampled_from(["pulse", "sweep"]), st.sampled_from("ab"), st.integers(0, 60)))


@given(_EVENTS)
def test_every_change_of_what_is_to_be_stored_is_told(events: list[tuple[Any, str, int]]) -> None:
    times, now, stored = VantageTimes({}, at(0)), 0, {}
    for kind, vantage, seconds in events:
        now += seconds
        if kind == "pulse":
            changed = times.record_pulse("orders", vantage, at(now))
        else:
            changed = bool(times.find_silent(at(now)))
        if changed:
            stored = dict(times.silent_since("orders"))
        assert stored == times.silent_since("orders")
