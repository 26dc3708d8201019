"""A cluster-week with and without its corrections, side by side."""

from collections.abc import Mapping
from typing import Any

Row = Mapping[str, Any]

#: What corrections change; each has a twin with the suffix `_raw`.
CORRECTED = (
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
#: Of a week that corrections took out altogether; objectives stay. Without a minute there is
#: no level, and no budget that a fleet could compare: none left is not the same as all spent.
_NOTHING_LEFT: Row = {
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


def beside_raw(raw: Row, corrected: Row | None, corrections: str) -> Row:
    """The row with its raw twins. ``corrected`` is None where nothing is left of a corrected week.

    Coverage and causes stay those of all minutes.
    """
    twins = {f"{name}_raw": raw[name] for name in CORRECTED}
    if not corrections:
        return {**raw, **twins, "corrections": ""}
    counted = {name: corrected[name] for name in CORRECTED} if corrected else _NOTHING_LEFT
    return {**raw, **counted, **twins, "corrections": corrections}
