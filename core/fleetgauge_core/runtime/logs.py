"""The log of a long-running command: rate-limited lines on stderr, as text or as JSON."""

import json
import logging
import threading
import time
from collections.abc import Callable
from datetime import UTC, datetime

#: Limit per log statement in the code, over all clusters and brokers, within INTERVAL_S seconds.
MAX_LINES_PER_STATEMENT = 60
INTERVAL_S = 60.0
#: LogRateLimiter sets ``suppressed_note`` on each record.
_TEXT = "%(asctime)s %(name)s %(message)s%(suppressed_note)s"


def configure_logging(log_format: str) -> None:
    """Write log records of this process from level INFO up to stderr, rate-limited.

    ``log_format`` is ``text`` or ``json``.
    """
    handler = logging.StreamHandler()
    handler.setFormatter(JsonFormatter() if log_format == "json" else logging.Formatter(_TEXT))
    handler.addFilter(LogRateLimiter())
    logging.basicConfig(level=logging.INFO, handlers=[handler])


class LogRateLimiter(logging.Filter):
    """A logging filter that limits each log statement to MAX_LINES_PER_STATEMENT lines in INTERVAL_S seconds.

    The first line after an interval in which lines were dropped tells how many.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        super().__init__()
        self._clock = clock
        self._lock = threading.Lock()
        # By file and line number of the statement: start of its interval, and its lines since then.
        self._intervals: dict[tuple[str, int], tuple[float, int]] = {}

    def filter(self, record: logging.LogRecord) -> bool:
        """Return whether the record is logged, and set its attribute ``suppressed_note``."""
        statement = (record.pathname, record.lineno)
        now_s = self._clock()
        with self._lock:
            started_s, lines = self._intervals.get(statement, (now_s, 0))
            suppressed = 0
            if now_s - started_s >= INTERVAL_S:
                started_s, lines, suppressed = now_s, 0, max(0, lines - MAX_LINES_PER_STATEMENT)
            self._intervals[statement] = started_s, lines + 1
        record.suppressed_note = f" ({suppressed} more like this were suppressed)" if suppressed else ""
        return lines < MAX_LINES_PER_STATEMENT


class JsonFormatter(logging.Formatter):
    """Formats a log record as one line of JSON.

    The keys follow OpenTelemetry's log data model and its semantic conventions for exceptions.
    """

    def format(self, record: logging.LogRecord) -> str:
        """Return the record as a JSON object without null values."""
        line = {
            "timestamp": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds"),
            "severity_text": record.levelname,
            "scope": record.name,
            "body": record.getMessage() + record.__dict__["suppressed_note"],
            "exception.stacktrace": self.formatException(record.exc_info) if record.exc_info else None,
        }
        return json.dumps({key: value for key, value in line.items() if value is not None})
