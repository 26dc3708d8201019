"""Find the broker-minutes that decided a week's levels, and collect their samples."""

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from fleetgauge_pipelines.transforms.broker_minutes import (
    BROKER_MINUTE_KEY,
    is_on_time,
    pool_vantages,
    sum_by_code,
)

#: The computed levels of a week.
DECIDED_DDL = (
    "cluster_id string, week date, latency_p99_us bigint, latency_p99_censored_us bigint, "
    "availability_p99 double"
)
#: Each level of a week, and the column of cluster-minutes and broker-minutes of which it is a quantile.
_RANKED = {
    "latency_p99_us": "latency_p99_us",
    "latency_p99_censored_us": "latency_p99_censored_us",
    "availability_p99": "availability",
}
_BAD = "bad_minute"


def find_deciding_brokers(minutes: DataFrame, client: DataFrame, weeks: DataFrame) -> DataFrame:
    """Return (cluster_id, week, minute, broker_id, why) of the broker-minutes that decided each week.

    For each level it is the first minute with the level's value, and the brokers that had that value; for
    each bad minute, the brokers over the objective. ``minutes`` are cluster-minutes, ``client``
    broker-minutes of the client leg; ``weeks`` has the columns of WEEKS_DDL and DECIDED_DDL.
    """
    limits = F.broadcast(
        weeks.select(
            F.col("cluster_id").alias("week_cluster_id"),
            *("week", "starts", "ends", "latency_objective_us"),
            *(F.col(name).alias(f"week_{name}") for name in _RANKED),
        )
    )
    inside = (F.col("cluster_id") == F.col("week_cluster_id")) & (F.col("minute") >= F.col("starts"))
    rows = minutes.join(limits, inside & (F.col("minute") < F.col("ends")))
    firsts = rows.groupBy("cluster_id", "week").agg(
        *(
            F.min(F.when(F.col(of_minute) == F.col(f"week_{name}"), F.col("minute"))).alias(f"first_{name}")
            for name, of_minute in _RANKED.items()
        )
    )
    values_at_rank = {
        name: F.when(F.col("minute") == F.col(f"first_{name}"), F.col(of_minute))
        for name, of_minute in _RANKED.items()
    }
    bad = F.when(F.col("latency_p99_censored_us") > F.col("latency_objective_us"), F.lit(True))
    chosen = rows.join(firsts, ["cluster_id", "week"]).select(
        "cluster_id",
        "week",
        "minute",
        "latency_objective_us",
        *(value.alias(f"worst_{name}") for name, value in values_at_rank.items()),
        bad.alias("is_bad"),
    )
    chosen = chosen.where(" OR ".join([*(f"worst_{name} IS NOT NULL" for name in _RANKED), "is_bad"]))
    return _find_brokers(chosen, client)


def _find_brokers(chosen: DataFrame, client: DataFrame) -> DataFrame:
    """Return the measured brokers that had the value of a chosen minute."""
    has_value = {name: F.col(of_minute) == F.col(f"worst_{name}") for name, of_minute in _RANKED.items()}
    over = F.col("is_bad") & (F.col("latency_p99_censored_us") > F.col("latency_objective_us"))
    why = F.concat_ws(
        ",",
        *(F.when(condition, F.lit(name)) for name, condition in has_value.items()),
        F.when(over, F.lit(_BAD)),
    )
    return (
        client.where("measured")
        .join(F.broadcast(chosen), ["cluster_id", "minute"])
        .select("cluster_id", "week", "minute", "broker_id", why.alias("why"))
        .where("why != ''")
    )


def collect_samples(records: DataFrame, keys: DataFrame, agent_late_us: int) -> DataFrame:
    """Return gold/evidence: the pooled samples of both legs of the broker-minutes that ``keys`` names.

    ``records`` are rows of bronze, ``keys`` the result of find_deciding_brokers.
    """
    key_columns = ["cluster_id", "minute", "broker_id"]
    deciding = records.join(F.broadcast(keys.select(*key_columns)), key_columns, "left_semi")
    pooled = pool_vantages(deciding.withColumn("reach", F.lit(None)), is_on_time(agent_late_us))
    no_samples, latencies = F.array().cast("array<int>"), F.col("latencies")
    return pooled.join(F.broadcast(keys), key_columns).select(
        *BROKER_MINUTE_KEY,
        "week",
        F.coalesce("attempted", F.lit(0)).alias("attempted"),
        F.coalesce(F.when(_is_client(), F.col("acks")).otherwise(latencies), no_samples).alias("ack_us"),
        F.coalesce(F.when(_is_client(), latencies), no_samples).alias("e2e_us"),
        sum_by_code(F.col("codes")).alias("failures"),
        "why",
    )


def _is_client() -> Column:
    return F.col("leg") == "client"
