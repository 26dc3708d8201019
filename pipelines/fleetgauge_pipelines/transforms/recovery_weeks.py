"""Recovery weeks: the levels of mirrors, consumer groups and the fleet, from their minutes."""

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from math import inf, isfinite
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from fleetgauge_core.fleet import RecoveryObjectives
from fleetgauge_core.slo.levels import MIN_FLEET_COVERAGE
from fleetgauge_core.slo.quantile import quantile, quantile_from_bad_side

MIRROR = "mirror"
GROUP = "group"
FLEET = "fleet"

#: The columns of recovery/mirror_minutes and recovery/group_minutes that levels are computed from.
MIRROR_COLUMNS = ("source", "destination", "minute", "behind_s_at_most", "behind_s", "behind_at_most")
GROUP_COLUMNS = ("active", "passive", "group_id", "minute", "ready")

#: Metrics of a mirror; higher values are worse.
_LATENESS = ("rpo_s", "rpo_s_estimate", "rpo_records")
_READINESS = "readiness"
_MINUTE = timedelta(minutes=1)

Row = dict[str, Any]


@dataclass(frozen=True, slots=True)
class SubjectWeek:
    """A week of a mirror or a consumer group; its minutes in [starts, ends) are expected."""

    scope: str
    subject: str
    week: date
    starts: datetime
    ends: datetime
    closed: bool


def compute_subject_minutes(mirrors: pa.Table, groups: pa.Table) -> pa.Table:
    """Return a row for each subject and minute: scope, subject, minute, and a double for each of its metrics.

    ``rpo_s`` and ``rpo_s_estimate`` are in seconds, ``rpo_records`` in records, ``readiness`` is 1 or 0. An
    unknown upper bound counts as infinitely late; a missing estimate is NULL, and so are other metrics.
    """
    mirror_minutes = pa.table(
        {
            "scope": pa.repeat(MIRROR, mirrors.num_rows),
            "subject": pc.binary_join_element_wise(mirrors["source"], mirrors["destination"], " to "),
            "minute": mirrors["minute"],
            "rpo_s": _default_to_infinity(mirrors["behind_s_at_most"]),
            "rpo_s_estimate": mirrors["behind_s"].cast(pa.float64()),
            "rpo_records": _default_to_infinity(mirrors["behind_at_most"]),
        }
    )
    paths = pc.binary_join_element_wise(groups["active"], groups["passive"], " to ")
    group_minutes = pa.table(
        {
            "scope": pa.repeat(GROUP, groups.num_rows),
            "subject": pc.binary_join_element_wise(paths, groups["group_id"], ": "),
            "minute": groups["minute"],
            _READINESS: groups["ready"].fill_null(False).cast(pa.int8()).cast(pa.float64()),
        }
    )
    return pa.concat_tables([mirror_minutes, group_minutes], promote_options="default")


def compute_recovery_weeks(
    minutes: pa.Table, subjects: Sequence[SubjectWeek], objectives: RecoveryObjectives
) -> list[Row]:
    """Return rows of gold/recovery_weeks: each metric of each subject and week, and of the fleet.

    ``minutes`` is the result of compute_subject_minutes. A level misses its objective where its rank falls on
    a minute with an unknown value; it is infinite, and NULL in the row. The level of a week without minutes,
    and whether it was met, are NULL.
    """
    by_subject = _group_by_subject(minutes)
    none = minutes.slice(0, 0)
    of_subjects = [
        row
        for subject in subjects
        for row in _compute_levels(
            subject, by_subject.get((subject.scope, subject.subject), none), objectives
        )
    ]
    rows = of_subjects + _compute_fleet_levels(of_subjects)
    return [row | {name: _infinity_to_null(row[name]) for name in _LEVELS} for row in rows]


_LEVELS = ("value", "median", "p90", "p99")


def _group_by_subject(minutes: pa.Table) -> dict[tuple[str, str], pa.Table]:
    keys = ["scope", "subject"]
    ordered = minutes.sort_by([(key, "ascending") for key in keys])
    sizes = ordered.group_by(keys, use_threads=False).aggregate([([], "count_all")]).to_pylist()
    ends = np.cumsum([row["count_all"] for row in sizes], dtype=np.int64).tolist()
    return {
        (row["scope"], row["subject"]): ordered.slice(end - row["count_all"], row["count_all"])
        for row, end in zip(sizes, ends, strict=True)
    }


def _compute_levels(subject: SubjectWeek, minutes: pa.Table, objectives: RecoveryObjectives) -> Iterator[Row]:
    """Yield a row for each metric of a subject's week."""
    at = minutes["minute"]
    starts, ends = (pa.scalar(bound, at.type) for bound in (subject.starts, subject.ends))
    inside = minutes.filter(pc.and_(pc.greater_equal(at, starts), pc.less(at, ends)))
    expected = (subject.ends - subject.starts) // _MINUTE
    for metric, value, objective in _list_levels(subject.scope, inside, objectives):
        yield _EMPTY_ROW | {
            "week": subject.week,
            "metric": metric,
            "scope": subject.scope,
            "subject": subject.subject,
            "value": value,
            "objective": objective,
            "met": _is_met(metric, value, objective),
            "minutes_measured": inside.num_rows,
            "minutes_expected": expected,
            "coverage": inside.num_rows / expected,
            "closed": subject.closed,
        }


_EMPTY_ROW: Row = dict.fromkeys(
    (
        *("week", "metric", "scope", "subject", "value", "objective", "met"),
        *("minutes_measured", "minutes_expected", "coverage"),
        *("median", "p90", "p99", "subjects", "subjects_excluded", "closed"),
    )
)


def _list_levels(
    scope: str, inside: pa.Table, objectives: RecoveryObjectives
) -> Iterator[tuple[str, float | None, float | None]]:
    """Yield each metric of a subject, its level and its objective."""
    if scope == MIRROR:
        for name in _LATENESS:
            values = sorted(inside[name].drop_null().to_pylist())
            yield name, quantile(99, values), objectives.rpo_s if name == "rpo_s" else None
    else:
        # Of ones and zeros, so it does not depend on the order of the rows.
        yield _READINESS, pc.mean(inside[_READINESS]).as_py(), objectives.readiness


def _is_met(metric: str, value: float | None, objective: float | None) -> bool | None:
    if value is None or objective is None:
        return None
    return value <= objective if metric in _LATENESS else value >= objective


def _compute_fleet_levels(rows: Sequence[Row]) -> list[Row]:
    """Return quantiles over the subjects with enough coverage and a level, which may be infinite."""
    pooled: dict[tuple[date, str], list[Row]] = defaultdict(list)
    for row in rows:
        pooled[row["week"], row["metric"]].append(row)
    return [
        _EMPTY_ROW
        | _compute_quantiles(metric, of_metric)
        | {"week": week, "metric": metric, "scope": FLEET, "subject": ""}
        | {"closed": all(row["closed"] for row in of_metric)}
        for (week, metric), of_metric in pooled.items()
    ]


def _compute_quantiles(metric: str, rows: Sequence[Row]) -> Row:
    values = sorted(
        row["value"] for row in rows if row["coverage"] >= MIN_FLEET_COVERAGE and row["value"] is not None
    )
    from_bad_side = quantile if metric in _LATENESS else quantile_from_bad_side
    levels = {name: from_bad_side(a, values) for name, a in (("median", 50), ("p90", 90), ("p99", 99))}
    return levels | {"subjects": len(values), "subjects_excluded": len(rows) - len(values)}


def _default_to_infinity(values: pa.ChunkedArray) -> pa.ChunkedArray:
    return values.cast(pa.float64()).fill_null(inf)


def _infinity_to_null(value: float | None) -> float | None:
    return value if value is not None and isfinite(value) else None
