"""A week of alerts: how many, how many correct, and how soon opened and acknowledged."""

from datetime import datetime, timedelta

from fleetgauge_core.contract import HealthEvent
from fleetgauge_core.slo.weeks import WeekCalendar
from fleetgauge_dashboards.views.alert_remarks import AlertJudgement, AlertRemark
from fleetgauge_dashboards.views.alert_week import alert_key_figures, summarize_alert_week
from fleetgauge_dashboards.views.alerts import fold_alerts
from tests.unit.dashboards.frames import START, minute

WEEK = WeekCalendar("UTC", "monday").week_at(START)


def _finding(name: str, at: datetime) -> list[HealthEvent]:
    steps = ((0, "HEALTHY", "SUSPECT"), (6, "SUSPECT", "BROKER_DOWN"), (90, "BROKER_DOWN", "HEALTHY"))
    return [
        HealthEvent(
            f"{name}-{number}",
            name,
            name,
            2,
            at + timedelta(seconds=second),
            left,
            entered,
            "BROKER_DOWN",
            "{}",
        )
        for number, (second, left, entered) in enumerate(steps)
    ]


ALERTS = fold_alerts([event for n in range(4) for event in _finding(f"a{n}", minute(10 * n))])
ALERTS_OF_LAST_WEEK = fold_alerts(_finding("last-week", START - timedelta(days=7)))


def test_precision_counts_only_judged_alerts() -> None:
    judged = {
        "a0-0": AlertRemark("ada", minute(60), AlertJudgement.RIGHT),
        "a1-0": AlertRemark("ada", minute(60), AlertJudgement.RIGHT),
        "a2-0": AlertRemark("ada", minute(60), AlertJudgement.FALSE_ALARM),
        "last-week-0": AlertRemark("ada", minute(60), AlertJudgement.FALSE_ALARM),
    }
    week = summarize_alert_week([*ALERTS, *ALERTS_OF_LAST_WEEK], judged, {}, WEEK)
    assert (week.named, week.right, week.false_alarms, week.unjudged) == (4, 2, 1, 1)
    assert week.precision == 2 / 3
    assert [figure.value for figure in alert_key_figures(week)] == ["4", "66.6%", "6 s", "–"]


def test_an_unjudged_week_has_no_precision() -> None:
    week = summarize_alert_week(ALERTS, {}, {}, WEEK)
    assert week.precision is None
    assert alert_key_figures(week)[1].value == "–"


def test_time_to_acknowledge_starts_when_the_alert_opens() -> None:
    acknowledged = {
        "a0-0": AlertRemark("ada", ALERTS[-1].opened_at + timedelta(seconds=40)),
        "gone": AlertRemark("ada", START),
    }
    assert summarize_alert_week(ALERTS, {}, acknowledged, WEEK).taken_on_s == (40.0,)
    assert alert_key_figures(summarize_alert_week(ALERTS, {}, acknowledged, WEEK))[3].value == "40 s"


def test_a_week_without_alerts_has_no_times() -> None:
    assert [figure.value for figure in alert_key_figures(summarize_alert_week((), {}, {}, WEEK))] == [
        "0",
        "–",
        "–",
        "–",
    ]
