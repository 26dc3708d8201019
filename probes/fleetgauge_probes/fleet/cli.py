"""`fleetgauge validate`."""

from pathlib import Path

import click

from fleetgauge_probes.cli import InputError, console, print_json
from fleetgauge_probes.fleet.load import FleetFileError, load


@click.command(epilog="Example: fleetgauge validate fleet.yaml")
@click.argument("config", type=click.Path(path_type=Path), default="fleet.yaml")
@click.option("--json", "as_json", is_flag=True, help="Print the fleet, defaults filled in, as JSON.")
def validate(config: Path, as_json: bool) -> None:
    """Check a fleet file and say what it describes."""
    try:
        fleet = load(config)
    except FleetFileError as error:
        raise InputError(str(error)) from error
    if as_json:
        print_json(fleet.model_dump(mode="json"))
    else:
        ids = ", ".join(cluster.id for cluster in fleet.clusters)
        console.print(f"{config}: valid; clusters {ids}; lake {fleet.lake}", markup=False, soft_wrap=True)
