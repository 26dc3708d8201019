"""Bound the wait for slow reads of a lake.

A computation that exceeds the timeout continues in the background, and the next caller with the same key
gets its result.
"""

import threading
import time
from collections.abc import Callable, Hashable
from concurrent.futures import Future, ThreadPoolExecutor, wait
from dataclasses import dataclass
from typing import Any, TypeVar

Result = TypeVar("Result")

#: A caller waits this long for a result, counted from the start of its computation.
RESULT_TIMEOUT_S = 5.0
#: A caller that arrives after the timeout waits only this long, so that slow reads do not occupy all server
#: threads.
LATE_CALLER_TIMEOUT_S = 0.1
#: A result that no caller has fetched is dropped after this time.
UNFETCHED_RESULT_TTL_S = 30.0
#: Computations that run concurrently.
MAX_CONCURRENT_COMPUTATIONS = 8


class ResultPendingError(Exception):
    """A result is not available within the timeout; its computation has run for ``pending_s`` seconds."""

    def __init__(self, pending_s: float) -> None:
        super().__init__(f"no result after {pending_s:.0f} s; the computation continues")
        self.pending_s = pending_s


@dataclass(slots=True)
class _Computation:
    """A computation that was started, with its start and end on the monotonic clock."""

    started_s: float
    future: "Future[Any]"
    finished_s: float | None = None

    def has_expired(self, now_s: float) -> bool:
        return self.finished_s is not None and now_s - self.finished_s > UNFETCHED_RESULT_TTL_S


class SingleFlight:
    """A pool that runs at most one computation per key at a time and shares its result among all callers."""

    def __init__(
        self, timeout_s: float = RESULT_TIMEOUT_S, monotonic: Callable[[], float] = time.monotonic
    ) -> None:
        self._timeout_s = timeout_s
        self._monotonic = monotonic
        self._lock = threading.Lock()
        self._computations: dict[Hashable, _Computation] = {}
        self._executor = ThreadPoolExecutor(MAX_CONCURRENT_COMPUTATIONS, thread_name_prefix="answers")

    def run(self, key: Hashable, compute: Callable[[], Result]) -> Result:
        """Return the result of ``compute``, or of a computation of the same key that already runs.

        Raises: ResultPendingError when there is no result within the timeout; any exception of ``compute``.
        """
        computation = self._get_or_start(key, compute)
        left_s = self._timeout_s - (self._monotonic() - computation.started_s)
        wait([computation.future], timeout=max(left_s, LATE_CALLER_TIMEOUT_S))
        if not computation.future.done():
            raise ResultPendingError(self._monotonic() - computation.started_s)
        with self._lock:
            if self._computations.get(key) is computation:
                del self._computations[key]
        result: Result = computation.future.result()
        return result

    def _get_or_start(self, key: Hashable, compute: Callable[[], Any]) -> _Computation:
        """Return the key's running computation, or start one; drop expired results."""
        with self._lock:
            now_s = self._monotonic()
            expired_keys = [
                other_key for other_key, other in self._computations.items() if other.has_expired(now_s)
            ]
            for expired_key in expired_keys:
                del self._computations[expired_key]
            computation = self._computations.get(key)
            if computation is None:
                computation = _Computation(now_s, self._executor.submit(compute))
                self._computations[key] = computation
                computation.future.add_done_callback(lambda _: self._mark_finished(computation))
            return computation

    def _mark_finished(self, computation: _Computation) -> None:
        computation.finished_s = self._monotonic()
