"""The log of a long-running command: lines on stderr, as text or as JSON, and never a flood of them."""

import json
import logging
import threading
import time
from collections.abc import Callable
from datetime import UTC, datetime

import click

#: Of a kind: what is written at one place of the code, whatever its cluster or broker.
MOST_OF_A_KIND = 60
WITHIN_S = 60.0
#: The filter gives each record its aside.
_TEXT = "%(asctime)s %(name)s %(message)s%(aside)s"

#: How a long-running command is told how to write its log.
log_option = click.option(
    "--log-format",
    type=click.Choice(["text", "json"]),
    default="text",
    show_default=True,
    help="How each line of the log is written.",
)


def start_logging(log_format: str) -> None:
    """Write what this process logs, from INFO on, to stderr."""
    handler = logging.StreamHandler()
    handler.setFormatter(_Json() if log_format == "json" else logging.Formatter(_TEXT))
    handler.addFilter(NoFlood())
    logging.basicConfig(level=logging.INFO, handlers=[handler])


class NoFlood(logging.Filter):
    """Lets so many lines of a kind pass in a minute; the next one that passes says aside how many did not."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        super().__init__()
        self._clock = clock
        self._lock = threading.Lock()
        # By place: when its minute began, and how many lines it has had.
        self._minutes: dict[tuple[str, int], tuple[float, int]] = {}

    def filter(self, record: logging.LogRecord) -> bool:
        place = (record.pathname, record.lineno)
        now_s = self._clock()
        with self._lock:
            began_s, lines = self._minutes.get(place, (now_s, 0))
            held_back = 0
            if now_s - began_s >= WITHIN_S:
                began_s, lines, held_back = now_s, 0, max(0, lines - MOST_OF_A_KIND)
            self._minutes[place] = began_s, lines + 1
        record.aside = f" ({held_back} more like this were held back)" if held_back else ""
        return lines < MOST_OF_A_KIND


class _Json(logging.Formatter):
    """Keys as in OpenTelemetry's log data model and its conventions for exceptions."""

    def format(self, record: logging.LogRecord) -> str:
        line = {
            "timestamp": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds"),
            "severity_text": record.levelname,
            "scope": record.name,
            "body": record.getMessage() + record.__dict__["aside"],
            "exception.stacktrace": self.formatException(record.exc_info) if record.exc_info else None,
        }
        return json.dumps({key: value for key, value in line.items() if value is not None})
