"""Authentication and roles: every user may read, operators may also write."""

import secrets
from dataclasses import dataclass, field, replace
from enum import StrEnum

from werkzeug.datastructures import Headers
from werkzeug.sansio.http import parse_cookie
from werkzeug.wrappers import Request

from fleetgauge_dashboards.site_address import (
    SiteAddress,
    TrustedProxies,
    is_loopback,
    parse_host,
    parse_port,
)

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
#: How a user of this machine becomes an operator.
LINK_ADVICE = (
    "open the link for operators that fleetgauge dash printed when it started, and use the pages under the "
    "address of that link"
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

    @classmethod
    def of(cls, request: Request) -> "RequestOrigin":
        """Return the origin of a request."""
        wsgi_variables = request.environ
        return cls(request.headers, request.remote_addr, wsgi_variables["SERVER_PROTOCOL"])

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

    @property
    def operator_cookies(self) -> list[str]:
        """The values of the operators' cookie; another path of the same host may have set one as well."""
        return parse_cookie(self.headers.get("Cookie")).getlist(name_operator_cookie(self.headers))


def name_operator_cookie(headers: Headers) -> str:
    """Return the name of the operators' cookie.

    It ends with the port of the Host header: browsers send a host's cookies to all of its ports, so that
    servers on one machine would replace each other's.
    """
    return f"fleetgauge_operator_{parse_port(headers.get('Host', '')) or 80}"


@dataclass(frozen=True, slots=True)
class ProxyLogin:
    """A login by a reverse proxy that authenticates users and names them in a request header.

    The header counts only if the request comes from one of ``proxies``.
    """

    header: str
    proxies: TrustedProxies
    operators: frozenset[str]

    def is_proxied(self, origin: RequestOrigin) -> bool:
        """Return whether a trusted proxy passed the request on."""
        return self.proxies.includes(origin.address)

    def identify(self, origin: RequestOrigin) -> User | None:
        """Return the user that a trusted proxy named, or None without one."""
        name = origin.headers.get(self.header, "").strip()
        if not self.is_proxied(origin) or not name:
            return None
        return User(name, Role.OPERATOR if name in self.operators else Role.VIEWER)


@dataclass(frozen=True, slots=True)
class LoopbackLogin:
    """A login by a key: requests over loopback with the key act as operator ``user``, all others as viewer.

    A browser gets the key, as a cookie, from a link that the server prints. The address alone does not tell
    who sent a request: behind a proxy on the same machine every user has a loopback address, and a proxy may
    pass requests on without a sign of itself. The Host header must name loopback as well.
    """

    user: str
    key: str = field(repr=False)

    def is_proxied(self, origin: RequestOrigin) -> bool:
        """Return whether a reverse proxy passed the request on."""
        return origin.is_proxied

    def identify(self, origin: RequestOrigin) -> User:
        """Return the operator for a request over loopback with the key, else an anonymous viewer."""
        denial = self.find_denial(origin)
        if not denial and any(map(self.is_key, origin.operator_cookies)):
            return User(self.user, Role.OPERATOR)
        return User("anonymous", Role.VIEWER, denial or LINK_ADVICE)

    def find_denial(self, origin: RequestOrigin) -> str:
        """Return why a request cannot be an operator's, whatever its key; "" if it can."""
        if self.is_proxied(origin):
            return (
                "a reverse proxy passed the request on without a user's name; let it authenticate users, and "
                "start fleetgauge dash with --user-header"
            )
        if is_loopback(origin.address) and is_loopback(parse_host(origin.headers.get("Host", ""))):
            return ""
        return "without --user-header, only users of the machine that runs fleetgauge dash can be operators"

    def is_key(self, text: str) -> bool:
        """Return whether a text is the key; the time that it takes does not depend on where they differ."""
        return secrets.compare_digest(text.encode(), self.key.encode())


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
