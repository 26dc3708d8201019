"""Compute recovery weeks: the levels of mirrors, consumer groups and the fleet, from their minutes."""

from math import inf

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from fleetgauge_core.fleet import RecoveryObjectives
from fleetgauge_core.slo.levels import MIN_FLEET_COVERAGE
from fleetgauge_pipelines.transforms.quantile import quantile, quantile_from_bad_side

MIRROR = "mirror"
GROUP = "group"
FLEET = "fleet"

#: The weeks to compute: a row for each subject and week, with the minutes that are expected of it,
#: [starts, ends). A subject is a mirror or a consumer group.
SUBJECTS_DDL = "scope string, subject string, week date, starts timestamp, ends timestamp, closed boolean"

_KEY = ("scope", "subject", "week")
#: Metrics of a mirror; higher values are worse.
_LATENESS = ("rpo_s", "rpo_s_estimate", "rpo_records")
_READINESS = "readiness"


def compute_subject_minutes(mirrors: DataFrame, groups: DataFrame) -> DataFrame:
    """Return a row for each subject and minute: scope, subject, minute, and a double for each of its metrics.

    ``rpo_s`` and ``rpo_s_estimate`` are in seconds, ``rpo_records`` in records, ``readiness`` is 1 or 0. An
    unknown upper bound counts as infinitely late; a missing estimate is NULL.
    """
    mirror_minutes = mirrors.select(
        F.lit(MIRROR).alias("scope"),
        F.concat("source", F.lit(" to "), "destination").alias("subject"),
        "minute",
        _default_to_infinity("behind_s_at_most").alias("rpo_s"),
        F.col("behind_s").alias("rpo_s_estimate"),
        _default_to_infinity("behind_at_most").alias("rpo_records"),
    )
    group_minutes = groups.select(
        F.lit(GROUP).alias("scope"),
        F.concat("active", F.lit(" to "), "passive", F.lit(": "), "group_id").alias("subject"),
        "minute",
        F.coalesce("ready", F.lit(False)).cast("int").cast("double").alias(_READINESS),
    )
    return mirror_minutes.unionByName(group_minutes, allowMissingColumns=True)


def compute_subject_weeks(
    minutes: DataFrame, subjects: DataFrame, objectives: RecoveryObjectives
) -> DataFrame:
    """Return a row for each metric of each of the ``subjects`` (SUBJECTS_DDL) and week.

    ``minutes`` is the result of compute_subject_minutes. A level is infinite, and misses its objective, where
    its rank falls on a minute with an unknown value. The levels of a week without minutes, and ``met``, are
    NULL.
    """
    inside = (F.col("minute") >= F.col("starts")) & (F.col("minute") < F.col("ends"))
    measured_subjects = (
        minutes.join(F.broadcast(subjects), ["scope", "subject"])
        .where(inside)
        .groupBy(*_KEY)
        .agg(
            *(F.sort_array(F.collect_list(name)).alias(name) for name in _LATENESS),
            # The average is of ones and zeros, so it does not depend on the order of the rows.
            F.avg(_READINESS).alias(_READINESS),
            F.count("*").alias("minutes_measured"),
        )
    )
    levels = F.when(F.col("scope") == MIRROR, _mirror_levels(objectives.rpo_s)).otherwise(
        _group_levels(objectives.readiness)
    )
    rows = subjects.join(measured_subjects, [*_KEY], "left").withColumn("level", F.explode(levels))
    measured = F.coalesce("minutes_measured", F.lit(0))
    expected = F.timestamp_diff("MINUTE", F.col("starts"), F.col("ends"))
    return rows.select(
        "week",
        "level.metric",
        "scope",
        "subject",
        "level.value",
        "level.objective",
        "level.met",
        measured.alias("minutes_measured"),
        expected.alias("minutes_expected"),
        (measured / expected).alias("coverage"),
        "closed",
    )


def compute_recovery_weeks(weeks: DataFrame) -> DataFrame:
    """Return gold/recovery_weeks: the rows of compute_subject_weeks, and the fleet's row of each metric.

    Values that are infinite, of a subject or of a quantile over subjects, become NULL.
    """
    rows = weeks.unionByName(_fleet_levels(weeks), allowMissingColumns=True)
    return rows.withColumns({name: _infinity_to_null(name) for name in ("value", "median", "p90", "p99")})


def _fleet_levels(weeks: DataFrame) -> DataFrame:
    """Return quantiles over the subjects with enough coverage and a level, which may be infinite."""
    counts = F.coalesce((F.col("coverage") >= MIN_FLEET_COVERAGE) & F.col("value").isNotNull(), F.lit(False))
    pooled = weeks.groupBy("week", "metric").agg(
        F.sort_array(F.collect_list(F.when(counts, F.col("value")))).alias("values"),
        F.count_if(counts).alias("subjects"),
        F.count_if(~counts).alias("subjects_excluded"),
        F.bool_and("closed").alias("closed"),
    )
    return pooled.select(
        "week",
        "metric",
        F.lit(FLEET).alias("scope"),
        F.lit("").alias("subject"),
        _quantile_from_bad_side(50).alias("median"),
        _quantile_from_bad_side(90).alias("p90"),
        _quantile_from_bad_side(99).alias("p99"),
        "subjects",
        "subjects_excluded",
        "closed",
    )


def _mirror_levels(rpo_s: float) -> Column:
    objectives = {"rpo_s": rpo_s}
    return F.array(
        *(
            _level(name, quantile(99, F.col(name)), objectives.get(name), higher_is_worse=True)
            for name in _LATENESS
        )
    )


def _group_levels(readiness: float) -> Column:
    return F.array(_level(_READINESS, F.col(_READINESS), readiness, higher_is_worse=False))


def _level(metric: str, value: Column, objective: float | None, *, higher_is_worse: bool) -> Column:
    target = F.lit(objective).cast("double")
    met = value <= target if higher_is_worse else value >= target
    return F.struct(
        F.lit(metric).alias("metric"), value.alias("value"), target.alias("objective"), met.alias("met")
    )


def _quantile_from_bad_side(percent: int) -> Column:
    values = F.col("values")
    return F.when(F.col("metric").isin(*_LATENESS), quantile(percent, values)).otherwise(
        quantile_from_bad_side(percent, values)
    )


def _default_to_infinity(name: str) -> Column:
    return F.coalesce(F.col(name).cast("double"), F.lit(inf))


def _infinity_to_null(name: str) -> Column:
    return F.when(F.col(name) < inf, F.col(name))
