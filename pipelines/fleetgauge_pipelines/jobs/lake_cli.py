"""The commands of `fleetgauge lake`; `lake_command` runs them."""

from typing import Any

import click

from fleetgauge_core.runtime.cli import Group
from fleetgauge_core.runtime.options import clock_option, config_option, lake_option
from fleetgauge_core.slo.retention import MINUTE_RETENTION, SAMPLE_RETENTION
from fleetgauge_pipelines.jobs.cli import counts_json_option, only_writer_option

_samples_days = click.option(
    "--samples-days",
    type=click.IntRange(min=1),
    default=SAMPLE_RETENTION.days,
    show_default=True,
    help="How many days bronze, with the samples, is kept.",
)
_minutes_days = click.option(
    "--minutes-days",
    type=click.IntRange(min=1),
    default=MINUTE_RETENTION.days,
    show_default=True,
    help="How many days silver, with the minutes, is kept.",
)


@click.group(cls=Group, epilog="Example: fleetgauge lake status --config fleet.yaml")
def lake() -> None:
    """Show the size of a lake's tables, compact small files, and remove expired days."""


@lake.command(epilog="Example: fleetgauge lake status --config fleet.yaml --json")
@config_option
@lake_option
@_samples_days
@_minutes_days
@clock_option
@counts_json_option
def status(**options: Any) -> None:
    """Show for each table its size, its number of files, and what `expire` would remove."""
    from fleetgauge_pipelines.jobs.lake_command import show_tables

    show_tables(**options)


@lake.command(epilog="Example: fleetgauge lake compact --config fleet.yaml")
@config_option
@lake_option
@only_writer_option
@clock_option
@counts_json_option
def compact(**options: Any) -> None:
    """Compact the small files of closed days, then remove files that no recent version refers to.

    The pipeline must not run meanwhile. Run the command again to continue after an interruption.
    """
    from fleetgauge_pipelines.jobs.lake_command import compact_tables

    compact_tables(**options)


@lake.command(epilog="Example: fleetgauge lake expire --config fleet.yaml --dry-run")
@config_option
@lake_option
@_samples_days
@_minutes_days
@clock_option
@click.option("--dry-run", is_flag=True, help="Show what would be removed, without removing it.")
@only_writer_option
@counts_json_option
def expire(**options: Any) -> None:
    """Permanently remove old days of samples and minutes; weeks and their evidence stay.

    Days of a week that is open or held back are kept. The pipeline must not run meanwhile.
    """
    from fleetgauge_pipelines.jobs.lake_command import expire_days

    expire_days(**options)


@lake.command(epilog="Example: fleetgauge lake repair --config fleet.yaml --dry-run")
@config_option
@lake_option
@click.option(
    "--accept-loss",
    is_flag=True,
    help="Also repair tables that then lack rows: their damaged commits or data files are set aside.",
)
@click.option("--dry-run", is_flag=True, help="Show what would be repaired, without changing anything.")
@only_writer_option
@counts_json_option
def repair(**options: Any) -> None:
    """Repair tables with damaged files, such as a power failure leaves.

    Damaged files are renamed, never deleted. Without --accept-loss, only what loses no row is repaired. The
    pipeline must not run meanwhile. Exits with 1 if a table stays damaged.
    """
    from fleetgauge_pipelines.jobs.lake_command import repair_tables

    repair_tables(**options)
