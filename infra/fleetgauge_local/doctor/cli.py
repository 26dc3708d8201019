"""`fleetgauge doctor`."""

from dataclasses import asdict
from pathlib import Path

import click
import platformdirs
from rich.table import Table

from fleetgauge_core.runtime.cli import console, print_json
from fleetgauge_local.doctor.judge import Check, judge
from fleetgauge_local.doctor.machine import look
from fleetgauge_local.ports import PAGE_PORT
from fleetgauge_pipelines.io.cache import default_cache

_SIGNS = {True: "[green]ok[/]", False: "[red]missing[/]", None: "[yellow]note[/]"}


@click.command(epilog="Example: fleetgauge doctor")
@click.option(
    "--dir",
    "directory",
    type=click.Path(file_okay=False, path_type=Path),
    default=lambda: platformdirs.user_state_path("fleetgauge") / "demo",
    show_default="the user's state folder",
    help="Where the demo would live.",
)
@click.option("--json", "as_json", is_flag=True, help="The checks as a JSON list.")
def doctor(directory: Path, as_json: bool) -> None:
    """Say what this machine has of what the demo needs; exit code 1 if something is missing."""
    with console.status("looking") as spinner:
        checks = judge(look(default_cache(), directory, PAGE_PORT, spinner.update))
    if as_json:
        print_json([asdict(check) for check in checks])
    else:
        console.print(_table(checks))
    if any(check.ok is False for check in checks):
        raise SystemExit(1)


def _table(checks: tuple[Check, ...]) -> Table:
    table = Table(box=None, show_header=False, padding=(0, 2, 0, 0))
    for check in checks:
        table.add_row(_SIGNS[check.ok], check.check, check.found, check.mend or "")
    return table
