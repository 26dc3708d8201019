"""A slow computation runs once, in the background, and the next caller gets its result."""

import gc
import threading
import weakref
from collections.abc import Callable, Iterator

import pytest

from fleetgauge_dashboards.single_flight import UNFETCHED_RESULT_TTL_S, ResultPendingError, SingleFlight
from tests.waiting import wait_until


class BlockedDisk:
    """A disk whose reads block until ``unblocked`` is set."""

    def __init__(self) -> None:
        self.unblocked = threading.Event()
        self.reads = 0

    def read(self) -> int:
        self.reads += 1
        if not self.unblocked.wait(30):
            raise TimeoutError
        return self.reads


@pytest.fixture
def disk() -> Iterator[BlockedDisk]:
    disk = BlockedDisk()
    yield disk
    disk.unblocked.set()


def test_a_result_within_the_timeout_is_returned() -> None:
    single_flight = SingleFlight()
    assert single_flight.run("a", lambda: 1) == 1
    assert single_flight.run("a", lambda: 2) == 2


def test_an_exception_of_the_computation_is_raised_to_the_caller() -> None:
    single_flight = SingleFlight()
    for error in (ValueError, TimeoutError):
        with pytest.raises(error):
            single_flight.run("a", _raising(error))
    assert single_flight.run("a", lambda: 1) == 1


def _raising(error: type[Exception]) -> Callable[[], int]:
    def fail() -> int:
        raise error

    return fail


def test_a_slow_computation_times_out_and_a_later_caller_gets_its_result(disk: BlockedDisk) -> None:
    single_flight = SingleFlight(timeout_s=0.01)
    for _ in range(3):
        with pytest.raises(ResultPendingError):
            single_flight.run("a", disk.read)
    assert single_flight.run("b", lambda: "another key") == "another key"
    disk.unblocked.set()
    wait_until(
        lambda: not isinstance(_run_or_error(single_flight, disk), ResultPendingError), 10, "the disk", 0.01
    )
    assert disk.reads <= 2


def _run_or_error(single_flight: SingleFlight, disk: BlockedDisk) -> object:
    try:
        return single_flight.run("a", disk.read)
    except ResultPendingError as error:
        return error


def test_an_expired_result_is_computed_again(disk: BlockedDisk) -> None:
    now_s = 0.0
    single_flight = SingleFlight(0.01, lambda: now_s)
    with pytest.raises(ResultPendingError):
        single_flight.run("a", disk.read)
    disk.unblocked.set()
    wait_until(
        lambda: all(
            computation.finished_s is not None for computation in single_flight._computations.values()
        ),
        10,
        "the disk",
        0.01,
    )
    now_s = UNFETCHED_RESULT_TTL_S + 1
    assert single_flight.run("a", lambda: "new") == "new"


def test_a_result_that_is_never_fetched_is_dropped(disk: BlockedDisk) -> None:
    class Rows:
        """A result whose memory can be observed."""

    now_s = [0.0]
    single_flight = SingleFlight(timeout_s=0.01, monotonic=lambda: now_s[0])
    results: list[weakref.ref[Rows]] = []

    def read_rows() -> Rows:
        disk.read()
        rows = Rows()
        results.append(weakref.ref(rows))
        return rows

    with pytest.raises(ResultPendingError):
        single_flight.run("a", read_rows)
    disk.unblocked.set()

    def is_dropped() -> bool:
        now_s[0] += 2 * UNFETCHED_RESULT_TTL_S
        assert single_flight.run("b", lambda: 1) == 1
        gc.collect()
        return [result() for result in results] == [None]

    wait_until(is_dropped, 10, "the result to be dropped")
