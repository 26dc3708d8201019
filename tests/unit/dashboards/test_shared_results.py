"""Concurrent callers with the same key share one computation."""

from concurrent.futures import ThreadPoolExecutor
from threading import Barrier

import pytest

from fleetgauge_dashboards.pages.shared_results import MAX_CACHED_RESULTS, SharedResults


def test_concurrent_callers_share_one_computation() -> None:
    shared, computed, barrier = SharedResults[int](), list[int](), Barrier(8)

    def compute() -> int:
        computed.append(1)
        return 7

    def get(_: int) -> int:
        barrier.wait(10)
        return shared.get_or_compute("a", compute)

    with ThreadPoolExecutor(8) as callers:
        assert list(callers.map(get, range(8))) == [7] * 8
    assert computed == [1]


def test_a_failed_computation_is_not_cached() -> None:
    shared = SharedResults[int]()
    with pytest.raises(ZeroDivisionError):
        shared.get_or_compute("a", lambda: 1 // 0)
    assert shared.get_or_compute("a", lambda: 2) == 2


def test_the_least_recently_used_result_is_evicted() -> None:
    shared, computed = SharedResults[int](), list[int]()

    def get(key: int) -> None:
        shared.get_or_compute(key, lambda: computed.append(key) or key)

    for key in (*range(MAX_CACHED_RESULTS), 0, MAX_CACHED_RESULTS, 0, 1):
        get(key)
    assert computed == [*range(MAX_CACHED_RESULTS + 1), 1]


def test_a_result_unused_for_a_minute_is_evicted() -> None:
    now_s = [0.0]
    shared, computed = SharedResults[int](lambda: now_s[0]), list[int]()
    for at_s, key in ((0, 1), (50, 1), (100, 1), (100, 2), (161, 2)):
        now_s[0] = at_s
        shared.get_or_compute(key, lambda key=key: computed.append(key) or key)
    assert computed == [1, 2, 2]
