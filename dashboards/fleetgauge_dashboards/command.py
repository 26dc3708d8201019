"""What `fleetgauge dash` does."""

import os
from collections.abc import Sequence
from getpass import getuser
from pathlib import Path
from socket import gethostname
from typing import Any
from urllib.parse import urlsplit

from fleetgauge_core.fleet import Fleet, load_fleet
from fleetgauge_core.runtime.cli import InputError, print_json
from fleetgauge_core.runtime.console import console
from fleetgauge_dashboards.identity import Login, LoopbackLogin, ProxyLogin
from fleetgauge_dashboards.operator_key import choose_key, format_operator_url
from fleetgauge_dashboards.path_prefix import parse_prefix
from fleetgauge_dashboards.served_fleets import ServedFleet
from fleetgauge_dashboards.server import format_url, open_listener, serve
from fleetgauge_dashboards.site_address import (
    SiteAddress,
    TrustedProxies,
    is_address,
    is_loopback,
    parse_host,
)

#: Dash reads this variable and cannot start with it, since it gets its paths otherwise.
_DASH_PATH_VARIABLE = "DASH_URL_BASE_PATHNAME"


def serve_dashboards(
    lake: str | None,
    configs: tuple[Path, ...],
    host: str,
    port: int,
    workers: int,
    user_header: str | None,
    proxies: tuple[str, ...],
    operators: tuple[str, ...],
    allowed_hosts: tuple[str, ...],
    path: str,
    as_json: bool,
) -> None:
    """Serve dashboards until a signal stops the server. Raises: InputError if it cannot start."""
    fleets = _load_fleets(lake, configs)
    site = _describe_site(fleets, host, proxies, allowed_hosts, path)
    login = _select_login(user_header, site.proxies, operators)
    lakes = ", ".join(fleet.lake for fleet in fleets)
    try:
        listener = open_listener(host, port)
    except OSError as error:
        raise InputError(
            f"cannot listen on {host} port {port}: {error.strerror or error}; "
            "choose another with --host and --port"
        ) from error

    url = f"{format_url(listener)}{site.path[1:]}{'/' if site.path else ''}"

    def create_application() -> Any:  # Runs in the worker, see server.py.
        import pyarrow

        from fleetgauge_dashboards.app import create_app

        # Arrow's default allocator keeps freed memory, and a page's large reads are rare.
        pyarrow.set_memory_pool(pyarrow.system_memory_pool())
        return create_app(fleets, login, site=site).server

    def announce() -> None:
        _print_line(f"Serving {lakes} at {url} (Ctrl-C stops the server)")
        urls = {"url": url}
        if isinstance(login, LoopbackLogin) and is_loopback(urlsplit(url).hostname):
            urls |= {"operator_url": format_operator_url(url, login.key)}
            _print_line(f"To acknowledge alerts and add corrections, open {urls['operator_url']}")
        if as_json:
            print_json(urls)

    serve(create_application, listener, workers, announce, site.proxies)


def _print_line(text: str) -> None:
    console.print(text, markup=False, soft_wrap=True)


def _describe_site(
    fleets: Sequence[ServedFleet],
    host: str,
    proxies: Sequence[str],
    allowed_hosts: Sequence[str],
    path: str,
) -> SiteAddress:
    """Return where browsers reach the pages.

    The names are those of the options, of the fleets' page_url, and of this machine.
    """
    if _DASH_PATH_VARIABLE in os.environ:
        raise InputError(f"{_DASH_PATH_VARIABLE} is set; unset it and use --path instead")
    prefix = parse_prefix(path)
    if prefix is None:
        raise InputError(
            f"--path {path}: not a path for the pages; it begins with a slash, has only letters, digits and "
            "._~- between slashes, and is none of the pages' own, such as /alerts"
        )
    for name in allowed_hosts:
        if parse_host(name) is None or parse_host(name) != name.lower().removesuffix("."):
            raise InputError(f"--allow-host {name}: not a host name; give a name alone, such as ops.example")
    page_hosts = (
        fleet.page_url.partition("://")[2].partition("/")[0] for fleet in fleets if fleet.page_url is not None
    )
    names = map(parse_host, (*allowed_hosts, *page_hosts, host, gethostname()))
    return SiteAddress(
        names=frozenset(name for name in names if name is not None and not is_address(name)),
        proxies=_parse_proxies(proxies),
        path=prefix,
    )


def _parse_proxies(proxies: Sequence[str]) -> TrustedProxies:
    try:
        return TrustedProxies.parse(proxies)
    except ValueError as error:
        raise InputError(
            f"--proxy {error}: not an IP address, nor a network such as 10.0.0.0/8 without host bits; repeat "
            "the option for several proxies"
        ) from error


def _select_login(user_header: str | None, proxies: TrustedProxies, operators: tuple[str, ...]) -> Login:
    if user_header is None:
        if operators:
            raise InputError("--operator requires --user-header: without it users have no names")
        return LoopbackLogin(_local_user(), choose_key())
    return ProxyLogin(user_header, proxies, frozenset(operators))


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
        page_url=fleet.page_url,
        agent_late_us=round(1000 * fleet.agent_late_ms),
        segments={cluster.id: cluster.segments for cluster in fleet.clusters},
        regions={cluster.id: cluster.region for cluster in fleet.clusters if cluster.region is not None},
        mirrors=tuple((mirror.source, mirror.destination) for mirror in fleet.recovery.mirrors),
        ends={cluster.id: cluster.until for cluster in fleet.clusters},
        pairs=tuple(dict.fromkeys((group.active, group.passive) for group in fleet.recovery.groups)),
    )
