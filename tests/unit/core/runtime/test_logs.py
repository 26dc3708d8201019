"""A command's log, in a process of its own and line by line."""

import json
import logging
import subprocess
import sys

import pytest

from fleetgauge_core.runtime.logs import MOST_OF_A_KIND, WITHIN_S, NoFlood

SAYS = """
import logging
from fleetgauge_core.runtime.logs import start_logging
start_logging({format!r})
log = logging.getLogger("fleetgauge.probe")
log.warning("%s: broker %d: %s", "orders", 2, "refused")
try:
    raise ValueError("no such luck")
except ValueError:
    log.exception("orders: schedule broke")
for number in range({lines}):
    log.info("again %d", number)
"""


def said(log_format: str, lines: int = 0) -> list[str]:
    program = SAYS.format(format=log_format, lines=lines)
    return subprocess.run(
        [sys.executable, "-c", program], check=True, capture_output=True, text=True
    ).stderr.splitlines()


def record(line: int, number: int = 0) -> logging.LogRecord:
    return logging.LogRecord("fleetgauge.probe", logging.INFO, "probe.py", line, "again %d", (number,), None)


def test_a_line_of_json_is_one_value_with_the_exception_in_it() -> None:
    first, second = map(json.loads, said("json"))
    assert first.pop("timestamp").endswith("+00:00")
    assert first == {
        "severity_text": "WARNING",
        "scope": "fleetgauge.probe",
        "body": "orders: broker 2: refused",
    }
    assert "ValueError: no such luck" in second["exception.stacktrace"]


def test_text_names_the_part_and_what_it_says() -> None:
    assert said("text")[0].endswith(" fleetgauge.probe orders: broker 2: refused")


@pytest.mark.parametrize("log_format", ["text", "json"])
def test_a_flood_is_held_back(log_format: str) -> None:
    again = [line for line in said(log_format, MOST_OF_A_KIND + 40) if "again" in line]
    assert len(again) == MOST_OF_A_KIND


def test_who_comes_after_a_flood_says_how_much_was_held_back() -> None:
    now_s = 0.0
    flood = NoFlood(lambda: now_s)
    passed = [flood.filter(record(7, number)) for number in range(MOST_OF_A_KIND + 5)]
    assert passed == [True] * MOST_OF_A_KIND + [False] * 5
    assert flood.filter(record(8))
    now_s = WITHIN_S
    later = record(7)
    assert flood.filter(later)
    assert later.__dict__["aside"] == " (5 more like this were held back)"
    another = record(7)
    assert flood.filter(another)
    assert another.__dict__["aside"] == ""
