import threading
import time

import pytest

from fleetgauge_core.runtime.deadline import in_time


def test_it_returns_as_soon_as_all_have_ended() -> None:
    done: list[int] = []
    started = time.monotonic()
    in_time([lambda number=number: done.append(number) for number in range(20)], seconds=30)
    assert sorted(done) == list(range(20))
    assert time.monotonic() - started < 10


def test_what_is_late_is_left_behind_and_keeps_no_process_from_ending() -> None:
    release = threading.Event()
    late: list[threading.Thread] = []

    def hang() -> None:
        late.append(threading.current_thread())
        release.wait()

    started = time.monotonic()
    in_time([hang], seconds=0.1)
    assert time.monotonic() - started < 5
    assert late[0].daemon
    release.set()
    late[0].join()


def test_what_a_job_raises_is_raised() -> None:
    with pytest.raises(ZeroDivisionError):
        in_time([lambda: None, lambda: 1 // 0], seconds=30)
