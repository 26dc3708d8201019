"""Periods that were not measured, and the agent's own faults that say why."""

from datetime import UTC, datetime, timedelta
from typing import Any

from fleetgauge_dashboards.views.bad_periods import find_unmeasured_periods
from fleetgauge_dashboards.views.minute import describe_unmeasured

NOON = datetime(2026, 3, 2, 12, tzinfo=UTC)
MINUTE = timedelta(minutes=1)


def _minute(number: int, measured: int) -> dict[str, Any]:
    return {"minute": NOON + number * MINUTE, "brokers_measured": measured, "brokers_expected": 3}


def _broker(number: int, *codes: str) -> dict[str, Any]:
    return {"minute": NOON + number * MINUTE, "failures": [(code, 100) for code in codes]}


def test_a_period_says_which_faults_of_the_agent_left_it_unmeasured() -> None:
    minutes = [_minute(0, 3), _minute(1, 0), _minute(2, 1), _minute(3, 3), _minute(4, 2)]
    brokers = [
        _broker(1, "TOPIC_AUTHORIZATION_FAILED"),
        _broker(2, "TOPIC_AUTHORIZATION_FAILED", "THROTTLED", "MSG_TIMED_OUT"),
        _broker(4, "MSG_TIMED_OUT"),
    ]
    first, second = find_unmeasured_periods(minutes, brokers)
    assert (first.start, first.minutes, first.fewest_measured) == (NOON + MINUTE, 2, 0)
    assert first.reasons == ("a client quota delays the agent's probes", "the agent lacks a permission")
    assert (second.minutes, second.reasons) == (1, ())


def test_an_unmeasured_broker_minute_says_why_where_that_is_known() -> None:
    assert describe_unmeasured({}) == "not measured"
    assert describe_unmeasured({"MSG_TIMED_OUT"}) == "not measured"
    assert describe_unmeasured({"OWN_RESOURCES", "QUEUE_FULL"}) == (
        "not measured: the agent's host is out of files, memory, ports or disk"
    )
