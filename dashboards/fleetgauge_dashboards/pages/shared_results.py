"""Compute the content of a page once for all users who open it at the same time."""

import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Hashable
from concurrent.futures import Future
from typing import Generic, TypeVar

Result = TypeVar("Result")

#: Results that are cached: a few dozen concurrent users open fewer distinct views of the same minute.
MAX_CACHED_RESULTS = 32
#: Keys contain the current minute, so that an older result only takes memory.
CACHE_TTL_S = 60.0


class SharedResults(Generic[Result]):
    """A cache of results by key with least-recently-used eviction, in which each key is computed once."""

    def __init__(self, monotonic: Callable[[], float] = time.monotonic) -> None:
        self._lock = threading.Lock()
        self._monotonic = monotonic
        self._futures: OrderedDict[Hashable, tuple[float, Future[Result]]] = OrderedDict()

    def get_or_compute(self, key: Hashable, compute: Callable[[], Result]) -> Result:
        """Return the cached result or compute it; concurrent callers wait for the first.

        Errors are not cached.

        Raises: any exception of ``compute``, in every waiting caller.
        """
        with self._lock:
            now_s = self._monotonic()
            expired_keys = [
                cached_key
                for cached_key, (used_s, _) in self._futures.items()
                if now_s - used_s > CACHE_TTL_S
            ]
            for expired_key in expired_keys:
                del self._futures[expired_key]
            cached = self._futures.get(key)
            future = cached[1] if cached else Future[Result]()
            self._futures[key] = (now_s, future)
            self._futures.move_to_end(key)
            while len(self._futures) > MAX_CACHED_RESULTS:
                self._futures.popitem(last=False)
        if cached is None:
            try:
                future.set_result(compute())
            except BaseException as error:  # Waiting callers get the error as well.
                with self._lock:
                    self._futures.pop(key, None)
                future.set_exception(error)
        return future.result()
