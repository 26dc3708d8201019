"""A cluster-week's columns with and without its corrections, side by side."""

from collections.abc import Mapping
from typing import Any

WeekRow = Mapping[str, Any]

#: The columns that corrections change; each has a twin with the suffix `_raw`.
CORRECTED_COLUMNS = (
    "latency_p99_us",
    "latency_p99_censored_us",
    "availability_p99",
    "availability_ratio",
    "bad_minutes",
    "latency_objective_us",
    "latency_budget_minutes",
    "latency_budget_left_minutes",
    "availability_objective",
    "availability_budget_minutes",
    "availability_spent_minutes",
    "minutes_measured",
    "minutes_expected",
)
#: The values of a week of which corrections exclude every minute; objectives stay. There is no level and no
#: budget left to compare within a fleet: NULL differs from a budget that is fully spent.
_EXCLUDED_WEEK: WeekRow = {
    "latency_p99_us": None,
    "latency_p99_censored_us": None,
    "availability_p99": None,
    "availability_ratio": None,
    "bad_minutes": 0,
    "latency_budget_minutes": 0.0,
    "latency_budget_left_minutes": None,
    "availability_budget_minutes": 0.0,
    "availability_spent_minutes": 0.0,
    "minutes_measured": 0,
    "minutes_expected": 0,
}


def add_raw_columns(raw: WeekRow, corrected: WeekRow | None, corrections: str) -> WeekRow:
    """Return the week's row with corrected values and their `_raw` twins.

    ``corrected`` is None if corrections exclude the whole week. Coverage and causes are not corrected.
    """
    twins = {f"{name}_raw": raw[name] for name in CORRECTED_COLUMNS}
    if not corrections:
        return {**raw, **twins, "corrections": ""}
    values = {name: corrected[name] for name in CORRECTED_COLUMNS} if corrected else _EXCLUDED_WEEK
    return {**raw, **values, **twins, "corrections": corrections}
