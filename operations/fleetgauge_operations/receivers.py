"""Who is told things by POST: how they are reached, and what their APIs want."""

import logging
from enum import StrEnum

import urllib3

from fleetgauge_probes.fleet import Notifier

_log = logging.getLogger("fleetgauge.notify")

ALERTMANAGER_PATH = "/api/v2/alerts"
PAGERDUTY_PATH = "/v2/enqueue"
PAGERDUTY_SEVERITIES = {"page": "critical", "ticket": "warning", "burn-in": "info"}
#: Longer summaries are refused.
PAGERDUTY_SUMMARY = 1024
_TIMEOUT_S = 5
#: What a receiver answers that may take it later.
_LATER = (408, 429)


class Outcome(StrEnum):
    """What became of a POST."""

    TAKEN = "taken"
    REFUSED = "refused"
    """Nor will the same words be taken later."""
    OUT = "out"
    """Nobody is there, or not now."""


def posting() -> urllib3.PoolManager:
    """Follows redirects and tries nothing twice: when to try again is for whoever posts."""
    once = urllib3.Retry(connect=0, read=0, status=0, other=0, redirect=3)
    return urllib3.PoolManager(retries=once, timeout=urllib3.Timeout(_TIMEOUT_S))


def posted(pool: urllib3.PoolManager, who: str, url: str, body: object, what: str) -> Outcome:
    """What became of it; unless it was taken the log says so. A URL may carry a secret, so it says none."""
    try:
        answer = pool.request("POST", url, json=body)
    except urllib3.exceptions.HTTPError as error:
        reason = getattr(error, "reason", None) or error
        _log.error("%s: %s not delivered: %s", who, what, type(reason).__name__)
        return Outcome.OUT
    if answer.status < 300:
        return Outcome.TAKEN
    _log.error("%s: %s refused with status %d", who, what, answer.status)
    return Outcome.OUT if answer.status in _LATER or answer.status >= 500 else Outcome.REFUSED


def host(notifier: Notifier) -> str:
    """Whom it is sent to, as it is sent; all else in a URL may be a secret. Raises SecretError."""
    try:
        return urllib3.util.parse_url(notifier.address()).host or "unknown"
    except urllib3.exceptions.LocationParseError:
        return "unknown"


def plain(text: str) -> str:
    """What Slack would take for markup, as text."""
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
