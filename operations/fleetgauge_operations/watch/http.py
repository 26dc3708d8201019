"""How notifiers reach their receivers."""

import urllib3

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
