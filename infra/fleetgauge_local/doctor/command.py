"""What `fleetgauge doctor` does: check this machine for the demo."""

from dataclasses import asdict
from pathlib import Path

from rich.table import Table
from rich.text import Text

from fleetgauge_core.runtime.cli import print_json
from fleetgauge_core.runtime.console import console, print_table
from fleetgauge_local.doctor.checks import DoctorCheck, check_machine
from fleetgauge_local.doctor.machine import inspect_machine
from fleetgauge_local.ports import PAGE_PORT
from fleetgauge_pipelines.io.cache import default_cache_folder

_SIGNS = {True: Text("ok", "green"), False: Text("missing", "red"), None: Text("note", "yellow")}


def show_checks(directory: Path, as_json: bool) -> None:
    """Check this machine and print the checks; exit with 1 if one of them fails."""
    with console.status("checking this machine") as spinner:
        checks = check_machine(inspect_machine(default_cache_folder(), directory, PAGE_PORT, spinner.update))
    if as_json:
        print_json([asdict(check) for check in checks])
    else:
        print_table(console, _table(checks))
    if any(check.ok is False for check in checks):
        raise SystemExit(1)


def _table(checks: tuple[DoctorCheck, ...]) -> Table:
    table = Table(box=None, show_header=False, padding=(0, 2, 0, 0))
    for check in checks:
        table.add_row(_SIGNS[check.ok], check.check, check.found, check.mend or "")
    return table
