"""Commands that a supervisor starts again when they end."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import TracebackType
from typing import NamedTuple, Self

import psutil

from tests.chaos._streaming import Command

_EVERY_S = 1.0


class Exit(NamedTuple):
    """The exit code of a command that has ended by itself, negative for a signal, and its last line."""

    code: int
    last_line: str


class SupervisedCommand(Command):
    """A command that is started again whenever it has ended, as systemd or Kubernetes would do it."""

    def __enter__(self) -> Self:
        self.exits: list[Exit] = []
        self._lock = threading.RLock()
        self._is_over = threading.Event()
        super().__enter__()
        self._supervisor = threading.Thread(target=self._supervise)
        self._supervisor.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._is_over.set()
        self._supervisor.join()
        super().__exit__(kind, error, trace)

    @property
    def is_alive(self) -> bool:
        with self._lock:
            return super().is_alive

    def tree(self) -> list[psutil.Process]:
        with self._lock:
            return super().tree()

    @contextmanager
    def killed(self) -> Iterator[None]:
        """Kill it with all its processes, and start it again at the end of the block."""
        with self._lock:
            self.kill()
            yield
            super().__enter__()

    def _supervise(self) -> None:
        while not self._is_over.wait(_EVERY_S):
            with self._lock:
                if not self.is_alive:
                    lines = self.output.splitlines()
                    self.exits.append(Exit(self._process.wait(), lines[-1] if lines else ""))
                    super().__enter__()
