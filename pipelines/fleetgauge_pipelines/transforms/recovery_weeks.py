"""Minutes of mirrors and groups to their weeks, and those to the fleet's."""

from math import inf

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from fleetgauge_core.fleet import RecoveryObjectives
from fleetgauge_core.slo.levels import FLEET_COVERAGE
from fleetgauge_pipelines.transforms.quantile import quantile, quantile_from_bad_side

MIRROR = "mirror"
GROUP = "group"
FLEET = "fleet"

#: The weeks to compute: a row per subject and week, with the minutes that are expected of it, [starts, ends).
SUBJECTS_DDL = "scope string, subject string, week date, starts timestamp, ends timestamp, closed boolean"

_KEY = ("scope", "subject", "week")
#: Of a mirror; more is worse.
_LATENESS = ("rpo_s", "rpo_s_estimate", "rpo_records")
_READINESS = "readiness"


def subject_minutes(mirrors: DataFrame, groups: DataFrame) -> DataFrame:
    """A row for each subject and minute: scope, subject, minute, and a double for each metric that it has.

    ``rpo_s`` and ``rpo_s_estimate`` in seconds, ``rpo_records`` in records, ``readiness`` 1 or 0. What nobody
    knows of an upper bound counts as infinitely late; an estimate that is missing is NULL.
    """
    of_mirrors = mirrors.select(
        F.lit(MIRROR).alias("scope"),
        F.concat("source", F.lit(" to "), "destination").alias("subject"),
        "minute",
        _or_infinite("behind_s_at_most").alias("rpo_s"),
        F.col("behind_s").alias("rpo_s_estimate"),
        _or_infinite("behind_at_most").alias("rpo_records"),
    )
    of_groups = groups.select(
        F.lit(GROUP).alias("scope"),
        F.concat("active", F.lit(" to "), "passive", F.lit(": "), "group_id").alias("subject"),
        "minute",
        F.coalesce("ready", F.lit(False)).cast("int").cast("double").alias(_READINESS),
    )
    return of_mirrors.unionByName(of_groups, allowMissingColumns=True)


def subject_weeks(minutes: DataFrame, subjects: DataFrame, objectives: RecoveryObjectives) -> DataFrame:
    """A row for each metric of each of the ``subjects``, as SUBJECTS_DDL; ``minutes`` as subject_minutes.

    A level is infinite where its rank falls on a minute of which nobody knows, and misses its objective. Of
    a week without minutes there is nothing to say: its levels and ``met`` are NULL.
    """
    inside = (F.col("minute") >= F.col("starts")) & (F.col("minute") < F.col("ends"))
    seen = (
        minutes.join(F.broadcast(subjects), ["scope", "subject"])
        .where(inside)
        .groupBy(*_KEY)
        .agg(
            *(F.sort_array(F.collect_list(name)).alias(name) for name in _LATENESS),
            # Ones and zeros: their sum is the same in whatever order they come.
            F.avg(_READINESS).alias(_READINESS),
            F.count("*").alias("minutes_measured"),
        )
    )
    levels = F.when(F.col("scope") == MIRROR, _of_mirror(objectives.rpo_s)).otherwise(
        _of_group(objectives.readiness)
    )
    rows = subjects.join(seen, [*_KEY], "left").withColumn("level", F.explode(levels))
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


def recovery_weeks(weeks: DataFrame) -> DataFrame:
    """gold/recovery_weeks: the ``weeks`` of subject_weeks, and the fleet's of every metric of theirs.

    What is infinite until here is NULL: of a subject, and of a quantile that falls on one.
    """
    rows = weeks.unionByName(_of_fleet(weeks), allowMissingColumns=True)
    return rows.withColumns({name: _unless_infinite(name) for name in ("value", "median", "p90", "p99")})


def _of_fleet(weeks: DataFrame) -> DataFrame:
    """Over the subjects that were seen well enough, and of which there is a level, be it infinite."""
    counts = F.coalesce((F.col("coverage") >= FLEET_COVERAGE) & F.col("value").isNotNull(), F.lit(False))
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
        _from_its_bad_side(50).alias("median"),
        _from_its_bad_side(90).alias("p90"),
        _from_its_bad_side(99).alias("p99"),
        "subjects",
        "subjects_excluded",
        "closed",
    )


def _of_mirror(rpo_s: float) -> Column:
    objectives = {"rpo_s": rpo_s}
    return F.array(
        *(
            _level(name, quantile(99, F.col(name)), objectives.get(name), more_is_worse=True)
            for name in _LATENESS
        )
    )


def _of_group(readiness: float) -> Column:
    return F.array(_level(_READINESS, F.col(_READINESS), readiness, more_is_worse=False))


def _level(metric: str, value: Column, objective: float | None, *, more_is_worse: bool) -> Column:
    wanted = F.lit(objective).cast("double")
    met = value <= wanted if more_is_worse else value >= wanted
    return F.struct(
        F.lit(metric).alias("metric"), value.alias("value"), wanted.alias("objective"), met.alias("met")
    )


def _from_its_bad_side(a: int) -> Column:
    values = F.col("values")
    return F.when(F.col("metric").isin(*_LATENESS), quantile(a, values)).otherwise(
        quantile_from_bad_side(a, values)
    )


def _or_infinite(name: str) -> Column:
    return F.coalesce(F.col(name).cast("double"), F.lit(inf))


def _unless_infinite(name: str) -> Column:
    return F.when(F.col(name) < inf, F.col(name))
