"""The cause of each bad cluster-minute: the rule of fleetgauge_core.slo.causes as column expressions."""

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from fleetgauge_core.slo.causes import PRECEDENCE, UNKNOWN, VANTAGE

#: A row for each cluster: the latency above which a minute is bad, and the intervals that may explain its bad
#: minutes, ranked by slo.causes.PRECEDENCE. Intervals of one rank with homes explain only minutes that no
#: other broker made bad.
CAUSE_INTERVALS_DDL = (
    "cluster_id string, latency_objective_us bigint, "
    "intervals array<struct<starts:timestamp,ends:timestamp,home:int,rank:int>>"
)


def add_causes(minutes: DataFrame) -> DataFrame:
    """Return rows of silver/cluster_minutes with their ``cause``.

    ``minutes`` has the columns of CAUSE_INTERVALS_DDL and the cause_aggregates beside its own; both are
    dropped.
    """
    cause = F.when(_is_bad(), F.get(_precedence_names(), _lowest_rank()))
    return minutes.withColumn("cause", cause).drop("latency_objective_us", "intervals", *cause_aggregates())


def recompute_causes(minutes: DataFrame, brokers: DataFrame, intervals: DataFrame) -> DataFrame:
    """Return stored cluster-minutes with their causes computed from other ``intervals``.

    ``brokers`` are the broker-minutes of the same time, ``intervals`` has the columns of CAUSE_INTERVALS_DDL.
    """
    objectives = F.broadcast(intervals.select("cluster_id", "latency_objective_us"))
    key = ["cluster_id", "minute"]
    bad = minutes.join(objectives, "cluster_id").where(_is_bad()).select(*key)
    facts = (
        brokers.join(bad, key, "left_semi")
        .join(objectives, "cluster_id")
        .groupBy(*key)
        .agg(*(aggregate.alias(name) for name, aggregate in cause_aggregates().items()))
    )
    rows = minutes.join(F.broadcast(intervals), "cluster_id").join(facts, key, "left")
    no_brokers = F.array().cast("array<int>")
    return add_causes(
        rows.withColumns(
            {
                "bad_homes": F.coalesce("bad_homes", no_brokers),
                "agent_late": F.coalesce("agent_late", F.lit(False)),
            }
        )
    )


def cause_aggregates() -> dict[str, Column]:
    """Return the aggregates of a minute's broker-minutes that the rule needs, by name.

    The broker-minutes need their cluster's ``latency_objective_us``.
    """
    client = F.col("leg") == "client"
    return {
        "bad_homes": F.collect_set(F.when(client & F.col("measured") & _is_bad(), F.col("broker_id"))),
        "agent_late": F.coalesce(F.bool_or(client & F.col("agent_late")), F.lit(False)),
    }


def _is_bad() -> Column:
    return F.col("latency_p99_censored_us") > F.col("latency_objective_us")


def _precedence_names() -> Column:
    return F.array(*(F.lit(name) for name in PRECEDENCE))


def _lowest_rank() -> Column:
    """Return the rank of the cause that takes precedence in a minute."""
    holding = F.filter("intervals", lambda interval: _holds(interval))

    def explains(interval: Column) -> Column:
        of_rank = F.filter(holding, lambda other: other["rank"] == interval["rank"])
        homes = F.transform(of_rank, lambda other: other["home"])
        is_covered = (F.size("bad_homes") > 0) & (F.size(F.array_except("bad_homes", homes)) == 0)
        return interval["home"].isNull() | is_covered

    ranks = F.transform(F.filter(holding, explains), lambda interval: interval["rank"])
    late = F.when(F.col("agent_late"), PRECEDENCE.index(VANTAGE))
    return F.least(F.array_min(ranks), late, F.lit(PRECEDENCE.index(UNKNOWN)))


def _holds(interval: Column) -> Column:
    minute = F.col("minute")
    return (interval["starts"] < minute + F.expr("INTERVAL 1 MINUTE")) & (
        interval["ends"].isNull() | (interval["ends"] > minute)
    )
