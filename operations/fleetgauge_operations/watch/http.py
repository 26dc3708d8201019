"""How notifiers reach their receivers."""

import logging

import urllib3

_log = logging.getLogger("fleetgauge.watch")

#: How long a notifier may take to say what waits when the watch ends.
LAST_WORDS_S = 30
_ATTEMPTS = 5
_TIMEOUT_S = 5


def posting() -> urllib3.PoolManager:
    """Tries again, with the same words, where a receiver is out for a moment."""
    retries = urllib3.Retry(
        _ATTEMPTS,
        backoff_factor=0.5,
        status_forcelist=(429, 500, 502, 503, 504),
        allowed_methods=None,
        # A receiver that asks for an hour must not hold up the news behind it.
        respect_retry_after_header=False,
    )
    return urllib3.PoolManager(retries=retries, timeout=urllib3.Timeout(_TIMEOUT_S))


def posted(pool: urllib3.PoolManager, who: str, url: str, body: object, what: str) -> bool:
    """Whether it was taken; else the log says ``what`` was not. A URL may carry a secret, so it says none."""
    try:
        answer = pool.request("POST", url, json=body)
    except urllib3.exceptions.HTTPError as error:
        _log.error("%s: %s not delivered: %s", who, what, type(error).__name__)
        return False
    if answer.status >= 400:
        _log.error("%s: %s refused with status %d", who, what, answer.status)
    return answer.status < 400
