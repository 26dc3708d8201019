"""Who asks, and what they may: everybody looks, an operator acknowledges."""

from dataclasses import dataclass
from enum import StrEnum
from ipaddress import ip_address
from urllib.parse import urlsplit

from werkzeug.datastructures import Headers


class Role(StrEnum):
    """An operator may do what writes; each such act leaves a row in ops/actions."""

    VIEWER = "viewer"
    OPERATOR = "operator"


@dataclass(frozen=True, slots=True)
class Person:
    """Whom a row of ops/actions names, and what they may."""

    name: str
    role: Role


@dataclass(frozen=True, slots=True)
class Asked:
    """What a request says of who sent it: its headers, and the address of its connection."""

    headers: Headers
    address: str | None


@dataclass(frozen=True, slots=True)
class ProxyLogin:
    """A proxy in front knows people and names them in a header; nobody else is believed."""

    header: str
    proxies: frozenset[str]
    operators: frozenset[str]

    def person(self, asked: Asked) -> Person | None:
        """None where no trusted proxy says who it is."""
        name = asked.headers.get(self.header, "").strip()
        if asked.address not in self.proxies or not name:
            return None
        return Person(name, Role.OPERATOR if name in self.operators else Role.VIEWER)


@dataclass(frozen=True, slots=True)
class NoLogin:
    """Whoever reaches the server looks; at the machine itself ``user`` is an operator.

    The browser has to have asked for the machine by its own name: a page elsewhere whose
    name was made to lead here (DNS rebinding) is a viewer.
    """

    user: str

    def person(self, asked: Asked) -> Person:
        here = _is_loopback(asked.address) and _is_loopback(_host(asked.headers.get("Host", "")))
        return Person(self.user, Role.OPERATOR) if here else Person("somebody", Role.VIEWER)


Login = ProxyLogin | NoLogin


def _host(header: str) -> str | None:
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
