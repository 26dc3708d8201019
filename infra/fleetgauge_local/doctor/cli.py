"""The command `fleetgauge doctor`; `command` runs it."""

from typing import Any

import click

from fleetgauge_core.runtime.cli import Command
from fleetgauge_core.runtime.options import json_option
from fleetgauge_local.options import directory_option


@click.command(cls=Command, epilog="Example: fleetgauge doctor")
@directory_option("demo", "The folder that the demo would use.")
@json_option("Print the checks as a JSON list.")
def doctor(**options: Any) -> None:
    """Check whether this machine meets the requirements of the demo; exit code 1 if it does not."""
    from fleetgauge_local.doctor.command import show_checks

    show_checks(**options)
