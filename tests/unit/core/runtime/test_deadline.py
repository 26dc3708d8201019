import threading
import time

import pytest

from fleetgauge_core.runtime.deadline import run_until_deadline


def test_it_returns_as_soon_as_all_jobs_have_ended() -> None:
    done: list[int] = []
    started = time.monotonic()
    run_until_deadline([lambda number=number: done.append(number) for number in range(20)], seconds=30)
    assert sorted(done) == list(range(20))
    assert time.monotonic() - started < 10


def test_late_jobs_continue_in_daemon_threads() -> None:
    release = threading.Event()
    late: list[threading.Thread] = []

    def hang() -> None:
        late.append(threading.current_thread())
        release.wait()

    started = time.monotonic()
    run_until_deadline([hang], seconds=0.1)
    assert time.monotonic() - started < 5
    assert late[0].daemon
    release.set()
    late[0].join()


def test_the_exception_of_a_job_is_raised() -> None:
    with pytest.raises(ZeroDivisionError):
        run_until_deadline([lambda: None, lambda: 1 // 0], seconds=30)
