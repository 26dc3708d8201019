"""The names under which browsers reach the pages, and the reverse proxies that may report them.

A name that is not the server's own may have been made to resolve to it (DNS rebinding): a browser then lets
the web site of that name read the responses. An IP address has no such owner.
"""

import re
from collections.abc import Iterable
from dataclasses import dataclass
from ipaddress import IPv4Network, IPv6Address, IPv6Network, ip_address, ip_network
from urllib.parse import urlsplit

from werkzeug.datastructures import Headers

#: The ports that browsers leave out of an origin and a Host header.
_DEFAULT_PORTS = {"http": 80, "https": 443}
_IPV4_MAPPED = ip_network("::ffff:0:0/96")
_HOST_NAME = re.compile(r"(?=.{1,253}$)[a-z0-9_-]{1,63}(\.[a-z0-9_-]{1,63})*", re.ASCII)


@dataclass(frozen=True, slots=True)
class TrustedProxies:
    """The reverse proxies whose headers are believed; an address is a network of one."""

    networks: tuple[IPv4Network | IPv6Network, ...] = ()

    @classmethod
    def parse(cls, texts: Iterable[str]) -> "TrustedProxies":
        """Return the proxies of addresses and networks such as 10.0.0.9 and 10.0.0.0/8.

        Raises: ValueError, whose message is the first text that is neither.
        """
        networks = []
        for text in texts:
            try:
                network = ip_network(normalize_address(text) or text)
            except ValueError as error:
                raise ValueError(text) from error
            if network.version == 6 and network.overlaps(_IPV4_MAPPED) and network.prefixlen >= 96:
                # Peers of such a network have IPv4 addresses here.
                raise ValueError(text)
            networks.append(network)
        return cls(tuple(networks))

    def includes(self, address: str | None) -> bool:
        """Return whether a peer is one of them."""
        text = normalize_address(address)
        return text is not None and is_address(text) and any(ip_address(text) in net for net in self.networks)


@dataclass(frozen=True, slots=True)
class SiteAddress:
    """Where browsers reach the pages.

    ``names`` are the server's own host names in lower case. ``path`` is the path of the pages without a slash
    at its end, unless a proxy reports another.
    """

    names: frozenset[str] = frozenset()
    proxies: TrustedProxies = TrustedProxies()
    path: str = ""

    def is_own_host(self, headers: Headers) -> bool:
        """Return whether the Host header has an own name or an IP address, or is missing.

        Browsers always send it.
        """
        header = headers.get("Host", "")
        host = parse_host(header)
        return not header or (
            host is not None and (host in self.names or is_loopback(host) or is_address(host))
        )

    def is_own_origin(self, headers: Headers, address: str | None) -> bool:
        """Return whether the Origin header names this server.

        It has an own name, or equals the Host header, or the X-Forwarded-Host of a trusted proxy at
        ``address``.
        """
        scheme, _, netloc = headers.get("Origin", "").partition("://")
        origin = _parse_netloc(netloc, _DEFAULT_PORTS.get(scheme))
        if origin is None or scheme not in _DEFAULT_PORTS:
            return False
        hosts = [headers.get("Host", "")]
        if self.proxies.includes(address):
            hosts.append(headers.get("X-Forwarded-Host", ""))
        return origin[0] in self.names or any(
            origin == _parse_netloc(host, _DEFAULT_PORTS[scheme]) for host in hosts
        )


#: A server without a name, which only browsers on this machine or by its IP address reach.
LOCAL_SITE = SiteAddress()


def parse_host(netloc: str) -> str | None:
    """Return the host of "host" or "host:port" in lower case without a final dot, or None if malformed."""
    parsed = _parse_netloc(netloc, None)
    return parsed and parsed[0]


def parse_port(netloc: str) -> int | None:
    """Return the port of "host:port", or None if it is missing or malformed."""
    parsed = _parse_netloc(netloc, None)
    return parsed and parsed[1]


def _parse_netloc(netloc: str, default_port: int | None) -> tuple[str, int | None] | None:
    try:
        url = urlsplit(f"//{netloc}")
        host, port = (url.hostname or "").removesuffix("."), url.port
    except ValueError:
        return None
    is_host = is_address(host) or _HOST_NAME.fullmatch(host) is not None
    return (host, port or default_port) if is_host and url.netloc == netloc and "@" not in netloc else None


def is_address(host: str) -> bool:
    """Return whether a host is an IP address."""
    try:
        ip_address(host)
    except ValueError:
        return False
    return True


def is_loopback(host: str | None) -> bool:
    """Return whether a host is this machine: a loopback address, or a name that browsers resolve to one."""
    address = normalize_address(host)
    if address is None or not is_address(address):
        return address == "localhost" or (address or "").endswith(".localhost")
    return ip_address(address).is_loopback


def normalize_address(address: str | None) -> str | None:
    """Return an IP address in its usual form, an IPv4 address that is mapped to IPv6 as IPv4."""
    try:
        ip = ip_address(address or "")
    except ValueError:
        return address
    return str((ip.ipv4_mapped if isinstance(ip, IPv6Address) else None) or ip)
