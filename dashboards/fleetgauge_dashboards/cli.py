"""The command `fleetgauge dash`."""

import signal
from pathlib import Path

import click

from fleetgauge_dashboards.app import create_app, serve
from fleetgauge_probes.cli import InputError, console, print_json
from fleetgauge_probes.fleet import FleetFileError, load


@click.command(
    epilog="""\b
Example:
  fleetgauge dash --config fleet.yaml
  fleetgauge dash --lake ./lake --port 8050"""
)
@click.option("--lake", help="The lake: a folder, or an object store's URI. Default: the lake of --config.")
@click.option(
    "--config", type=click.Path(path_type=Path), help="fleet.yaml; gives the lake and the zone of its weeks."
)
@click.option("--host", default="127.0.0.1", show_default=True, help="The address to listen on.")
@click.option(
    "--port",
    default=8050,
    show_default=True,
    type=click.IntRange(0, 65535),
    help="The port; 0 takes a free one.",
)
@click.option("--json", "as_json", is_flag=True, help='Print {"url": ...} on stdout once it serves.')
def dash(lake: str | None, config: Path | None, host: str, port: int, as_json: bool) -> None:
    """Show a lake's service levels in a browser, until interrupted."""
    root, zone = _source(lake, config)
    app = create_app(root, week_zone=zone)

    def serving(url: str) -> None:
        console.print(f"Fleetgauge shows {root} at {url} (Ctrl-C ends it)", markup=False, soft_wrap=True)
        if as_json:
            print_json({"url": url})

    signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        serve(app, host, port, serving)
    except OSError as error:
        raise InputError(
            f"cannot listen on {host} port {port}: {error.strerror or error}; "
            "choose another with --host and --port"
        ) from error
    except KeyboardInterrupt:
        console.print("stopped")


def _source(lake: str | None, config: Path | None) -> tuple[str, str]:
    """The lake and the zone in which its weeks begin."""
    if config is None:
        if lake is None:
            raise InputError("which lake? Give --lake DIR or --config fleet.yaml")
        return lake, "UTC"
    try:
        fleet = load(config)
    except FleetFileError as error:
        raise InputError(str(error)) from error
    return lake or fleet.lake, fleet.week.zone
