"""Read what was done to brokers and clusters, refused or only advised, from rows of ops/actions."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from fleetgauge_core.slo.weeks import WeekSpan
from fleetgauge_core.tables import (
    OUTCOMES_FOR_OPERATORS,
    OUTCOMES_WITHOUT_EFFECT,
    REMARK_KINDS,
    ActionOutcome,
)
from fleetgauge_dashboards.views.alert_remarks import parse_detail

Row = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class RecordedAction:
    """An action on a broker or a cluster, as recorded in ops/actions.

    ``outcome`` is None for rows that `fleetgauge mitigate` did not write; ``words`` explain the outcome.
    """

    at: datetime
    kind: str
    cluster_id: str
    broker_id: int | None
    author: str
    outcome: str | None
    ended: datetime | None
    reason: str
    words: tuple[str, ...]

    @property
    def has_effect(self) -> bool:
        """Return whether the action changed anything."""
        return self.outcome not in OUTCOMES_WITHOUT_EFFECT

    @property
    def is_mitigation(self) -> bool:
        """Return whether the action is a mitigation of an unhealthy broker."""
        return self.outcome is not None

    @property
    def needs_operator(self) -> bool:
        """Return whether an operator was asked to continue."""
        return self.outcome in OUTCOMES_FOR_OPERATORS


def select_actions_of_week(rows: Iterable[Row], week: WeekSpan) -> tuple[RecordedAction, ...]:
    """Return the actions that began in the week, as they stood when it closed, in time order."""
    started = [
        row for row in rows if week.start <= row["starts"] < week.end and row["kind"] not in REMARK_KINDS
    ]
    started.sort(key=lambda row: (row["starts"], row["action_id"]))
    return tuple(parse_action(row, week.closes_at) for row in started)


def parse_action(row: Row, until: datetime | None = None) -> RecordedAction:
    """Return the action as of ``until``, or as of now."""
    detail = parse_detail(row["detail"])
    outcome, words, ended = detail.get("outcome"), detail.get("words"), row["ends"]
    if ended is not None and until is not None and ended >= until:
        ended, outcome = None, ActionOutcome.DONE if outcome == ActionOutcome.UNDONE else outcome
    return RecordedAction(
        row["starts"],
        row["kind"],
        row["cluster_id"],
        row["broker_id"],
        row["author"] or "",
        None if outcome is None else str(outcome),
        ended,
        row["reason"] or "",
        tuple(map(str, words)) if isinstance(words, list) else (),
    )
