"""The broker-minutes that decided a week, and the samples behind them."""

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from fleetgauge_pipelines.transforms.broker_minutes import KEY, is_on_time, pool, sum_by_code

#: The values that a week came out with.
DECIDED_DDL = (
    "cluster_id string, week date, latency_p99_us bigint, latency_p99_censored_us bigint, "
    "availability_p99 double"
)
#: A week's value to the minutes' column that it was ranked from.
_RANKED = {
    "latency_p99_us": "latency_p99_us",
    "latency_p99_censored_us": "latency_p99_censored_us",
    "availability_p99": "availability",
}
_BAD = "bad_minute"


def deciding(minutes: DataFrame, client: DataFrame, weeks: DataFrame) -> DataFrame:
    """(cluster_id, week, minute, broker_id, why): who made the minutes at the rank, and every bad minute.

    At the rank it is the first minute with the week's value, and the brokers that had it; of a
    bad minute the brokers over the objective. ``weeks``: WEEKS_DDL with DECIDED_DDL.
    """
    limits = F.broadcast(
        weeks.select(
            F.col("cluster_id").alias("of"),
            *("week", "starts", "ends", "latency_objective_us"),
            *(F.col(name).alias(f"week_{name}") for name in _RANKED),
        )
    )
    inside = (F.col("cluster_id") == F.col("of")) & (F.col("minute") >= F.col("starts"))
    rows = minutes.join(limits, inside & (F.col("minute") < F.col("ends")))
    firsts = rows.groupBy("cluster_id", "week").agg(
        *(
            F.min(F.when(F.col(of_minute) == F.col(f"week_{name}"), F.col("minute"))).alias(f"first_{name}")
            for name, of_minute in _RANKED.items()
        )
    )
    whys = {
        name: F.when(F.col("minute") == F.col(f"first_{name}"), F.col(of_minute))
        for name, of_minute in _RANKED.items()
    }
    bad = F.when(F.col("latency_p99_censored_us") > F.col("latency_objective_us"), F.lit(True))
    chosen = rows.join(firsts, ["cluster_id", "week"]).select(
        "cluster_id",
        "week",
        "minute",
        "latency_objective_us",
        *(value.alias(f"worst_{name}") for name, value in whys.items()),
        bad.alias("is_bad"),
    )
    chosen = chosen.where(" OR ".join([*(f"worst_{name} IS NOT NULL" for name in _RANKED), "is_bad"]))
    return _brokers_of(chosen, client)


def _brokers_of(chosen: DataFrame, client: DataFrame) -> DataFrame:
    """The measured brokers that had a chosen minute's value."""
    had = {name: F.col(of_minute) == F.col(f"worst_{name}") for name, of_minute in _RANKED.items()}
    over = F.col("is_bad") & (F.col("latency_p99_censored_us") > F.col("latency_objective_us"))
    why = F.concat_ws(
        ",",
        *(F.when(is_it, F.lit(name)) for name, is_it in had.items()),
        F.when(over, F.lit(_BAD)),
    )
    return (
        client.where("measured")
        .join(F.broadcast(chosen), ["cluster_id", "minute"])
        .select("cluster_id", "week", "minute", "broker_id", why.alias("why"))
        .where("why != ''")
    )


def samples(records: DataFrame, keys: DataFrame, agent_late_us: int) -> DataFrame:
    """gold/evidence: what was pooled of both legs of the keys' broker-minutes."""
    wanted = ["cluster_id", "minute", "broker_id"]
    of_keys = records.join(F.broadcast(keys.select(*wanted)), wanted, "left_semi")
    pooled = pool(of_keys.withColumn("reach", F.lit(None)), is_on_time(agent_late_us))
    none, latencies = F.array().cast("array<int>"), F.col("latencies")
    return pooled.join(F.broadcast(keys), wanted).select(
        *KEY,
        "week",
        F.coalesce("attempted", F.lit(0)).alias("attempted"),
        F.coalesce(F.when(_client(), F.col("acks")).otherwise(latencies), none).alias("ack_us"),
        F.coalesce(F.when(_client(), latencies), none).alias("e2e_us"),
        sum_by_code(F.col("codes")).alias("failures"),
        "why",
    )


def _client() -> Column:
    return F.col("leg") == "client"
