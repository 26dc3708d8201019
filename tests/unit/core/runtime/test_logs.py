"""Tests of the log format and of the rate limit."""

import json
import logging
import subprocess
import sys

import pytest

from fleetgauge_core.runtime.logs import INTERVAL_S, MAX_LINES_PER_STATEMENT, LogRateLimiter

PROGRAM = """
import logging
from fleetgauge_core.runtime.logs import configure_logging
configure_logging({format!r})
log = logging.getLogger("fleetgauge.probe")
log.warning("%s: broker %d: %s", "orders", 2, "refused")
try:
    raise ValueError("no such luck")
except ValueError:
    log.exception("orders: schedule broke")
for number in range({lines}):
    log.info("again %d", number)
"""


def log_lines(log_format: str, lines: int = 0) -> list[str]:
    program = PROGRAM.format(format=log_format, lines=lines)
    return subprocess.run(
        [sys.executable, "-c", program], check=True, capture_output=True, text=True
    ).stderr.splitlines()


def record(line: int, number: int = 0) -> logging.LogRecord:
    return logging.LogRecord("fleetgauge.probe", logging.INFO, "probe.py", line, "again %d", (number,), None)


def test_a_json_line_is_one_object_that_includes_the_exception() -> None:
    first, second = map(json.loads, log_lines("json"))
    assert first.pop("timestamp").endswith("+00:00")
    assert first == {
        "severity_text": "WARNING",
        "scope": "fleetgauge.probe",
        "body": "orders: broker 2: refused",
    }
    assert "ValueError: no such luck" in second["exception.stacktrace"]


def test_a_text_line_names_the_logger_and_the_message() -> None:
    assert log_lines("text")[0].endswith(" fleetgauge.probe orders: broker 2: refused")


@pytest.mark.parametrize("log_format", ["text", "json"])
def test_the_lines_of_a_log_statement_are_rate_limited(log_format: str) -> None:
    again = [line for line in log_lines(log_format, MAX_LINES_PER_STATEMENT + 40) if "again" in line]
    assert len(again) == MAX_LINES_PER_STATEMENT


def test_the_first_line_after_a_limited_interval_tells_how_many_were_suppressed() -> None:
    now_s = 0.0
    limiter = LogRateLimiter(lambda: now_s)
    passed = [limiter.filter(record(7, number)) for number in range(MAX_LINES_PER_STATEMENT + 5)]
    assert passed == [True] * MAX_LINES_PER_STATEMENT + [False] * 5
    assert limiter.filter(record(8))
    now_s = INTERVAL_S
    later = record(7)
    assert limiter.filter(later)
    assert later.__dict__["suppressed_note"] == " (5 more like this were suppressed)"
    another = record(7)
    assert limiter.filter(another)
    assert another.__dict__["suppressed_note"] == ""
