"""Authentication and roles: every user may read, operators may also write."""

from dataclasses import dataclass
from enum import StrEnum
from ipaddress import ip_address
from urllib.parse import urlsplit

from werkzeug.datastructures import Headers


class Role(StrEnum):
    """A user's role. Operators may acknowledge and judge alerts and add corrections; viewers only read."""

    VIEWER = "viewer"
    OPERATOR = "operator"


@dataclass(frozen=True, slots=True)
class User:
    """An authenticated user: the name recorded as author in the lake, and the role."""

    name: str
    role: Role


@dataclass(frozen=True, slots=True)
class RequestOrigin:
    """Where a request came from: its headers, and the peer address of its connection."""

    headers: Headers
    address: str | None


@dataclass(frozen=True, slots=True)
class ProxyLogin:
    """A login by a reverse proxy that authenticates users and names them in a request header.

    The header counts only if the request comes from an address in ``proxies``.
    """

    header: str
    proxies: frozenset[str]
    operators: frozenset[str]

    def identify(self, origin: RequestOrigin) -> User | None:
        """Return the user that a trusted proxy named, or None without one."""
        name = origin.headers.get(self.header, "").strip()
        if origin.address not in self.proxies or not name:
            return None
        return User(name, Role.OPERATOR if name in self.operators else Role.VIEWER)


@dataclass(frozen=True, slots=True)
class LoopbackLogin:
    """A login without authentication: requests over loopback act as operator ``user``, all others as viewer.

    The Host header must name loopback as well: a request for another host name that resolves to this
    machine (DNS rebinding) is a viewer's.
    """

    user: str

    def identify(self, origin: RequestOrigin) -> User:
        """Return the operator for a request over loopback, else an anonymous viewer."""
        is_local = _is_loopback(origin.address) and _is_loopback(_parse_host(origin.headers.get("Host", "")))
        return User(self.user, Role.OPERATOR) if is_local else User("anonymous", Role.VIEWER)


Login = ProxyLogin | LoopbackLogin


def _parse_host(header: str) -> str | None:
    try:
        return urlsplit(f"//{header}").hostname
    except ValueError:
        return None


def _is_loopback(host: str | None) -> bool:
    if host == "localhost":
        return True
    try:
        return ip_address(host or "").is_loopback
    except ValueError:
        return False
