"""Who is told things by POST: how they are reached, and what their APIs want."""

import hashlib
import logging
import re
from collections.abc import Iterable, Mapping
from datetime import datetime
from enum import StrEnum
from typing import Any
from urllib.parse import urljoin

import urllib3

from fleetgauge_core.fleet import Notifier

_log = logging.getLogger("fleetgauge.notify")

_PATHS = {"alertmanager": "/api/v2/alerts", "pagerduty": "/v2/enqueue"}
_SLACK_SIGNS = {"page": ":red_circle:", "ticket": ":large_yellow_circle:", "burn-in": ":white_circle:"}
_SLACK_OVER = ":large_green_circle:"
_PAGERDUTY_SEVERITIES = {"page": "critical", "ticket": "warning", "burn-in": "info"}
#: Longer summaries are refused.
_PAGERDUTY_SUMMARY = 1024
_TIMEOUT_S = 5
#: What a receiver answers to words that it never takes: malformed, too large, not understood. All else may
#: pass: a key or an address that is mended, a proxy, a limit.
_NEVER = (400, 413, 422)
#: The same is to be asked there.
_MOVED = (307, 308)
_OF_THE_KEY = re.compile(rb"routing[ _]key", re.IGNORECASE)


class Outcome(StrEnum):
    """What became of a POST."""

    TAKEN = "taken"
    REFUSED = "refused"
    """Nor will the same words be taken later."""
    OUT = "out"
    """Nobody is there, or not now."""


def posting() -> urllib3.PoolManager:
    """Tries nothing twice: when to try again is for whoever posts."""
    return urllib3.PoolManager(retries=False, timeout=urllib3.Timeout(_TIMEOUT_S))


def posted(pool: urllib3.PoolManager, who: str, where: str, body: object, what: str) -> Outcome:
    """What became of it; unless it was taken the log says so. A URL may carry a secret, so it says none."""
    try:
        answer = _answer(pool, where, body)
    except urllib3.exceptions.HTTPError as error:
        reason = getattr(error, "reason", None) or error
        _log.error("%s: %s not delivered: %s", who, what, type(reason).__name__)
        return Outcome.OUT
    if answer.status < 300:
        return Outcome.TAKEN
    _log.error("%s: %s refused with status %d", who, what, answer.status)
    # PagerDuty answers 400 to a key that it does not know, too: that is mended, and the words are good.
    never = answer.status in _NEVER and not _OF_THE_KEY.search(answer.data)
    return Outcome.REFUSED if never else Outcome.OUT


def _answer(pool: urllib3.PoolManager, where: str, body: object) -> urllib3.BaseHTTPResponse:
    """Of where it has moved to, at the same host; any other redirect leads to a page to log in at, or away:
    what answers there that all is well has taken nothing."""
    answer = pool.request("POST", where, json=body)
    there = _moved_to(where, answer.get_redirect_location() or "") if answer.status in _MOVED else None
    return pool.request("POST", there, json=body) if there else answer


def _moved_to(where: str, place: str) -> str | None:
    """None where no secret may be sent, or that is no place."""
    try:
        there = urljoin(where, place)
        here, moved = urllib3.util.parse_url(where), urllib3.util.parse_url(there)
    except ValueError:
        return None
    is_safe = moved.scheme in (here.scheme, "https") and moved.host == here.host
    return there if is_safe else None


def url(notifier: Notifier) -> str:
    """Where it takes POSTs, as it is now. Raises SecretError."""
    path = _PATHS.get(notifier.kind)
    return notifier.address().rstrip("/") + path if path else notifier.address()


def routing_key(notifier: Notifier) -> str:
    """As it is now, of one that has any. Raises SecretError."""
    return notifier.routing_key.read() if notifier.routing_key else ""


def host(notifier: Notifier) -> str:
    """Whom it is sent to, as it is sent; all else in a URL may be a secret. Raises SecretError."""
    try:
        return urllib3.util.parse_url(notifier.address()).host or "unknown"
    except urllib3.exceptions.LocationParseError:
        return "unknown"


def name(notifier: Notifier) -> str:
    """By which whoever comes later knows it, without its secrets."""
    address = notifier.model_dump_json(include={"kind", "url", "url_from", "routing_key"})
    return hashlib.sha256(address.encode()).hexdigest()[:16]


def plain(text: str) -> str:
    """What Slack would take for markup, as text."""
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")


def slack_message(summary: str, severity: str | None, lines: Iterable[str]) -> dict[str, Any]:
    """The summary as plain text, behind a sign; then the lines as they are. ``severity``: None of an end."""
    sign = _SLACK_SIGNS[severity] if severity else _SLACK_OVER
    return {"text": "\n".join([f"{sign} *{plain(summary)}*", *lines])}


def pagerduty_trigger(
    routing_key: str,
    incident: str,
    *,
    summary: str,
    severity: str,
    cluster_id: str,
    broker_id: int | None,
    kind: str,
    at: datetime,
    details: Mapping[str, Any],
    page: str | None = None,
) -> dict[str, Any]:
    """An event of the Events API v2 that opens an incident. ``routing_key``: of the service's integration."""
    return {
        "routing_key": routing_key,
        "dedup_key": incident,
        "event_action": "trigger",
        "client": "Fleetgauge",
        "links": [{"href": page, "text": "Since when, and what speaks for it"}] if page else [],
        "payload": {
            "summary": summary[:_PAGERDUTY_SUMMARY],
            "severity": _PAGERDUTY_SEVERITIES[severity],
            "source": cluster_id,
            "component": f"broker {broker_id}" if broker_id is not None else None,
            "group": cluster_id,
            "class": kind,
            "timestamp": at.isoformat(),
            "custom_details": dict(details),
        },
    }


def pagerduty_resolve(routing_key: str, incident: str) -> dict[str, Any]:
    """One that closes it."""
    return {"routing_key": routing_key, "dedup_key": incident, "event_action": "resolve"}
