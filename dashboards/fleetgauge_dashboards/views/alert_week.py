"""Summarize a week of alerts: how many, how many correct, and how soon opened and acknowledged."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from statistics import median

from fleetgauge_core.slo.weeks import WeekSpan
from fleetgauge_dashboards.units import NO_VALUE, format_count, format_duration, format_percent
from fleetgauge_dashboards.views.alert_remarks import AlertJudgement, AlertRemark
from fleetgauge_dashboards.views.alerts import HealthAlert
from fleetgauge_dashboards.views.cluster import KeyFigure


@dataclass(frozen=True, slots=True)
class AlertWeek:
    """The alerts that opened in the week, with the judgements of people and the delays in seconds."""

    named: int
    right: int
    false_alarms: int
    detected_s: tuple[float, ...]
    taken_on_s: tuple[float, ...]

    @property
    def precision(self) -> float | None:
        """Return the share of judged alerts that were correct; None while none is judged."""
        judged = self.right + self.false_alarms
        return self.right / judged if judged else None

    @property
    def unjudged(self) -> int:
        """Return the count of alerts that have not been judged."""
        return self.named - self.right - self.false_alarms


def summarize_alert_week(
    alerts: Sequence[HealthAlert],
    judged: Mapping[str, AlertRemark],
    acknowledged: Mapping[str, AlertRemark],
    week: WeekSpan,
) -> AlertWeek:
    """Summarize the alerts that opened in the week.

    Judgements and acknowledgements are by alert id.
    """
    opened = [alert for alert in alerts if alert.opening_event and week.start <= alert.opened_at < week.end]
    judgements = [judged[alert.alert_id].judgement for alert in opened if alert.alert_id in judged]
    acknowledged_after = [
        (acknowledged[alert.alert_id].at - alert.opened_at)
        for alert in opened
        if alert.alert_id in acknowledged
    ]
    return AlertWeek(
        named=len(opened),
        right=judgements.count(AlertJudgement.RIGHT),
        false_alarms=judgements.count(AlertJudgement.FALSE_ALARM),
        detected_s=tuple((alert.opened_at - alert.first_sign_at).total_seconds() for alert in opened),
        taken_on_s=tuple(delay.total_seconds() for delay in acknowledged_after),
    )


def alert_key_figures(week: AlertWeek) -> tuple[KeyFigure, ...]:
    """Return the key figures at the top of the alerts page."""
    return (
        KeyFigure(
            "Opened this week",
            f"{week.named:,}",
            None,
            (f"{format_count(week.unjudged, 'alert')} not judged",),
            "alerts_named",
        ),
        KeyFigure(
            "Precision",
            format_percent(week.precision, 1),
            None,
            (f"{week.right:,} correct, {format_count(week.false_alarms, 'false alarm')}, judged by people",),
            "precision",
        ),
        _times("Opened after the first sign", week.detected_s, "time_to_detect"),
        _times("Acknowledged after", week.taken_on_s, "time_to_acknowledge"),
    )


def _times(title: str, seconds: Sequence[float], definition: str) -> KeyFigure:
    if not seconds:
        return KeyFigure(title, NO_VALUE, None, ("none this week",), definition)
    note = f"median of {len(seconds):,}, {_length(max(seconds))} at most"
    return KeyFigure(title, _length(median(seconds)), None, (note,), definition)


def _length(seconds: float) -> str:
    return format_duration(timedelta(seconds=seconds)) if seconds else "immediately"
