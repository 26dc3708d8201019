"""One answer for all who ask alike."""

from concurrent.futures import ThreadPoolExecutor
from threading import Barrier

import pytest

from fleetgauge_dashboards.pages.shared_answers import KEPT, Shared


def test_readers_who_ask_at_once_share_one_answer() -> None:
    shared, made, together = Shared[int](), list[int](), Barrier(8)

    def make() -> int:
        made.append(1)
        return 7

    def ask(_: int) -> int:
        together.wait(10)
        return shared.answer("a", make)

    with ThreadPoolExecutor(8) as readers:
        assert list(readers.map(ask, range(8))) == [7] * 8
    assert made == [1]


def test_what_failed_is_tried_again() -> None:
    shared = Shared[int]()
    with pytest.raises(ZeroDivisionError):
        shared.answer("a", lambda: 1 // 0)
    assert shared.answer("a", lambda: 2) == 2


def test_the_least_recently_asked_for_is_forgotten() -> None:
    shared, made = Shared[int](), list[int]()

    def ask(key: int) -> None:
        shared.answer(key, lambda: made.append(key) or key)

    for key in (*range(KEPT), 0, KEPT, 0, 1):
        ask(key)
    assert made == [*range(KEPT + 1), 1]


def test_what_nobody_asked_for_a_minute_is_forgotten() -> None:
    now_s = [0.0]
    shared, made = Shared[int](lambda: now_s[0]), list[int]()
    for at_s, key in ((0, 1), (50, 1), (100, 1), (100, 2), (161, 2)):
        now_s[0] = at_s
        shared.answer(key, lambda key=key: made.append(key) or key)
    assert made == [1, 2, 2]
