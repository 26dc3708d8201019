"""The proxy for a URL by the environment's variables, as curl, Go and Python's requests read them.

Neither library that could decide it here suffices: the standard library knows no CIDR, requests none of IPv6.
"""

import ipaddress
import re
from collections.abc import Mapping

_BRACKETED = re.compile(r"\[([^]]*)\](?::([0-9]+))?")
_NAME_AND_PORT = re.compile(r"([^:]*)(?::([0-9]+))?")


def choose_proxy(scheme: str, host: str, port: int, environ: Mapping[str, str]) -> str | None:
    """Return the proxy for a URL with this scheme; None for a direct connection.

    An empty variable means no proxy. Loopback addresses are always connected to directly, as the proxy would
    look for them on its own machine.
    """
    proxy = _read_proxy(scheme, environ).strip()
    no_proxy = environ.get("no_proxy", environ.get("NO_PROXY", ""))
    if not proxy or _is_loopback(host) or matches_no_proxy(host, port, no_proxy):
        return None
    return proxy if "://" in proxy else f"http://{proxy}"


def matches_no_proxy(host: str, port: int, no_proxy: str) -> bool:
    """Return whether the value of NO_PROXY lists a host, which is a name or an IP address without brackets.

    Its entries are domains, which include their subdomains, addresses, networks such as 10.0.0.0/8, each
    optionally with a port, or * for all hosts.
    """
    return any(_matches(host.lower().rstrip("."), port, entry) for entry in re.split(r"[,\s]+", no_proxy))


def _read_proxy(scheme: str, environ: Mapping[str, str]) -> str:
    """Return the value of the variable in lower case, or else in upper case."""
    if scheme == "https":
        return environ.get("https_proxy", environ.get("HTTPS_PROXY", ""))
    return environ.get("http_proxy", environ.get("HTTP_PROXY", ""))


def _matches(host: str, port: int, entry: str) -> bool:
    if entry == "*":
        return True
    parts = _BRACKETED.fullmatch(entry) or _NAME_AND_PORT.fullmatch(entry)
    # What has more than one colon and no brackets is an IPv6 address or network.
    name, wanted_port = (parts[1], parts[2]) if parts else (entry, None)
    if not name or (wanted_port and int(wanted_port) != port):
        return False
    address = _parse_address(host)
    if address:
        try:
            return address in ipaddress.ip_network(name, strict=False)
        except ValueError:
            return False
    domain = name.lower().removeprefix("*").strip(".")
    return bool(domain) and (host == domain or host.endswith(f".{domain}"))


def _is_loopback(host: str) -> bool:
    address = _parse_address(host)
    return address.is_loopback if address else host.lower().rstrip(".") == "localhost"


def _parse_address(host: str) -> ipaddress.IPv4Address | ipaddress.IPv6Address | None:
    try:
        return ipaddress.ip_address(host)
    except ValueError:
        return None
