"""The command `fleetgauge backfill`; `backfill_command` runs it."""

from typing import Any

import click

from fleetgauge_core.runtime.cli import Command
from fleetgauge_core.runtime.options import PathParam, clock_option, config_option, lake_option
from fleetgauge_pipelines.jobs.cli import counts_json_option, only_writer_option


@click.command(
    cls=Command, epilog="Example: fleetgauge backfill --from ./records --lake ./lake --config fleet.yaml"
)
@click.option(
    "--from",
    "folder",
    type=PathParam(exists=True, file_okay=False),
    help="Folder of *.avro and *.parquet files with ProbeMinute records.",
)
@click.option(
    "--topic", help="Topic of the telemetry cluster to read, instead of files: all records that it holds now."
)
@click.option(
    "--changes",
    "change_file",
    type=PathParam(exists=True, dir_okay=False),
    help="JSON file of changes, as `fleetgauge changes --json` prints them; with records, or alone.",
)
@click.option(
    "--again",
    is_flag=True,
    help="Also process files or offsets that were processed before; no table changes.",
)
@config_option
@lake_option
@only_writer_option
@clock_option
@counts_json_option
def backfill(**options: Any) -> None:
    """Write probe records from files, or all records of a topic, and changes to the lake.

    Run it again to continue a backfill that was stopped. Reading files needs no Kafka broker.
    """
    from fleetgauge_pipelines.jobs.backfill_command import fill_lake

    fill_lake(**options)
