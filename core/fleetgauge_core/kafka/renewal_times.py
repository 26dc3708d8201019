"""When the client of a recreated topic is replaced: at once, and a second time.

A new client may connect to a broker that lags behind and still knows the old topic, and would be stuck with
its leader epochs as well. A broker that lags for longer than its session, 9 s by default, is fenced.
"""

_AGAIN_AFTER_S = 15.0


class RenewalTimes:
    """The times of the next two renewals, in seconds of a monotonic clock. One thread renews."""

    def __init__(self) -> None:
        self._due_s: float | None = None
        self._is_second = False

    def begin(self, now_s: float) -> None:
        """Let both renewals be due, the first one now."""
        self._is_second, self._due_s = False, now_s

    def is_due(self, now_s: float) -> bool:
        """Return whether to renew now."""
        return self._due_s is not None and now_s >= self._due_s

    def postpone(self, until_s: float) -> None:
        """Try a renewal that failed again at a later time."""
        self._due_s = until_s

    def mark_done(self, now_s: float) -> None:
        """Record a renewal."""
        self._due_s = None if self._is_second else now_s + _AGAIN_AFTER_S
        self._is_second = not self._is_second
