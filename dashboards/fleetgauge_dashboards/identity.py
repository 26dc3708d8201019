"""Authentication and roles: every user may read, operators may also write."""

from dataclasses import dataclass, replace
from enum import StrEnum

from werkzeug.datastructures import Headers

from fleetgauge_dashboards.site_address import SiteAddress, is_loopback, normalize_address, parse_host

#: Headers that reverse proxies and content delivery networks add, beside all that begin with X-Forwarded-.
_PROXY_HEADERS = (
    "Forwarded",
    "Via",
    "X-Real-IP",
    "X-Client-IP",
    "X-Cluster-Client-IP",
    "X-Original-Forwarded-For",
    "X-Original-URL",
    "X-Envoy-External-Address",
    "True-Client-IP",
    "CF-Connecting-IP",
    "CDN-Loop",
)


class Role(StrEnum):
    """A user's role. Operators may acknowledge and judge alerts and add corrections; viewers only read."""

    VIEWER = "viewer"
    OPERATOR = "operator"


@dataclass(frozen=True, slots=True)
class User:
    """A user: the name recorded as author in the lake, the role, and why a viewer is no operator."""

    name: str
    role: Role
    denial: str = ""


@dataclass(frozen=True, slots=True)
class RequestOrigin:
    """Where a request came from: its headers, the peer address of its connection, and its HTTP version."""

    headers: Headers
    address: str | None
    protocol: str = "HTTP/1.1"

    @property
    def is_proxied(self) -> bool:
        """Whether a reverse proxy passed the request on, as far as it can be known.

        Browsers do not speak HTTP/1.0, which proxies such as nginx speak unless they are told otherwise.
        """
        return (
            self.protocol == "HTTP/1.0"
            or any(name in self.headers for name in _PROXY_HEADERS)
            or any(name.lower().startswith("x-forwarded-") for name, _ in self.headers)
        )


@dataclass(frozen=True, slots=True)
class ProxyLogin:
    """A login by a reverse proxy that authenticates users and names them in a request header.

    The header counts only if the request comes from an address in ``proxies``.
    """

    header: str
    proxies: frozenset[str]
    operators: frozenset[str]

    def is_proxied(self, origin: RequestOrigin) -> bool:
        """Return whether a trusted proxy passed the request on."""
        return normalize_address(origin.address) in self.proxies

    def identify(self, origin: RequestOrigin) -> User | None:
        """Return the user that a trusted proxy named, or None without one."""
        name = origin.headers.get(self.header, "").strip()
        if not self.is_proxied(origin) or not name:
            return None
        return User(name, Role.OPERATOR if name in self.operators else Role.VIEWER)


@dataclass(frozen=True, slots=True)
class LoopbackLogin:
    """A login without authentication: requests over loopback act as operator ``user``, all others as viewer.

    The Host header must name loopback as well, and no proxy may have passed the request on: behind a proxy
    every user has a loopback address.
    """

    user: str

    def is_proxied(self, origin: RequestOrigin) -> bool:
        """Return whether a reverse proxy passed the request on."""
        return origin.is_proxied

    def identify(self, origin: RequestOrigin) -> User:
        """Return the operator for a request over loopback, else an anonymous viewer."""
        if self.is_proxied(origin):
            return User(
                "anonymous",
                Role.VIEWER,
                "a reverse proxy passed the request on without a user's name; let it authenticate users, and "
                "start fleetgauge dash with --user-header",
            )
        is_local = is_loopback(origin.address) and is_loopback(parse_host(origin.headers.get("Host", "")))
        return User(self.user, Role.OPERATOR) if is_local else User("anonymous", Role.VIEWER)


Login = ProxyLogin | LoopbackLogin


def restrict_to_own_pages(user: User, origin: RequestOrigin, site: SiteAddress) -> User:
    """Return the user, as a viewer if the request was not sent by a page of this server.

    A page that a proxy shows under a name that it does not pass on can be read.
    """
    if user.role is Role.VIEWER or site.is_own_origin(origin.headers, origin.address):
        return user
    return replace(
        user,
        role=Role.VIEWER,
        denial=f"the page was opened at {origin.headers.get('Origin', 'an unknown address')}, but the "
        "reverse proxy passes on another Host; let it pass on the browser's, or name it with --allow-host",
    )


def explain_denial(user: User | None) -> str | None:
    """Return why a user may not write, or None for an operator."""
    if user is None:
        return "an unidentified user is a viewer; this needs the operator role."
    if user.role is Role.OPERATOR:
        return None
    return (
        f"{user.name} is a viewer: {user.denial}."
        if user.denial
        else (f"{user.name} is a viewer; this needs the operator role.")
    )
