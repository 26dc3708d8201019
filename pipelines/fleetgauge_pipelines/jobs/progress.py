"""Progress bars for commands that take minutes, and their interruption between two steps."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from fleetgauge_core.runtime.console import console
from fleetgauge_core.runtime.shutdown import ShutdownFlag

#: Called with the name of a step, how many of its units are done and how many it has.
ReportProgress = Callable[[str, int, int], None]


@contextmanager
def show_progress(shutdown: ShutdownFlag) -> Iterator[ReportProgress]:
    """Yield a function that shows a progress bar for each step from the first call about it on.

    The function raises KeyboardInterrupt once a shutdown was requested, so that work ends between units.
    """
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    with Progress(*columns, console=console) as progress:
        tasks: dict[str, Any] = {}

        def advance(step: str, done: int, total: int) -> None:
            if shutdown.is_set():
                raise KeyboardInterrupt
            if step not in tasks:
                tasks[step] = progress.add_task(step, total=total)
            progress.update(tasks[step], completed=done)

        yield advance
