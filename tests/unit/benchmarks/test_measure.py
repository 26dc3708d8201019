"""Benchmarks report what was measured."""

from tests.benchmarks._measure import (
    Options,
    Result,
    fit_growth_exponent,
    time_alternately,
    track_peak_memory,
)


def test_a_result_is_a_ratio_to_the_fastest_peer() -> None:
    document = Result("p99", 10, 3.0, {"slow": 6.0, "fast": 1.5}, 100, {"runs": 5}).document()
    assert document == {
        "name": "p99",
        "rows": 10,
        "ours_s": 3.0,
        "peers": {"slow": 6.0, "fast": 1.5},
        "ratio_to_fastest_peer": 2.0,
        "peak_mb": 100,
        "runs": 5,
    }


def test_without_a_peer_there_is_no_ratio() -> None:
    assert Result("week", 10, 3.0).document()["ratio_to_fastest_peer"] is None


def test_runs_alternate_after_a_warm_up_of_each() -> None:
    calls: list[str] = []
    times = time_alternately({"a": lambda: calls.append("a"), "b": lambda: calls.append("b")}, runs=2)
    assert calls == ["a", "b", "a", "b", "a", "b"]
    assert set(times) == {"a", "b"}


def test_the_growth_exponent_is_one_for_linear_and_two_for_quadratic_times() -> None:
    assert fit_growth_exponent([1, 2, 4], [3, 6, 12]) == 1
    assert fit_growth_exponent([1, 2, 4], [3, 12, 48]) == 2


def test_a_scale_leaves_at_least_one_row() -> None:
    assert Options(scale=0.1).scale_rows(1000) == 100
    assert Options(scale=0.0001).scale_rows(1000) == 1


def test_the_peak_includes_memory_that_was_allocated_in_the_block() -> None:
    with track_peak_memory() as peak:
        held = bytearray(200 * 2**20)
        held[::4096] = b"x" * len(held[::4096])
        while peak() == 0:
            pass
        assert peak() >= 200
