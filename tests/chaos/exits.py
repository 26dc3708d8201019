"""Runs each reading command hundreds of times: every run ends with the same exit code.

    python -m tests.chaos.exits --runs 300

The runs of a command are spread over its uses, such as with and without --json, and each use's over four ways
to read the output: to the end, its beginning alone, not at all because the pipe is closed, and on a terminal
that knows ASCII only. Results are appended to a file, a line per use, and uses that are in it with as many
runs are skipped. Prints one JSON value. Exits with 0 iff each use had one exit code, which is 0, 1 or 2.
"""

import json
import math
import tempfile
from collections import Counter
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import chdir
from itertools import cycle, islice
from pathlib import Path
from typing import Any

import click

from fleetgauge_core.runtime.cli import main as main_command
from tests.chaos._results import Result, Results, results_option
from tests.chaos._streaming import log_progress
from tests.exits import READING_COMMANDS, Way, run_command
from tests.promises.run_promises import write_inputs

_DOCUMENTED = {0, 1, 2}


def _run(arguments: tuple[str, ...], runs: int, folder: Path) -> dict[str, Any]:
    with ThreadPoolExecutor(2) as workers:
        ways = islice(cycle(Way), runs)
        results = list(workers.map(lambda way: run_command(arguments, way, folder), ways))
    codes = Counter(code for code, _ in results)
    defects = Counter(defect for _, defect in results if defect)
    return {
        "command": " ".join(arguments),
        "runs": runs,
        "codes": {str(code): count for code, count in sorted(codes.items())},
        "defects": dict(defects),
        "right": len(codes) == 1 and codes.keys() <= _DOCUMENTED and not defects,
    }


def _plan_runs(runs: int) -> dict[tuple[str, ...], int]:
    """Return how often to run each use, so that each command has that many runs."""
    uses = Counter(_find_command(arguments) for arguments in READING_COMMANDS)
    return {tuple(each): math.ceil(runs / uses[_find_command(each)]) for each in READING_COMMANDS}


def _find_command(arguments: Sequence[str]) -> tuple[str, ...]:
    """Return the words that name the command; an option such as --version counts as one."""
    command: click.Command | None = main_command
    names = []
    for word in arguments:
        if not isinstance(command, click.Group):
            break
        names.append(word)
        command = command.get_command(click.Context(command), word)
    return tuple(names)


def _select_results(results: Sequence[Result], planned: Mapping[tuple[str, ...], int]) -> list[Result]:
    """Return the last result of each planned use that had enough runs."""
    needed = {" ".join(arguments): runs for arguments, runs in planned.items()}
    last = {result["command"]: result for result in results}
    return [result for name, result in last.items() if result["runs"] >= needed.get(name, math.inf)]


@click.command()
@click.option(
    "--runs", default=300, show_default=True, type=click.IntRange(min=4), help="Runs of each command."
)
@results_option("exits.jsonl")
@click.option("--json", "_as_json", is_flag=True, help="Accepted for uniformity: the result is JSON anyway.")
def main(runs: int, results: Results, _as_json: bool) -> None:
    """Run each reading command many times, and compare the exit codes."""
    planned = _plan_runs(runs)
    done = _select_results(results.read(), planned)
    names = {result["command"] for result in done}
    with tempfile.TemporaryDirectory() as folder:
        with chdir(folder):
            write_inputs(Path(folder))
        for arguments, count in planned.items():
            if " ".join(arguments) in names:
                continue
            done.append(_run(arguments, count, Path(folder)))
            results.add(done[-1])
            log_progress(f"{len(done)} of {len(planned)}: {json.dumps(done[-1])}")
    wrong = [result for result in done if not result["right"]]
    click.echo(
        json.dumps({"uses": len(done), "runs": sum(result["runs"] for result in done), "wrong": wrong})
    )
    raise SystemExit(bool(wrong))


if __name__ == "__main__":
    main()
