"""The command `fleetgauge dash`."""

from getpass import getuser
from pathlib import Path
from typing import Any

import click

from fleetgauge_core.fleet import Fleet, FleetFileError, load
from fleetgauge_core.runtime.cli import InputError, console, print_json
from fleetgauge_dashboards.identity import Login, NoLogin, ProxyLogin
from fleetgauge_dashboards.served_fleets import ShownFleet
from fleetgauge_dashboards.server import address, listening, serve


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
    "--workers",
    default=1,
    show_default=True,
    type=click.IntRange(1, 64),
    help="Processes that answer; each keeps what it has read for itself. Two serve 20 readers at once.",
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
    workers: int,
    user_header: str | None,
    proxies: tuple[str, ...],
    operators: tuple[str, ...],
    as_json: bool,
) -> None:
    """Show a lake's service levels in a browser, until interrupted."""
    fleets, login = _fleets(lake, configs), _login(user_header, proxies, operators)
    lakes = ", ".join(fleet.lake for fleet in fleets)
    try:
        listener = listening(host, port)
    except OSError as error:
        raise InputError(
            f"cannot listen on {host} port {port}: {error.strerror or error}; "
            "choose another with --host and --port"
        ) from error

    url = address(listener)

    def load() -> Any:  # In the worker: see server.py.
        import pyarrow

        from fleetgauge_dashboards.app import create_app

        # Arrow's own allocator keeps what it once had, and a page reads much once.
        pyarrow.set_memory_pool(pyarrow.system_memory_pool())
        return create_app(fleets, login).server

    def serving() -> None:
        console.print(f"Fleetgauge shows {lakes} at {url} (Ctrl-C ends it)", markup=False, soft_wrap=True)
        if as_json:
            print_json({"url": url})

    serve(load, listener, workers, serving)


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
        name=fleet.name,
        lake=lake or fleet.lake,
        week_zone=fleet.week.zone,
        week_start=fleet.week.start,
        simulated=fleet.simulated,
        agent_late_us=round(1000 * fleet.agent_late_ms),
        segments={cluster.id: cluster.segments for cluster in fleet.clusters},
        regions={cluster.id: cluster.region for cluster in fleet.clusters if cluster.region is not None},
        mirrors=tuple((one.source, one.destination) for one in fleet.recovery.mirrors),
        ends={cluster.id: cluster.until for cluster in fleet.clusters},
        pairs=tuple(dict.fromkeys((one.active, one.passive) for one in fleet.recovery.groups)),
    )
