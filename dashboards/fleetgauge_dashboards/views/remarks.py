"""What people say of alerts, as rows of ops/actions: that they have taken one on, or whether it was right."""

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from enum import StrEnum
from typing import Any

from fleetgauge_dashboards.times import Times
from fleetgauge_dashboards.views.alerts import Alert

Row = Mapping[str, Any]

#: In the column ``kind`` of ops/actions.
ACKNOWLEDGE, JUDGE = "acknowledge", "judge"
#: Kinds that do nothing to a broker.
REMARKS = frozenset({ACKNOWLEDGE, JUDGE})


class Judgement(StrEnum):
    """Whether an alert was worth telling; what precision is made of."""

    RIGHT = "right"
    FALSE_ALARM = "false_alarm"

    @property
    def words(self) -> str:
        return self.value.replace("_", " ")


@dataclass(frozen=True, slots=True)
class Remark:
    """By whom, and when; ``judgement`` is None of who took it on."""

    author: str
    at: datetime
    judgement: Judgement | None = None

    def words(self, times: Times) -> str:
        said = f"judged {self.judgement.words}" if self.judgement else "acknowledged"
        return f"{said} by {self.author}, {times.instant(self.at)}"


def acknowledged(rows: Iterable[Row]) -> dict[str, Remark]:
    """By the alert's id, the first of each; a row that names none is nobody's."""
    found: dict[str, Remark] = {}
    for row, detail in _remarks(rows, ACKNOWLEDGE):
        found.setdefault(detail["alert_id"], Remark(row["author"] or "", row["starts"].astimezone(UTC)))
    return found


def judged(rows: Iterable[Row]) -> dict[str, Remark]:
    """By the alert's id, the last of each: who has learnt more judges again."""
    known = set(Judgement)
    return {
        detail["alert_id"]: Remark(
            row["author"] or "", row["starts"].astimezone(UTC), Judgement(detail["judgement"])
        )
        for row, detail in _remarks(rows, JUDGE)
        if detail.get("judgement") in known
    }


def acknowledging(alert: Alert, author: str, now: datetime, action_id: str) -> dict[str, Any]:
    """The row that says it."""
    return _row(ACKNOWLEDGE, alert, author, now, action_id, {})


def judging(alert: Alert, judgement: Judgement, author: str, now: datetime, action_id: str) -> dict[str, Any]:
    """The row that says it."""
    return _row(JUDGE, alert, author, now, action_id, {"judgement": judgement})


def _row(
    kind: str, alert: Alert, author: str, now: datetime, action_id: str, more: Mapping[str, str]
) -> dict[str, Any]:
    return {
        "action_id": action_id,
        "kind": kind,
        "cluster_id": alert.cluster_id,
        "broker_id": alert.broker_id,
        "starts": now,
        "ends": now,
        "reason": alert.kind,
        "author": author,
        "detail": json.dumps(
            {"alert_id": alert.alert_id, "fingerprint": alert.changes[0].fingerprint, **more}
        ),
    }


def _remarks(rows: Iterable[Row], kind: str) -> Iterator[tuple[Row, dict[str, Any]]]:
    """In time's order, each with what it says; what cannot be read says nothing."""
    for row in sorted((row for row in rows if row["kind"] == kind), key=lambda row: row["starts"]):
        detail = _detail(row["detail"])
        if isinstance(detail.get("alert_id"), str):
            yield row, detail


def _detail(text: str | None) -> dict[str, Any]:
    try:
        found = json.loads(text or "{}")
    except ValueError:
        return {}
    return found if isinstance(found, dict) else {}
