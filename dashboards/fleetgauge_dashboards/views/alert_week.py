"""How a week of alerts went: how many, how right, how soon named and taken on."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from statistics import median

from fleetgauge_core.slo.weeks import WeekSpan
from fleetgauge_dashboards.units import NOTHING, count, duration, percent
from fleetgauge_dashboards.views.alerts import Alert
from fleetgauge_dashboards.views.cluster import Number
from fleetgauge_dashboards.views.remarks import Judgement, Remark


@dataclass(frozen=True, slots=True)
class AlertWeek:
    """Alerts that were named in the week; of them those that people judged."""

    named: int
    right: int
    false_alarms: int
    detected_s: tuple[float, ...]
    taken_on_s: tuple[float, ...]

    @property
    def precision(self) -> float | None:
        """Of the judged ones; nobody's silence counts as praise."""
        judged = self.right + self.false_alarms
        return self.right / judged if judged else None

    @property
    def unjudged(self) -> int:
        return self.named - self.right - self.false_alarms


def alert_week(
    found: Sequence[Alert],
    judged: Mapping[str, Remark],
    acknowledged: Mapping[str, Remark],
    week: WeekSpan,
) -> AlertWeek:
    named = [one for one in found if one.named and week.start <= one.opened < week.end]
    judgements = [judged[one.alert_id].judgement for one in named if one.alert_id in judged]
    taken = [(acknowledged[one.alert_id].at - one.opened) for one in named if one.alert_id in acknowledged]
    return AlertWeek(
        named=len(named),
        right=judgements.count(Judgement.RIGHT),
        false_alarms=judgements.count(Judgement.FALSE_ALARM),
        detected_s=tuple((one.opened - one.began).total_seconds() for one in named),
        taken_on_s=tuple(one.total_seconds() for one in taken),
    )


def numbers(week: AlertWeek) -> tuple[Number, ...]:
    """What stands above the alerts."""
    return (
        Number(
            "Named this week",
            f"{week.named:,}",
            None,
            (f"{count(week.unjudged, 'alert')} not judged",),
            "alerts_named",
        ),
        Number(
            "Precision",
            percent(week.precision, 1),
            None,
            (f"{week.right:,} right, {count(week.false_alarms, 'false alarm')}, by people's judgement",),
            "precision",
        ),
        _times("Named after the first sign", week.detected_s, "time_to_detect"),
        _times("Acknowledged after", week.taken_on_s, "time_to_acknowledge"),
    )


def _times(title: str, seconds: Sequence[float], definition: str) -> Number:
    if not seconds:
        return Number(title, NOTHING, None, ("none this week",), definition)
    note = f"median of {len(seconds):,}, {_length(max(seconds))} at most"
    return Number(title, _length(median(seconds)), None, (note,), definition)


def _length(seconds: float) -> str:
    return duration(timedelta(seconds=seconds)) if seconds else "at once"
