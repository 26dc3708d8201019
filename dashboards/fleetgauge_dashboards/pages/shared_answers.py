"""What many readers ask at the same time is answered once."""

import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Hashable
from concurrent.futures import Future
from typing import Generic, TypeVar

Answer = TypeVar("Answer")

#: Answers kept: a few dozen readers look at fewer views of the same minute.
KEPT = 32
#: Who asks of the next minute asks anew: an older answer only takes memory.
KEPT_S = 60.0


class Shared(Generic[Answer]):
    """Answers by what they depend on, the least recently asked for forgotten first."""

    def __init__(self, monotonic: Callable[[], float] = time.monotonic) -> None:
        self._lock = threading.Lock()
        self._monotonic = monotonic
        self._answers: OrderedDict[Hashable, tuple[float, Future[Answer]]] = OrderedDict()

    def answer(self, key: Hashable, make: Callable[[], Answer]) -> Answer:
        """Made by the first who asks, while others wait for it. What fails is not kept."""
        with self._lock:
            now_s = self._monotonic()
            for old in [one for one, (asked_s, _) in self._answers.items() if now_s - asked_s > KEPT_S]:
                del self._answers[old]
            kept = self._answers.get(key)
            answer = kept[1] if kept else Future[Answer]()
            self._answers[key] = (now_s, answer)
            self._answers.move_to_end(key)
            while len(self._answers) > KEPT:
                self._answers.popitem(last=False)
        if kept is None:
            try:
                answer.set_result(make())
            except BaseException as error:  # Whoever waits for it gets it as well.
                with self._lock:
                    self._answers.pop(key, None)
                answer.set_exception(error)
        return answer.result()
