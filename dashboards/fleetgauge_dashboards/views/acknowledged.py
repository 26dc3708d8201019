"""Who has taken an alert on: rows of ops/actions, the first of each alert."""

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from fleetgauge_dashboards.units import instant
from fleetgauge_dashboards.views.alerts import Alert

#: In the column ``kind`` of ops/actions.
ACKNOWLEDGE = "acknowledge"


@dataclass(frozen=True, slots=True)
class Acknowledged:
    """By whom, and when."""

    author: str
    at: datetime

    @property
    def words(self) -> str:
        return f"acknowledged by {self.author}, {instant(self.at)}"


def acknowledged(rows: Iterable[Mapping[str, Any]]) -> dict[str, Acknowledged]:
    """By the alert's id; a row that names none is nobody's."""
    found: dict[str, Acknowledged] = {}
    for row in sorted(rows, key=lambda row: row["starts"]):
        alert_id = _alert_id(row["detail"])
        if row["kind"] == ACKNOWLEDGE and alert_id is not None:
            found.setdefault(alert_id, Acknowledged(row["author"] or "", row["starts"].astimezone(UTC)))
    return found


def acknowledging(alert: Alert, author: str, now: datetime, action_id: str) -> dict[str, Any]:
    """The row that says it."""
    return {
        "action_id": action_id,
        "kind": ACKNOWLEDGE,
        "cluster_id": alert.cluster_id,
        "broker_id": alert.broker_id,
        "starts": now,
        "ends": now,
        "reason": alert.kind,
        "author": author,
        "detail": json.dumps({"alert_id": alert.alert_id, "fingerprint": alert.changes[0].fingerprint}),
    }


def _alert_id(detail: str | None) -> str | None:
    try:
        found = json.loads(detail or "{}")
    except ValueError:
        return None
    alert_id = found.get("alert_id") if isinstance(found, dict) else None
    return alert_id if isinstance(alert_id, str) else None
