"""Nobody waits long for a lake: an answer that takes its time is made on, and given to whoever asks next."""

import threading
import time
from collections.abc import Callable, Hashable
from concurrent.futures import Future, ThreadPoolExecutor, wait
from dataclasses import dataclass
from typing import Any, TypeVar

Answer = TypeVar("Answer")

#: A page whose answer takes longer says so.
PATIENCE_S = 5.0
#: Who asks after that waits no longer than this, or slow questions would take every thread of the server.
IMPATIENT_S = 0.1
#: An answer that nobody fetched is forgotten.
FRESH_S = 30.0
#: Answers that are made at a time.
AT_A_TIME = 8


class SlowError(Exception):
    """The answer is still being made, for so many seconds now."""

    def __init__(self, for_s: float) -> None:
        super().__init__(f"no answer for {for_s:.0f} s")
        self.for_s = for_s


@dataclass(slots=True)
class _Asked:
    since_s: float
    answer: "Future[Any]"
    done_s: float | None = None

    def is_old(self, now_s: float) -> bool:
        return self.done_s is not None and now_s - self.done_s > FRESH_S


class Patience:
    """Each question is answered once at a time, however many ask it."""

    def __init__(
        self, patience_s: float = PATIENCE_S, monotonic: Callable[[], float] = time.monotonic
    ) -> None:
        self._patience_s = patience_s
        self._monotonic = monotonic
        self._lock = threading.Lock()
        self._asked: dict[Hashable, _Asked] = {}
        self._makers = ThreadPoolExecutor(AT_A_TIME, thread_name_prefix="answers")

    @property
    def waiting(self) -> int:
        """Answers that are being made, or wait to be fetched."""
        return len(self._asked)

    def ask(self, question: Hashable, make: Callable[[], Answer]) -> Answer:
        """Raises SlowError where it takes too long, and what ``make`` raises."""
        asked = self._begun(question, make)
        left_s = self._patience_s - (self._monotonic() - asked.since_s)
        wait([asked.answer], timeout=max(left_s, IMPATIENT_S))
        if not asked.answer.done():
            raise SlowError(self._monotonic() - asked.since_s)
        with self._lock:
            if self._asked.get(question) is asked:
                del self._asked[question]
        answer: Answer = asked.answer.result()
        return answer

    def _begun(self, question: Hashable, make: Callable[[], Any]) -> _Asked:
        """What is being made already, or begins to be."""
        with self._lock:
            now_s = self._monotonic()
            for old in [one for one, it in self._asked.items() if it.is_old(now_s)]:
                del self._asked[old]
            asked = self._asked.get(question)
            if asked is None:
                asked = self._asked[question] = _Asked(now_s, self._makers.submit(make))
                asked.answer.add_done_callback(lambda _: self._done(asked))
            return asked

    def _done(self, asked: _Asked) -> None:
        asked.done_s = self._monotonic()
