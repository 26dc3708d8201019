"""Progress of what takes minutes, and its end when it is asked to stop."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from fleetgauge_core.runtime.cli import console
from fleetgauge_core.runtime.shutdown import Stopping

#: Told a step's name, how much of it is done and how much it is.
Advance = Callable[[str, int, int], None]


@contextmanager
def bars(stopping: Stopping) -> Iterator[Advance]:
    """A progress bar a step, from the moment that one is told of it; between steps it may all end."""
    look = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    with Progress(*look, console=console) as progress:
        tasks: dict[str, Any] = {}

        def advance(step: str, done: int, of: int) -> None:
            if stopping.is_set():
                raise KeyboardInterrupt
            if step not in tasks:
                tasks[step] = progress.add_task(step, total=of)
            progress.update(tasks[step], completed=done)

        yield advance
