"""A week of alerts: how many, how right, how soon."""

from datetime import datetime, timedelta

from fleetgauge_core.slo.weeks import WeekCalendar
from fleetgauge_dashboards.reader import HealthEvent
from fleetgauge_dashboards.views.alert_week import alert_week, numbers
from fleetgauge_dashboards.views.alerts import alerts
from fleetgauge_dashboards.views.remarks import Judgement, Remark
from tests.unit.dashboards.frames import START, minute

WEEK = WeekCalendar("UTC", "monday").of(START)


def _finding(name: str, at: datetime) -> list[HealthEvent]:
    steps = ((0, "HEALTHY", "SUSPECT"), (6, "SUSPECT", "BROKER_DOWN"), (90, "BROKER_DOWN", "HEALTHY"))
    return [
        HealthEvent(f"{name}-{n}", name, name, 2, at + timedelta(seconds=s), was, is_, "BROKER_DOWN", "{}")
        for n, (s, was, is_) in enumerate(steps)
    ]


FOUND = alerts([event for n in range(4) for event in _finding(f"a{n}", minute(10 * n))])
OTHER = alerts(_finding("last-week", START - timedelta(days=7)))


def test_precision_is_of_those_that_people_judged() -> None:
    judged = {
        "a0-0": Remark("ada", minute(60), Judgement.RIGHT),
        "a1-0": Remark("ada", minute(60), Judgement.RIGHT),
        "a2-0": Remark("ada", minute(60), Judgement.FALSE_ALARM),
        "last-week-0": Remark("ada", minute(60), Judgement.FALSE_ALARM),
    }
    week = alert_week([*FOUND, *OTHER], judged, {}, WEEK)
    assert (week.named, week.right, week.false_alarms, week.unjudged) == (4, 2, 1, 1)
    assert week.precision == 2 / 3
    assert [one.value for one in numbers(week)] == ["4", "66.6%", "6 s", "–"]


def test_nobodys_silence_is_praise() -> None:
    week = alert_week(FOUND, {}, {}, WEEK)
    assert week.precision is None
    assert numbers(week)[1].value == "–"


def test_taking_on_is_timed_from_the_name() -> None:
    taken = {"a0-0": Remark("ada", FOUND[-1].opened + timedelta(seconds=40)), "gone": Remark("ada", START)}
    assert alert_week(FOUND, {}, taken, WEEK).taken_on_s == (40.0,)
    assert numbers(alert_week(FOUND, {}, taken, WEEK))[3].value == "40 s"


def test_a_week_without_alerts_has_no_times() -> None:
    assert [one.value for one in numbers(alert_week((), {}, {}, WEEK))] == ["0", "–", "–", "–"]
