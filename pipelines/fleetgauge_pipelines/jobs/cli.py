"""The commands `fleetgauge stream` and `fleetgauge run`; `stream_command` runs them."""

from typing import Any

import click

from fleetgauge_core.runtime.cli import Command
from fleetgauge_core.runtime.options import (
    config_option,
    json_option,
    lake_option,
    listen_option,
    strict_option,
)

counts_json_option = json_option("Print the counts on stdout as JSON.")

#: ``only_writer: bool``, of commands that write to a lake; see fleetgauge_core.lake.lease.
only_writer_option = click.option(
    "--only-writer",
    is_flag=True,
    help="Write to a lake in a store without conditional writes, where no lease is possible. Make sure that "
    "no other command writes to it.",
)


@click.command(cls=Command, epilog="Example: fleetgauge stream --config fleet.yaml")
@config_option
@lake_option
@click.option(
    "--every",
    "every_s",
    type=click.FloatRange(min=1),
    default=30,
    show_default=True,
    help="Seconds between the starts of two micro-batches.",
)
@only_writer_option
@strict_option
@listen_option
@counts_json_option
def stream(**options: Any) -> None:
    """Write probe records from the telemetry topics to the lake continuously, until stopped."""
    from fleetgauge_pipelines.jobs.stream_command import process_topics

    process_topics(**options)


@click.command(cls=Command, epilog="Example: fleetgauge run --config fleet.yaml --json")
@config_option
@lake_option
@only_writer_option
@counts_json_option
def run(**options: Any) -> None:
    """Write the probe records that the telemetry topics hold now to the lake, then exit."""
    from fleetgauge_pipelines.jobs.stream_command import process_topics

    process_topics(every_s=None, strict=True, listen=None, **options)
