"""What `fleetgauge validate` does: check a fleet file and, on request, its clusters and notifiers."""

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

from fleetgauge_core.fleet import Fleet, load_fleet
from fleetgauge_core.fleet.schema import fleet_json_schema
from fleetgauge_core.runtime.cli import print_json
from fleetgauge_core.runtime.console import console, print_table

if TYPE_CHECKING:
    from fleetgauge_probes.connection.check import ConnectionCheck
    from fleetgauge_probes.connection.cluster_checks import ClusterChecks
    from fleetgauge_probes.connection.notifier_checks import NotifierChecks

_MARK_BY_OK = {True: Text("ok", "green"), False: Text("failed", "bold red"), None: Text("?", "dim")}


def validate_fleet_file(config: Path, connect: bool, schema: bool, as_json: bool) -> None:
    """Validate a fleet file, and with ``connect`` its connections; exit with 1 if a check of these fails."""
    if schema:
        click.echo(fleet_json_schema(), nl=False)
        return
    fleet = load_fleet(config)
    if connect:
        _check_fleet(config, fleet, as_json)
    elif as_json:
        print_json(fleet.model_dump(mode="json"))
    else:
        ids = ", ".join(cluster.id for cluster in fleet.clusters)
        console.print(f"{config}: valid; clusters {ids}; lake {fleet.lake}", markup=False, soft_wrap=True)


def _check_fleet(config: Path, fleet: Fleet, as_json: bool) -> None:
    # Imported here because importing the Kafka clients takes a third of a second.
    from fleetgauge_probes.connection.cluster_checks import check_connections
    from fleetgauge_probes.connection.notifier_checks import check_notifiers

    # kafka-python logs every reconnect; the relevant errors are in the checks.
    logging.getLogger("kafka").setLevel(logging.CRITICAL + 1)
    with console.status("checking every cluster, for up to 15 s each") as spinner:
        clusters = check_connections(
            fleet, lambda done: spinner.update(f"{done} clusters checked"), datetime.now(UTC)
        )
        spinner.update("checking the notifiers")
        notifiers = check_notifiers(fleet.notifiers)
    checks = [check for entry in clusters for check in entry.checks]
    checks += [check for entry in notifiers for check in entry.checks]
    failed = sum(check.ok is False for check in checks)
    if as_json:
        print_json(
            {
                "config": str(config),
                "clusters": [asdict(cluster) for cluster in clusters],
                "notifiers": [asdict(notifier) for notifier in notifiers],
            }
        )
    else:
        print_table(console, _build_table(clusters, notifiers))
        if failed:
            console.print(f"{failed} checks failed", style="red", markup=False, soft_wrap=True)
        else:
            command = f"fleetgauge probe --config {shlex.quote(str(config))}"
            console.print(f"all checks passed; next: {command}", style="green", markup=False, soft_wrap=True)
    if failed:
        raise SystemExit(1)


def _build_table(clusters: "Sequence[ClusterChecks]", notifiers: "Sequence[NotifierChecks]") -> Table:
    table = Table("cluster or notifier" if notifiers else "cluster", "check", "", "found")
    for name, checks in [
        *((cluster.cluster, cluster.checks) for cluster in clusters),
        *((notifier.notifier, notifier.checks) for notifier in notifiers),
    ]:
        for number, check in enumerate(checks):
            table.add_row(
                Text("" if number else name), check.check, _MARK_BY_OK[check.ok], _format_check(check)
            )
        table.add_section()
    return table


def _format_check(check: "ConnectionCheck") -> Text:
    return Text(f"{check.found}\n-> {check.mend}" if check.mend else check.found)
