"""The path below which a reverse proxy shows the pages, as in https://ops.example/fleetgauge/.

WSGI calls it SCRIPT_NAME: it precedes every address that the pages contain.
"""

import logging
import re
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from fleetgauge_dashboards.site_address import SiteAddress

#: Segments of characters that no client escapes, so that a path is written in one way only.
_PREFIX = re.compile(r"(/(?!\.{1,2}(/|$))[A-Za-z0-9._~-]+)*/?", re.ASCII)
_MAX_LENGTH = 200
#: The first segments of the pages' own addresses.
_OWN_SEGMENTS = frozenset(
    {"cluster", "alerts", "recovery", "review", "quality", "table", "csv", "operator", "assets", "static"}
    | {"livez", "readyz", "metrics"}
)
_log = logging.getLogger("fleetgauge.dash")

Environment = dict[str, Any]
WsgiApplication = Callable[[Environment, Callable[..., Any]], Iterable[bytes]]


def parse_prefix(text: str) -> str | None:
    """Return a path as a prefix, without a slash at its end ("" for the root), or None if it cannot be one.

    It must begin with a slash and differ from the pages' own addresses: of a request for /alerts it could not
    be told whether the proxy has removed the prefix.
    """
    if not text.startswith("/") or len(text) > _MAX_LENGTH or not _PREFIX.fullmatch(text):
        return None
    first = text.split("/")[1]
    return None if first in _OWN_SEGMENTS or first.startswith("_") else text.rstrip("/")


def remove_prefix(path: str, prefix: str) -> str:
    """Return the path below the prefix; a path that does not begin with it is below it already."""
    if prefix and (path == prefix or path.startswith(f"{prefix}/")):
        return path.removeprefix(prefix) or "/"
    return path


class PathPrefix:
    """WSGI middleware that takes the prefix from the request of a trusted proxy, or else from ``path``.

    Proxies may pass on the address with the prefix or without it; both are served.
    """

    def __init__(self, application: WsgiApplication, site: SiteAddress) -> None:
        self._application = application
        self._site = site
        self._is_reported = False

    def __call__(self, environment: Environment, start_response: Callable[..., Any]) -> Iterable[bytes]:
        """Serve a request with its prefix as SCRIPT_NAME."""
        prefix = self._find_prefix(environment)
        path = remove_prefix(environment.get("PATH_INFO", ""), prefix)
        return self._application(environment | {"SCRIPT_NAME": prefix, "PATH_INFO": path}, start_response)

    def _find_prefix(self, environment: Mapping[str, Any]) -> str:
        forwarded = environment.get("HTTP_X_FORWARDED_PREFIX")
        if forwarded is None or not self._site.proxies.includes(environment.get("REMOTE_ADDR")):
            return self._site.path
        prefix = parse_prefix(forwarded)
        if prefix is not None:
            return prefix
        if not self._is_reported:
            self._is_reported = True
            _log.warning("ignoring X-Forwarded-Prefix %r: it is no path for pages", forwarded[:_MAX_LENGTH])
        return self._site.path
