"""The replication progress of common sources in two clusters."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fleetgauge_core.fleet import Mirror, Recovery, Tracers
from fleetgauge_operations.recovery.offsets.checkpoint import Checkpoint, CheckpointOrigin, PartitionRoute
from fleetgauge_operations.recovery.offsets.mirror_state import ReplicationState
from fleetgauge_operations.recovery.plan.sync_decision import ClusterPair
from fleetgauge_operations.recovery.primaries.plan.replica_comparison import (
    PartitionComparison,
    ReplicaProgress,
    compare_replicas,
    source_end_at,
)
from tests.unit.operations.recovery.histories import IDS, build_history
from tests.unit.operations.recovery.primaries.replication_states import (
    NOW_MS,
    PAIR,
    RECOVERY,
    add_observations,
    build_state,
)


def compare_north(state: ReplicationState, recovery: Recovery = RECOVERY) -> PartitionComparison:
    comparisons = compare_replicas(PAIR, recovery, state, NOW_MS, 300)
    (comparison,) = [comparison for comparison in comparisons if comparison.source == "north"]
    return comparison


def test_records_replicated_within_the_window_are_counted() -> None:
    comparison = compare_north(build_state(in_north=500, in_south=460, end=500, began=100))
    assert comparison.active == ReplicaProgress(500, 400, 0.0)
    assert comparison.passive == ReplicaProgress(460, 360, 1.0)
    assert (comparison.difference, comparison.stalled_s) == (40, 1.0)


def test_the_difference_includes_records_from_before_the_window() -> None:
    comparison = compare_north(build_state(in_north=150, in_south=20, end=500, began=100))
    assert comparison.active == ReplicaProgress(150, 50, 1.0)
    assert comparison.passive == ReplicaProgress(20, 0, 1.0)
    assert comparison.difference == 130


def test_the_count_is_unknown_without_an_observation_before_the_window() -> None:
    comparison = compare_north(build_state(in_south=460, began=None))
    assert comparison.active == ReplicaProgress(500, None, 0.0)
    assert comparison.difference == 40


def test_a_topic_that_is_not_replicated_yet_is_missing_completely() -> None:
    state = add_observations(ReplicationState(), "north", "north-all", 70, 70)
    assert compare_north(state).difference is None
    state.mark_inspected("north", "south-all", NOW_MS - 31_000)
    assert compare_north(state).difference is None
    state.mark_inspected("north", "south-all", NOW_MS - 29_000)
    assert (compare_north(state).difference, compare_north(state).stalled_s) == (70, 29.0)


def test_a_topic_that_one_mirror_excludes_is_not_compared() -> None:
    mirrors = tuple(
        replace_topics(mirror, "payments") if mirror.destination == "south-all" else mirror
        for mirror in RECOVERY.mirrors
    )
    recovery = RECOVERY.model_copy(update={"mirrors": mirrors})
    assert compare_replicas(PAIR, recovery, build_state(), NOW_MS, 300) == []


def replace_topics(mirror: Mirror, topics: str) -> Mirror:
    return mirror.model_copy(update={"topics": topics})


def test_the_tracers_topic_is_not_compared() -> None:
    recovery = RECOVERY.model_copy(update={"tracers": Tracers(topic="orders")})
    assert compare_replicas(PAIR, recovery, build_state(), NOW_MS, 300) == []


def test_a_topic_recreated_for_one_mirror_cannot_be_compared() -> None:
    state = add_observations(ReplicationState(), "north", "north-all", 70, 70)
    add_observations(state, "north", "south-all", 70, 70, source_id="another")
    assert compare_north(state) == PartitionComparison("north", "orders", 0, None, None)


def test_a_replica_is_compared_with_its_source() -> None:
    state = add_observations(ReplicationState(), "north", "south", replicated=460, end=500, began=100)
    recovery = Recovery(mirrors=(Mirror(source="north", destination="south"),))
    assert compare_replicas(ClusterPair("north", "south"), recovery, state, NOW_MS, 300) == [
        PartitionComparison(
            "north", "orders", 0, ReplicaProgress(500, 400, 0.0), ReplicaProgress(460, 360, 1.0)
        )
    ]


def test_a_stall_is_unknown_without_any_progress() -> None:
    state = ReplicationState()
    for aggregate in ("north-all", "south-all"):
        state.apply_checkpoint(
            PartitionRoute("north", aggregate, "orders", 0),
            IDS,
            Checkpoint(9, 0, NOW_MS, CheckpointOrigin.FENCE),
        )
    comparison = compare_north(state)
    assert (comparison.difference, comparison.stalled_s) == (0, None)
    assert replace(comparison, active=None).difference is None


@pytest.mark.parametrize(
    ("at_ms", "end"),
    [(999, None), (1_000, 10), (1_999, 10), (2_000, 20), (2_500, 20), (3_000, 1_000), (9_000, 1_000)],
)
def test_the_source_end_is_that_of_the_last_observation_up_to_the_time(at_ms: int, end: int | None) -> None:
    history = build_history()
    for src, at in ((10, 1_000), (20, 2_000), (1_000, 3_000)):
        history.append(Checkpoint(src, 0, at, CheckpointOrigin.FENCE))
    assert source_end_at(history, at_ms) == end


def test_a_source_without_observations_has_no_end() -> None:
    assert source_end_at(build_history([(1, 1)]), 9_000) is None


@given(st.lists(st.tuples(st.integers(1, 50), st.integers(1, 50)), max_size=12), st.integers(0, 600))
def test_bisection_finds_the_last_observation_up_to_the_time(
    steps: list[tuple[int, int]], at_ms: int
) -> None:
    history, src, at, seen = build_history(), 0, 0, []
    for more, later in steps:
        src, at = src + more, at + later
        history.append(Checkpoint(src, 0, at, CheckpointOrigin.FENCE))
        seen.append((src, at))
    until = [end for end, last_inspected_ms in seen if last_inspected_ms <= at_ms]
    assert source_end_at(history, at_ms) == (until[-1] if until else None)
