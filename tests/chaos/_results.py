"""The results of a long run in a file, a line each; the same command continues after them."""

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import click

Result = dict[str, Any]


class Results:
    """The finished parts of a run."""

    def __init__(self, file: Path) -> None:
        self._file = file

    def read(self) -> list[Result]:
        """Return the results in the order in which they were added."""
        if not self._file.exists():
            return []
        return [json.loads(line) for line in self._file.read_text(encoding="utf-8").splitlines()]

    def add(self, result: Mapping[str, Any]) -> None:
        """Append the result of a part that is finished."""
        with self._file.open("a", encoding="utf-8") as file:
            file.write(json.dumps(result) + "\n")


def results_option(default: str) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Return the option --results, which gives a command its ``results``."""
    return click.option(
        "--results",
        default=default,
        show_default=True,
        type=click.Path(dir_okay=False, path_type=Path),
        callback=lambda _, __, path: Results(path),
        help="File of the results, from which an interrupted run resumes.",
    )
