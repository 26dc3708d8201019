"""What was done on purpose to brokers and clusters, or refused, or only advised: rows of ops/actions."""

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from fleetgauge_core.slo.weeks import WeekSpan
from fleetgauge_dashboards.views.remarks import REMARKS

Row = Mapping[str, Any]

#: Of `mitigation.case.Outcome`, which brings a Kafka client along: these changed nothing.
_NO_ACT = frozenset({"refused", "advised"})
#: After these a person has to go on.
_HANDED_OVER = frozenset({"refused", "advised", "failed"})
_UNDONE, _DONE = "undone", "done"


@dataclass(frozen=True, slots=True)
class Act:
    """``outcome`` is None of what others than `mitigate` wrote down; ``words`` say why."""

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
    def was_done(self) -> bool:
        """Whether anything was changed."""
        return self.outcome not in _NO_ACT

    @property
    def is_case(self) -> bool:
        """Whether it is about a sick broker."""
        return self.outcome is not None

    @property
    def was_handed_over(self) -> bool:
        """Whether a person was told to go on."""
        return self.outcome in _HANDED_OVER


def acts(rows: Iterable[Row], week: WeekSpan) -> tuple[Act, ...]:
    """Those that began in the week, as they stood when it closed."""
    begun = [row for row in rows if week.start <= row["starts"] < week.end and row["kind"] not in REMARKS]
    begun.sort(key=lambda row: (row["starts"], row["action_id"]))
    return tuple(act(row, week.closes_at) for row in begun)


def act(row: Row, until: datetime | None = None) -> Act:
    """As it stood then, or stands now."""
    detail = _detail(row["detail"])
    outcome, words, ended = detail.get("outcome"), detail.get("words"), row["ends"]
    if ended is not None and until is not None and ended >= until:
        ended, outcome = None, _DONE if outcome == _UNDONE else outcome
    return Act(
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


def _detail(text: str | None) -> dict[str, object]:
    """Of what `mitigate` did a JSON object; others may have written anything."""
    try:
        found = json.loads(text or "{}")
    except ValueError:
        return {}
    return found if isinstance(found, dict) else {}
