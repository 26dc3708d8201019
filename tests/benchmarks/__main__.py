"""Runs benchmarks by name: Fleetgauge and its peers on the same data in the same run, as ratios of medians.

make bench ARGS="pipeline --json"
"""

import importlib
from pathlib import Path

import click

from fleetgauge_core.runtime.cli import print_json
from fleetgauge_core.runtime.console import console
from tests.benchmarks._measure import Figure, Options, Result

NAMES = sorted(path.stem for path in Path(__file__).parent.glob("*.py") if not path.stem.startswith("_"))


@click.command(epilog='Example: make bench ARGS="pipeline --scale 0.1 --json"')
@click.argument("names", nargs=-1, type=click.Choice(NAMES))
@click.option(
    "--scale",
    type=click.FloatRange(min=0, min_open=True),
    default=1.0,
    show_default=True,
    help="Share of the full size.",
)
@click.option("--only", multiple=True, help="A case of the benchmark, such as p99-raw; may be repeated.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON list.")
def main(names: tuple[str, ...], scale: float, only: tuple[str, ...], as_json: bool) -> None:
    """Measure Fleetgauge and its peers on the same data in the same run."""
    options = Options(scale, only)
    results: list[Result | Figure] = []
    for name in names or NAMES:
        for result in importlib.import_module(f"tests.benchmarks.{name}").measure(options):
            console.print(result.line(), soft_wrap=True)
            results.append(result)
    if as_json:
        print_json([result.document() for result in results])


if __name__ == "__main__":
    main(prog_name="make bench")
