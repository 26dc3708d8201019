"""What many readers ask at the same time is answered once."""

import threading
from collections import OrderedDict
from collections.abc import Callable, Hashable
from concurrent.futures import Future
from typing import Generic, TypeVar

Answer = TypeVar("Answer")

#: Answers kept: a few dozen readers look at fewer views of the same minute.
KEPT = 32


class Shared(Generic[Answer]):
    """Answers by what they depend on, the least recently asked for forgotten first."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._answers: OrderedDict[Hashable, Future[Answer]] = OrderedDict()

    def answer(self, key: Hashable, make: Callable[[], Answer]) -> Answer:
        """Made by the first who asks, while others wait for it. What fails is not kept."""
        with self._lock:
            kept = self._answers.get(key)
            answer = self._answers[key] = kept or Future()
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
