"""Runs each reading command hundreds of times: every run ends with the same exit code.

    python -m tests.chaos.exits --runs 300

The runs are spread over four ways to read the output: to the end, its beginning alone, not at all because the
pipe is closed, and on a terminal that knows ASCII only. Results are appended to a file, a line per command,
and commands that are in it are skipped. Prints one JSON value. Exits with 0 iff no run had another exit code
than the command's first run, and none of 0, 1 and 2 was missing from the codes that a command may have.
"""

import json
import tempfile
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from contextlib import chdir
from itertools import cycle, islice
from pathlib import Path
from typing import Any

import click

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


def _read_results(file: Path, runs: int) -> list[dict[str, Any]]:
    if not file.exists():
        return []
    results = [json.loads(line) for line in file.read_text(encoding="utf-8").splitlines()]
    return [result for result in results if result["runs"] == runs]


@click.command()
@click.option("--runs", default=300, show_default=True, type=click.IntRange(min=4), help="Runs per command.")
@click.option(
    "--results",
    default=Path("exits.jsonl"),
    show_default=True,
    type=click.Path(dir_okay=False, path_type=Path),
    help="File of the results, from which an interrupted run resumes.",
)
@click.option("--json", "_as_json", is_flag=True, help="Accepted for uniformity: the result is JSON anyway.")
def main(runs: int, results: Path, _as_json: bool) -> None:
    """Run each reading command many times, and compare the exit codes."""
    done = _read_results(results, runs)
    names = {result["command"] for result in done}
    with tempfile.TemporaryDirectory() as folder:
        with chdir(folder):
            write_inputs(Path(folder))
        for arguments in READING_COMMANDS:
            if " ".join(arguments) in names:
                continue
            done.append(_run(tuple(arguments), runs, Path(folder)))
            with results.open("a", encoding="utf-8") as file:
                file.write(json.dumps(done[-1]) + "\n")
            log_progress(f"{len(done)} of {len(READING_COMMANDS)}: {json.dumps(done[-1])}")
    wrong = [result for result in done if not result["right"]]
    click.echo(
        json.dumps({"commands": len(done), "runs": sum(result["runs"] for result in done), "wrong": wrong})
    )
    raise SystemExit(bool(wrong))


if __name__ == "__main__":
    main()
