"""The command `fleetgauge validate`: checks a fleet file and, on request, its clusters."""

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

from fleetgauge_core.fleet.command_line import load_fleet_or_exit
from fleetgauge_core.fleet.model import Fleet
from fleetgauge_core.fleet.schema import fleet_json_schema
from fleetgauge_core.runtime.cli import console, print_json
from fleetgauge_core.runtime.options import json_option

if TYPE_CHECKING:
    from fleetgauge_probes.connection import ClusterChecks, ConnectionCheck

_MARK_BY_OK = {True: Text("ok", "green"), False: Text("failed", "bold red"), None: Text("?", "dim")}


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
    help="Connect to every cluster and check it without changing anything; exit 1 if a check fails.",
)
@click.option("--schema", is_flag=True, help="Print the JSON Schema of fleet files instead, for an editor.")
@json_option("Print the fleet with its defaults on stdout as JSON; with --connect, the checks.")
def validate(config: Path, connect: bool, schema: bool, as_json: bool) -> None:
    """Check a fleet file and summarize it; with --connect, check its clusters as well."""
    if schema:
        click.echo(fleet_json_schema(), nl=False)
        return
    fleet = load_fleet_or_exit(config)
    if connect:
        _check_clusters(config, fleet, as_json)
    elif as_json:
        print_json(fleet.model_dump(mode="json"))
    else:
        ids = ", ".join(cluster.id for cluster in fleet.clusters)
        console.print(f"{config}: valid; clusters {ids}; lake {fleet.lake}", markup=False, soft_wrap=True)


def _check_clusters(config: Path, fleet: Fleet, as_json: bool) -> None:
    # Imported here because importing the Kafka clients takes a third of a second.
    from fleetgauge_probes.connection import check_connections

    # kafka-python logs every reconnect; the relevant errors are in the checks.
    logging.getLogger("kafka").setLevel(logging.CRITICAL + 1)
    with console.status("checking every cluster, for up to 10 s each") as spinner:
        clusters = check_connections(
            fleet, lambda done: spinner.update(f"{done} clusters checked"), datetime.now(UTC)
        )
    failed = sum(check.ok is False for cluster in clusters for check in cluster.checks)
    if as_json:
        print_json({"config": str(config), "clusters": [asdict(cluster) for cluster in clusters]})
    else:
        console.print(_build_table(clusters))
        if failed:
            console.print(f"{failed} checks failed", style="red", markup=False, soft_wrap=True)
        else:
            command = f"fleetgauge probe --config {shlex.quote(str(config))}"
            console.print(f"all checks passed; next: {command}", style="green", markup=False, soft_wrap=True)
    if failed:
        raise SystemExit(1)


def _build_table(clusters: "Sequence[ClusterChecks]") -> Table:
    table = Table("cluster", "check", "", "found")
    for cluster in clusters:
        for number, check in enumerate(cluster.checks):
            name = "" if number else cluster.cluster
            table.add_row(name, check.check, _MARK_BY_OK[check.ok], _format_check(check))
        table.add_section()
    return table


def _format_check(check: "ConnectionCheck") -> Text:
    return Text(f"{check.found}\n-> {check.mend}" if check.mend else check.found)
