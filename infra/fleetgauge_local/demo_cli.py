"""The command `fleetgauge demo`; `demo_command` runs it."""

import re
from typing import Any

import click

from fleetgauge_core.runtime.cli import Command
from fleetgauge_core.runtime.options import json_option
from fleetgauge_local.options import directory_option
from fleetgauge_local.ports import PAGE_PORT
from fleetgauge_local.simulated_history import CLUSTERS, WEEKS

_UNITS_S = {"s": 1, "m": 60, "h": 3600}


class Duration(click.ParamType[float]):
    """A duration such as `90s`, `5m` or `1h`, converted to seconds."""

    name = "duration"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> float:
        """Return the duration in seconds; fails with a usage error for other formats."""
        match = re.fullmatch(r"(\d+(?:\.\d+)?)([smh]?)", str(value))
        if match is None:
            self.fail(f"{value!r} is not a duration such as 90s, 5m or 1h", param, ctx)
        return float(match[1]) * _UNITS_S[match[2] or "s"]


@click.command(
    cls=Command,
    epilog="\b\nExample:\n  fleetgauge demo --for 5m --fault hang --json\n  fleetgauge demo --regions",
)
@click.option(
    "--for",
    "for_s",
    type=Duration(),
    help="End this long after the demo is ready (90s, 5m); by default it runs until ^C.",
)
@click.option(
    "--fault",
    "kind",
    type=click.Choice(["hang", "kill", "blackhole"]),
    help="Inject a fault into a broker; the demo fails if the watch does not detect it.",
)
@click.option(
    "--regions",
    is_flag=True,
    help="Run two regions, replicated by MirrorMaker into two aggregate clusters, with producers, consumer "
    "groups and `recover run --execute`.",
)
@click.option(
    "--port",
    type=click.IntRange(0, 65535),
    default=None,
    help=f"The dashboard's port.  [default: {PAGE_PORT}, or a free port if it is taken]",
)
@directory_option("demo", "The demo's folder; data of an earlier demo in it is deleted.")
@click.option(
    "--history/--no-history",
    "with_history",
    default=None,
    show_default="history; with --regions none",
    help=f"Also show {CLUSTERS} simulated clusters over {WEEKS} weeks.",
)
@json_option("Print one JSON object on stdout at the end.")
def demo(**options: Any) -> None:
    """Run real Kafka clusters and all Fleetgauge services on this machine; ^C ends them."""
    from fleetgauge_local.demo_command import run_demo

    run_demo(**options)
