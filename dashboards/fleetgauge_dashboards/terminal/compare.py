"""The command `fleetgauge compare`; `compare_command` runs it."""

from typing import Any

import click

from fleetgauge_core.runtime.cli import Command
from fleetgauge_dashboards.terminal.options import lake_options, output_options
from fleetgauge_dashboards.views.comparison_metrics import METRICS

_WEEK = click.DateTime(["%Y-%m-%d"])


@click.command(
    cls=Command,
    epilog="""\b
Example:
  fleetgauge compare --by storage=ssd,nvme
  fleetgauge compare --by region=eu-west-1,us-east-1 --metric availability_ratio --weeks 8
  fleetgauge compare --before 2026-03-02 --after 2026-03-09 --by kafka=4.3""",
)
@click.option("--by", metavar="LABEL=A,B", help="A label (or cloud, region, tier) and two of its values.")
@click.option(
    "--metric",
    type=click.Choice(list(METRICS)),
    default="latency_p99_us",
    show_default=True,
    help="The metric of cluster-weeks to compare.",
)
@click.option(
    "--weeks",
    type=click.IntRange(1),
    default=4,
    show_default=True,
    help="The number of newest closed weeks; each cluster counts with its median week.",
)
@click.option(
    "--before", type=_WEEK, metavar="WEEK", help="With --after: compare the same clusters in two weeks."
)
@click.option("--after", type=_WEEK, metavar="WEEK", help="With --before; --by LABEL=A selects clusters.")
@lake_options
@output_options
def compare(**options: Any) -> None:
    """Compare clusters with different label values, or the same clusters before and after a change.

    The result is the difference of the groups' medians, or the median of each cluster's difference, with a
    95% confidence interval by bootstrapping over clusters. Weeks with less than 90% coverage are excluded.
    --csv prints each cluster's values.
    """
    from fleetgauge_dashboards.terminal.compare_command import compare_clusters

    compare_clusters(**options)
