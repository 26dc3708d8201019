"""Read and build what people record about alerts in ops/actions: acknowledgements and judgements."""

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from enum import StrEnum
from typing import Any

from fleetgauge_core.tables import ActionKind
from fleetgauge_dashboards.times import TimeFormat
from fleetgauge_dashboards.views.alerts import HealthAlert

Row = Mapping[str, Any]


class AlertJudgement(StrEnum):
    """Whether an alert was correct; alert precision is computed from judgements."""

    RIGHT = "right"
    FALSE_ALARM = "false_alarm"

    @property
    def label(self) -> str:
        """Return the judgement as words."""
        return self.value.replace("_", " ")


@dataclass(frozen=True, slots=True)
class AlertRemark:
    """A remark by a person; ``judgement`` is None for an acknowledgement."""

    author: str
    at: datetime
    judgement: AlertJudgement | None = None

    def describe(self, times: TimeFormat) -> str:
        """Return the remark as a sentence fragment with its author and time."""
        remark = f"judged {self.judgement.label}" if self.judgement else "acknowledged"
        return f"{remark} by {self.author}, {times.format_instant(self.at)}"


def select_acknowledgements(rows: Iterable[Row]) -> dict[str, AlertRemark]:
    """Return the first acknowledgement of each alert, by alert id; rows without an alert id are ignored."""
    acknowledgements: dict[str, AlertRemark] = {}
    for row, detail in _remarks(rows, ActionKind.ACKNOWLEDGE):
        acknowledgements.setdefault(
            detail["alert_id"], AlertRemark(row["author"] or "", row["starts"].astimezone(UTC))
        )
    return acknowledgements


def select_judgements(rows: Iterable[Row]) -> dict[str, AlertRemark]:
    """Return the last judgement of each alert, by alert id, because people may correct themselves."""
    judgements = set(AlertJudgement)
    return {
        detail["alert_id"]: AlertRemark(
            row["author"] or "", row["starts"].astimezone(UTC), AlertJudgement(detail["judgement"])
        )
        for row, detail in _remarks(rows, ActionKind.JUDGE)
        if detail.get("judgement") in judgements
    }


def build_acknowledgement_row(
    alert: HealthAlert, author: str, now: datetime, action_id: str
) -> dict[str, Any]:
    """Build the row of ops/actions that acknowledges the alert."""
    return _row(ActionKind.ACKNOWLEDGE, alert, author, now, action_id, {})


def build_judgement_row(
    alert: HealthAlert, judgement: AlertJudgement, author: str, now: datetime, action_id: str
) -> dict[str, Any]:
    """Build the row of ops/actions that judges the alert."""
    return _row(ActionKind.JUDGE, alert, author, now, action_id, {"judgement": judgement})


def _row(
    kind: ActionKind, alert: HealthAlert, author: str, now: datetime, action_id: str, extra: Mapping[str, str]
) -> dict[str, Any]:
    return {
        "action_id": action_id,
        "kind": kind.value,
        "cluster_id": alert.cluster_id,
        "broker_id": alert.broker_id,
        "starts": now,
        "ends": now,
        "reason": alert.kind,
        "author": author,
        "detail": json.dumps(
            {"alert_id": alert.alert_id, "fingerprint": alert.events[0].fingerprint, **extra}
        ),
    }


def _remarks(rows: Iterable[Row], kind: ActionKind) -> Iterator[tuple[Row, dict[str, Any]]]:
    """Yield the rows of the kind in time order with their details; unreadable details are skipped."""
    for row in sorted((row for row in rows if row["kind"] == kind), key=lambda row: row["starts"]):
        detail = parse_detail(row["detail"])
        if isinstance(detail.get("alert_id"), str):
            yield row, detail


def parse_detail(text: str | None) -> dict[str, Any]:
    """Return the JSON object in a row's ``detail``; empty for any other text."""
    try:
        detail = json.loads(text or "{}")
    except ValueError:
        return {}
    return detail if isinstance(detail, dict) else {}
