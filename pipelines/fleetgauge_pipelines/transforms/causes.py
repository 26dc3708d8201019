"""The cause of each bad cluster-minute; the twin of slo.causes for many rows."""

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from fleetgauge_core.slo.causes import PRECEDENCE, UNKNOWN, VANTAGE

#: A row per cluster: when its minutes are bad, and what may explain them, ranked as in slo.causes.
REASONS_DDL = (
    "cluster_id string, latency_objective_us bigint, "
    "reasons array<struct<starts:timestamp,ends:timestamp,home:int,rank:int>>"
)


def with_causes(minutes: DataFrame) -> DataFrame:
    """silver/cluster_minutes of rows that have REASONS_DDL's columns and the facts beside their own."""
    cause = F.when(_is_bad(), F.get(_names(), _rank()))
    return minutes.withColumn("cause", cause).drop("latency_objective_us", "reasons", *cause_facts())


def causes_again(minutes: DataFrame, brokers: DataFrame, reasons: DataFrame) -> DataFrame:
    """Stored cluster-minutes with their causes found anew; ``brokers``: the broker-minutes of their time."""
    objectives = F.broadcast(reasons.select("cluster_id", "latency_objective_us"))
    key = ["cluster_id", "minute"]
    bad = minutes.join(objectives, "cluster_id").where(_is_bad()).select(*key)
    facts = (
        brokers.join(bad, key, "left_semi")
        .join(objectives, "cluster_id")
        .groupBy(*key)
        .agg(*(aggregate.alias(name) for name, aggregate in cause_facts().items()))
    )
    rows = minutes.join(F.broadcast(reasons), "cluster_id").join(facts, key, "left")
    nobody = F.array().cast("array<int>")
    return with_causes(
        rows.withColumns(
            {
                "bad_homes": F.coalesce("bad_homes", nobody),
                "agent_late": F.coalesce("agent_late", F.lit(False)),
            }
        )
    )


def cause_facts() -> dict[str, Column]:
    """What the rule asks of a minute's broker-minutes (with their cluster's objective), as aggregates."""
    client = F.col("leg") == "client"
    return {
        "bad_homes": F.collect_set(F.when(client & F.col("measured") & _is_bad(), F.col("broker_id"))),
        "agent_late": F.coalesce(F.bool_or(client & F.col("agent_late")), F.lit(False)),
    }


def _is_bad() -> Column:
    return F.col("latency_p99_censored_us") > F.col("latency_objective_us")


def _names() -> Column:
    return F.array(*(F.lit(name) for name in PRECEDENCE))


def _rank() -> Column:
    """The lowest rank of what holds."""
    holding = F.filter("reasons", lambda one: _holds(one))
    homes = F.transform(holding, lambda one: one["home"])
    explained = (F.size("bad_homes") > 0) & (F.size(F.array_except("bad_homes", homes)) == 0)
    ranks = F.transform(
        F.filter(holding, lambda one: one["home"].isNull() | explained), lambda one: one["rank"]
    )
    late = F.when(F.col("agent_late"), PRECEDENCE.index(VANTAGE))
    return F.least(F.array_min(ranks), late, F.lit(PRECEDENCE.index(UNKNOWN)))


def _holds(one: Column) -> Column:
    minute = F.col("minute")
    return (one["starts"] < minute + F.expr("INTERVAL 1 MINUTE")) & (
        one["ends"].isNull() | (one["ends"] > minute)
    )
