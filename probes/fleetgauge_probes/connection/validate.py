"""`fleetgauge validate`."""

import logging
import shlex
from collections.abc import Sequence
from dataclasses import asdict
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

import click
from rich.table import Table
from rich.text import Text

from fleetgauge_core.fleet.load import FleetFileError, load
from fleetgauge_core.fleet.model import Fleet
from fleetgauge_core.fleet.schema import schema_text
from fleetgauge_core.runtime.cli import InputError, console, print_json

if TYPE_CHECKING:
    from fleetgauge_probes.connection import Check, Findings

_MARK_BY_OK = {True: Text("ok", "green"), False: Text("mend", "bold red"), None: Text("?", "dim")}


@click.command(
    epilog="""\b
Example:
  fleetgauge validate fleet.yaml
  fleetgauge validate fleet.yaml --connect
  fleetgauge validate --schema > fleet.schema.json"""
)
@click.argument("config", type=click.Path(path_type=Path), default="fleet.yaml")
@click.option(
    "--connect",
    is_flag=True,
    help="Try every cluster for real, changing nothing; exit 1 if one needs mending.",
)
@click.option("--schema", is_flag=True, help="Print the JSON Schema of fleet files instead, for an editor.")
@click.option(
    "--json",
    "as_json",
    is_flag=True,
    help="Print the fleet, defaults filled in, as JSON; with --connect, what was found.",
)
def validate(config: Path, connect: bool, schema: bool, as_json: bool) -> None:
    """Check a fleet file and say what it describes; with --connect, try its clusters."""
    if schema:
        click.echo(schema_text(), nl=False)
        return
    try:
        fleet = load(config)
    except FleetFileError as error:
        raise InputError(str(error)) from error
    if connect:
        _connect(config, fleet, as_json)
    elif as_json:
        print_json(fleet.model_dump(mode="json"))
    else:
        ids = ", ".join(cluster.id for cluster in fleet.clusters)
        console.print(f"{config}: valid; clusters {ids}; lake {fleet.lake}", markup=False, soft_wrap=True)


def _connect(config: Path, fleet: Fleet, as_json: bool) -> None:
    # Kafka clients take a third of a second to import.
    from fleetgauge_probes.connection import try_connections

    # kafka-python narrates every reconnect; what of it matters is in the findings.
    logging.getLogger("kafka").setLevel(logging.CRITICAL + 1)
    with console.status("trying every cluster, each for 10 s at most") as spinner:
        found = try_connections(
            fleet, lambda done: spinner.update(f"{done} clusters tried"), datetime.now(UTC)
        )
    wrong = sum(check.ok is False for one in found for check in one.checks)
    if as_json:
        print_json({"config": str(config), "clusters": [asdict(one) for one in found]})
    else:
        console.print(_table(found))
        told = (
            f"{wrong} to mend" if wrong else f"all is well; next: fleetgauge probe --config {_quoted(config)}"
        )
        console.print(told, style="red" if wrong else "green", markup=False, soft_wrap=True)
    if wrong:
        raise SystemExit(1)


def _table(found: "Sequence[Findings]") -> Table:
    table = Table("cluster", "check", "", "found")
    for one in found:
        for number, check in enumerate(one.checks):
            table.add_row("" if number else one.cluster, check.check, _MARK_BY_OK[check.ok], _words(check))
        table.add_section()
    return table


def _words(check: "Check") -> Text:
    return Text(f"{check.found}\n-> {check.mend}" if check.mend else check.found)


def _quoted(path: Path) -> str:
    return shlex.quote(str(path))
