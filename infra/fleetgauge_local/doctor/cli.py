"""`fleetgauge doctor`: check this machine for the demo."""

from dataclasses import asdict
from pathlib import Path

import click
import platformdirs
from rich.table import Table

from fleetgauge_core.runtime.cli import console, print_json
from fleetgauge_local.doctor.checks import DoctorCheck, check_machine
from fleetgauge_local.doctor.machine import inspect_machine
from fleetgauge_local.ports import PAGE_PORT
from fleetgauge_pipelines.io.cache import default_cache_folder

_SIGNS = {True: "[green]ok[/]", False: "[red]missing[/]", None: "[yellow]note[/]"}


@click.command(epilog="Example: fleetgauge doctor")
@click.option(
    "--dir",
    "directory",
    type=click.Path(file_okay=False, path_type=Path),
    default=lambda: platformdirs.user_state_path("fleetgauge") / "demo",
    show_default="the user's state folder",
    help="The folder that the demo would use.",
)
@click.option("--json", "as_json", is_flag=True, help="Print the checks as a JSON list.")
def doctor(directory: Path, as_json: bool) -> None:
    """Check whether this machine meets the requirements of the demo; exit code 1 if it does not."""
    with console.status("checking this machine") as spinner:
        checks = check_machine(inspect_machine(default_cache_folder(), directory, PAGE_PORT, spinner.update))
    if as_json:
        print_json([asdict(check) for check in checks])
    else:
        console.print(_table(checks))
    if any(check.ok is False for check in checks):
        raise SystemExit(1)


def _table(checks: tuple[DoctorCheck, ...]) -> Table:
    table = Table(box=None, show_header=False, padding=(0, 2, 0, 0))
    for check in checks:
        table.add_row(_SIGNS[check.ok], check.check, check.found, check.mend or "")
    return table
