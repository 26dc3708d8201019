"""How a receiver is reached by POST, and what its answer means."""

import logging
import re
from enum import StrEnum
from urllib.parse import urljoin

import urllib3

_log = logging.getLogger("fleetgauge.notify")

_TIMEOUT_S = 5
#: Answers to a body that will never be accepted: malformed, too large, not understood. Every other error
#: may pass: a key or an address that is corrected, a proxy, a rate limit.
_REJECTED = (400, 413, 422)
#: Redirects after which the same body is to be sent again, to the other address.
_MOVED = (307, 308)
_ABOUT_THE_KEY = re.compile(rb"routing[ _]key", re.IGNORECASE)


class PostResult(StrEnum):
    """The result of a POST."""

    ACCEPTED = "accepted"
    REJECTED = "rejected"
    """The same body will not be accepted later either."""
    UNAVAILABLE = "unavailable"
    """The receiver cannot be reached, or answers with an error that may pass."""


def open_pool() -> urllib3.PoolManager:
    """Return a pool that never retries: retries are the outbox's."""
    return urllib3.PoolManager(retries=False, timeout=urllib3.Timeout(_TIMEOUT_S))


def post(pool: urllib3.PoolManager, kind: str, url: str, body: object, what: str) -> PostResult:
    """POST a body once; unless it is accepted the log says why, without the URL, which may hold a secret."""
    try:
        response = _request(pool, url, body)
    except urllib3.exceptions.HTTPError as error:
        reason = getattr(error, "reason", None) or error
        _log.error("%s: %s not delivered: %s", kind, what, type(reason).__name__)
        return PostResult.UNAVAILABLE
    if response.status < 300:
        return PostResult.ACCEPTED
    _log.error("%s: %s refused with status %d", kind, what, response.status)
    # PagerDuty answers 400 to an unknown key, too: the key can be corrected, and the body is good.
    rejected = response.status in _REJECTED and not _ABOUT_THE_KEY.search(response.data)
    return PostResult.REJECTED if rejected else PostResult.UNAVAILABLE


def _request(pool: urllib3.PoolManager, url: str, body: object) -> urllib3.BaseHTTPResponse:
    """Follow a redirect within the same host. Any other one leads to a login page or elsewhere, where a 200
    does not mean that the body was accepted."""
    response = pool.request("POST", url, json=body)
    location = response.get_redirect_location() or ""
    target = redirect_target(url, location) if response.status in _MOVED else None
    return pool.request("POST", target, json=body) if target else response


def redirect_target(url: str, location: str) -> str | None:
    """Return the redirect's address; None if it is no address, or one to which no secret may be sent."""
    try:
        target = urljoin(url, location)
        before, after = urllib3.util.parse_url(url), urllib3.util.parse_url(target)
    except ValueError:
        return None
    is_safe = after.scheme in (before.scheme, "https") and after.host == before.host
    return target if is_safe else None
