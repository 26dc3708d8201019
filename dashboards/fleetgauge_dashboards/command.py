"""What `fleetgauge dash` does."""

from getpass import getuser
from pathlib import Path
from typing import Any

from fleetgauge_core.fleet import Fleet, load_fleet
from fleetgauge_core.runtime.cli import InputError, print_json
from fleetgauge_core.runtime.console import console
from fleetgauge_dashboards.identity import Login, LoopbackLogin, ProxyLogin
from fleetgauge_dashboards.served_fleets import ServedFleet
from fleetgauge_dashboards.server import format_url, open_listener, serve


def serve_dashboards(
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
    """Serve dashboards until a signal stops the server. Raises: InputError if it cannot start."""
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
    fleets = [load_fleet(config) for config in configs]
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
