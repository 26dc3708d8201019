"""The command `fleetgauge dash`."""

from getpass import getuser
from pathlib import Path
from typing import Any

import click

from fleetgauge_core.fleet import Fleet, FleetFileError, load_fleet
from fleetgauge_core.runtime.cli import InputError, console, print_json
from fleetgauge_dashboards.identity import Login, LoopbackLogin, ProxyLogin
from fleetgauge_dashboards.served_fleets import ServedFleet
from fleetgauge_dashboards.server import format_url, open_listener, serve


@click.command(
    epilog="""\b
Example:
  fleetgauge dash --config fleet.yaml
  fleetgauge dash --lake ./lake --port 8050"""
)
@click.option("--lake", help="The lake: a folder or an object store URI. Default: the lake of --config.")
@click.option(
    "--config",
    "configs",
    multiple=True,
    type=click.Path(path_type=Path),
    help="The fleet file; it names the lake and the time zone of its weeks. Repeat it to serve several "
    "fleets.",
)
@click.option("--host", default="127.0.0.1", show_default=True, help="The address to listen on.")
@click.option(
    "--port",
    default=8050,
    show_default=True,
    type=click.IntRange(0, 65535),
    help="The port to listen on; 0 takes a free port.",
)
@click.option(
    "--workers",
    default=1,
    show_default=True,
    type=click.IntRange(1, 64),
    help="Worker processes, each with its own cache. Two serve 20 concurrent users.",
)
@click.option(
    "--user-header",
    help="The request header in which an authenticating reverse proxy names the user, such as "
    "X-Forwarded-User. "
    "Without it there is no login: all users are viewers, except operators on this machine over loopback.",
)
@click.option(
    "--proxy",
    "proxies",
    multiple=True,
    default=("127.0.0.1", "::1"),
    show_default=True,
    help="The address of a reverse proxy whose --user-header is trusted; may be repeated.",
)
@click.option(
    "--operator",
    "operators",
    multiple=True,
    help="A user, as named by --user-header, who may acknowledge, judge and correct; may be repeated.",
)
@click.option(
    "--json",
    "as_json",
    is_flag=True,
    help='Print {"url": ...} on stdout once the server accepts connections.',
)
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
    """Serve dashboards of a lake's service levels until interrupted."""
    fleets, login = _load_fleets(lake, configs), _select_login(user_header, proxies, operators)
    lakes = ", ".join(fleet.lake for fleet in fleets)
    try:
        listener = open_listener(host, port)
    except OSError as error:
        raise InputError(
            f"cannot listen on {host} port {port}: {error.strerror or error}; "
            "choose another with --host and --port"
        ) from error

    url = format_url(listener)

    def create_application() -> Any:  # Runs in the worker, see server.py.
        import pyarrow

        from fleetgauge_dashboards.app import create_app

        # Arrow's default allocator keeps freed memory, and a page's large reads are rare.
        pyarrow.set_memory_pool(pyarrow.system_memory_pool())
        return create_app(fleets, login).server

    def announce() -> None:
        console.print(f"Serving {lakes} at {url} (Ctrl-C stops the server)", markup=False, soft_wrap=True)
        if as_json:
            print_json({"url": url})

    serve(create_application, listener, workers, announce)


def _select_login(user_header: str | None, proxies: tuple[str, ...], operators: tuple[str, ...]) -> Login:
    if user_header is None:
        if operators:
            raise InputError("--operator requires --user-header: without it users have no names")
        return LoopbackLogin(_local_user())
    return ProxyLogin(user_header, frozenset(proxies), frozenset(operators))


def _local_user() -> str:
    try:
        return getuser()
    except (KeyError, OSError):  # A container's user may have no name.
        return "operator"


def _load_fleets(lake: str | None, configs: tuple[Path, ...]) -> list[ServedFleet]:
    """Return the fleets of the fleet files, or a fleet for the lake alone."""
    if not configs:
        if lake is None:
            raise InputError("no lake given: pass --lake DIR or --config fleet.yaml")
        return [ServedFleet("fleet", lake)]
    if lake is not None and len(configs) > 1:
        raise InputError("--lake cannot be combined with several --config files: each names its own lake")
    try:
        fleets = [load_fleet(config) for config in configs]
    except FleetFileError as error:
        raise InputError(str(error)) from error
    names = [fleet.name for fleet in fleets]
    for name, config in zip(names, configs, strict=True):
        if names.count(name) > 1:
            raise InputError(f"{config}: two fleets are named {name!r}: give each fleet a unique name")
    return [_to_served_fleet(fleet, lake) for fleet in fleets]


def _to_served_fleet(fleet: Fleet, lake: str | None) -> ServedFleet:
    return ServedFleet(
        name=fleet.name,
        lake=lake or fleet.lake,
        week_zone=fleet.week.zone,
        week_start=fleet.week.start,
        simulated=fleet.simulated,
        agent_late_us=round(1000 * fleet.agent_late_ms),
        segments={cluster.id: cluster.segments for cluster in fleet.clusters},
        regions={cluster.id: cluster.region for cluster in fleet.clusters if cluster.region is not None},
        mirrors=tuple((mirror.source, mirror.destination) for mirror in fleet.recovery.mirrors),
        ends={cluster.id: cluster.until for cluster in fleet.clusters},
        pairs=tuple(dict.fromkeys((group.active, group.passive) for group in fleet.recovery.groups)),
    )
