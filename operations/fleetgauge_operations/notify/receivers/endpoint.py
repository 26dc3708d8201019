"""Send a POST to a receiver and interpret its response."""

import logging
import re
from enum import StrEnum
from urllib.parse import urljoin

import urllib3

_log = logging.getLogger("fleetgauge.notify")

_TIMEOUT_S = 5
#: Status codes for a body that will never be accepted: malformed, too large, unprocessable. Every other
#: error may be temporary: a wrong key or URL, a proxy, a rate limit.
_REJECTED = (400, 413, 422)
#: Redirects that repeat the POST with the same body.
_MOVED = (307, 308)
_ABOUT_THE_KEY = re.compile(rb"routing[ _]key", re.IGNORECASE)


class PostResult(StrEnum):
    """The result of a POST."""

    ACCEPTED = "accepted"
    REJECTED = "rejected"
    """The receiver will never accept this body."""
    UNAVAILABLE = "unavailable"
    """The receiver is unreachable, or responds with an error that may be temporary."""


def open_pool() -> urllib3.PoolManager:
    """Return a connection pool without retries, because the outbox retries."""
    return urllib3.PoolManager(retries=False, timeout=urllib3.Timeout(_TIMEOUT_S))


def post(pool: urllib3.PoolManager, kind: str, url: str, body: object, what: str) -> PostResult:
    """POST a body once; log a failure without the URL, which may contain a secret."""
    try:
        response = _request(pool, url, body)
    except urllib3.exceptions.HTTPError as error:
        reason = getattr(error, "reason", None) or error
        _log.error("%s: %s not delivered: %s", kind, what, type(reason).__name__)
        return PostResult.UNAVAILABLE
    if response.status < 300:
        return PostResult.ACCEPTED
    _log.error("%s: %s refused with status %d", kind, what, response.status)
    # PagerDuty also returns 400 for an unknown routing key, which can be corrected.
    rejected = response.status in _REJECTED and not _ABOUT_THE_KEY.search(response.data)
    return PostResult.REJECTED if rejected else PostResult.UNAVAILABLE


def _request(pool: urllib3.PoolManager, url: str, body: object) -> urllib3.BaseHTTPResponse:
    """POST a body, following a redirect within the same host only.

    Another redirect may lead to a login page, where 200 does not mean that the body was accepted.
    """
    response = pool.request("POST", url, json=body)
    location = response.get_redirect_location() or ""
    target = redirect_target(url, location) if response.status in _MOVED else None
    return pool.request("POST", target, json=body) if target else response


def redirect_target(url: str, location: str) -> str | None:
    """Return the redirect's URL; None if it is invalid, or not safe to send secrets to."""
    try:
        target = urljoin(url, location)
        before, after = urllib3.util.parse_url(url), urllib3.util.parse_url(target)
    except ValueError:
        return None
    is_safe = after.scheme in (before.scheme, "https") and after.host == before.host
    return target if is_safe else None
