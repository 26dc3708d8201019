"""The command `fleetgauge dash`."""

import signal
from getpass import getuser
from pathlib import Path

import click

from fleetgauge_dashboards.app import create_app, serve
from fleetgauge_dashboards.pages.page import ShownFleet
from fleetgauge_dashboards.people import Login, NoLogin, ProxyLogin
from fleetgauge_probes.cli import InputError, console, print_json
from fleetgauge_probes.fleet import Fleet, FleetFileError, load


@click.command(
    epilog="""\b
Example:
  fleetgauge dash --config fleet.yaml
  fleetgauge dash --lake ./lake --port 8050"""
)
@click.option("--lake", help="The lake: a folder, or an object store's URI. Default: the lake of --config.")
@click.option(
    "--config",
    "configs",
    multiple=True,
    type=click.Path(path_type=Path),
    help="fleet.yaml; gives the lake and the zone of its weeks. Given again: a switch between fleets.",
)
@click.option("--host", default="127.0.0.1", show_default=True, help="The address to listen on.")
@click.option(
    "--port",
    default=8050,
    show_default=True,
    type=click.IntRange(0, 65535),
    help="The port; 0 takes a free one.",
)
@click.option(
    "--user-header",
    help="The header in which a proxy in front names who asks, as X-Forwarded-User. Without it nobody logs "
    "in: all look, and who sits at this machine may acknowledge.",
)
@click.option(
    "--proxy",
    "proxies",
    multiple=True,
    default=("127.0.0.1", "::1"),
    show_default=True,
    help="An address that is believed about --user-header.",
)
@click.option(
    "--operator", "operators", multiple=True, help="Who may acknowledge, as --user-header names them."
)
@click.option("--json", "as_json", is_flag=True, help='Print {"url": ...} on stdout once it serves.')
def dash(
    lake: str | None,
    configs: tuple[Path, ...],
    host: str,
    port: int,
    user_header: str | None,
    proxies: tuple[str, ...],
    operators: tuple[str, ...],
    as_json: bool,
) -> None:
    """Show a lake's service levels in a browser, until interrupted."""
    fleets = _fleets(lake, configs)
    app = create_app(fleets, _login(user_header, proxies, operators))
    lakes = ", ".join(fleet.lake for fleet in fleets)

    def serving(url: str) -> None:
        console.print(f"Fleetgauge shows {lakes} at {url} (Ctrl-C ends it)", markup=False, soft_wrap=True)
        if as_json:
            print_json({"url": url})

    for number in (signal.SIGINT, signal.SIGTERM):
        # Explicitly, for a shell's background job inherits an ignored SIGINT.
        signal.signal(number, signal.default_int_handler)
    try:
        serve(app, host, port, serving)
    except OSError as error:
        raise InputError(
            f"cannot listen on {host} port {port}: {error.strerror or error}; "
            "choose another with --host and --port"
        ) from error
    except KeyboardInterrupt:
        console.print("stopped")


def _login(user_header: str | None, proxies: tuple[str, ...], operators: tuple[str, ...]) -> Login:
    if user_header is None:
        if operators:
            raise InputError("--operator needs --user-header: without it nobody says who they are")
        return NoLogin(_user())
    return ProxyLogin(user_header, frozenset(proxies), frozenset(operators))


def _user() -> str:
    try:
        return getuser()
    except (KeyError, OSError):  # In a container whose user has no name.
        return "operator"


def _fleets(lake: str | None, configs: tuple[Path, ...]) -> list[ShownFleet]:
    """What to show: each file's fleet, or the lake alone."""
    if not configs:
        if lake is None:
            raise InputError("which lake? Give --lake DIR or --config fleet.yaml")
        return [ShownFleet("fleet", lake)]
    if lake is not None and len(configs) > 1:
        raise InputError("--lake goes with one --config at most: each of several has its own lake")
    try:
        fleets = [load(config) for config in configs]
    except FleetFileError as error:
        raise InputError(str(error)) from error
    names = [fleet.name for fleet in fleets]
    for name, config in zip(names, configs, strict=True):
        if names.count(name) > 1:
            raise InputError(f"{config}: name {name!r} is another fleet's as well: give each its own")
    return [_shown(fleet, lake) for fleet in fleets]


def _shown(fleet: Fleet, lake: str | None) -> ShownFleet:
    return ShownFleet(
        fleet.name,
        lake or fleet.lake,
        fleet.week.zone,
        fleet.simulated,
        round(1000 * fleet.agent_late_ms),
    )
