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
        """Return the results in the order in which they were added; a line that a kill cut is none."""
        if not self._file.exists():
            return []
        *lines, _ = self._file.read_text(encoding="utf-8").split("\n")
        return [json.loads(line) for line in lines]

    def add(self, *results: Mapping[str, Any]) -> None:
        """Append the results of a part that is finished, after the last line that is whole."""
        with self._file.open("a+b") as file:
            file.seek(0)
            file.truncate(file.read().rfind(b"\n") + 1)
            file.write("".join(f"{json.dumps(result)}\n" for result in results).encode())

    def delete(self) -> None:
        """Delete the file, so that the next run begins anew."""
        self._file.unlink(missing_ok=True)


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
