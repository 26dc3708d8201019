"""Bronze to broker-minutes: on-time vantages pooled, one row per expected broker, leg and minute."""

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F  # noqa: N812

from fleetgauge_pipelines.slo.levels import CENSORED_US, MEASURED_ATTEMPTS
from fleetgauge_pipelines.transforms.quantile import censored_quantile, quantile

KEY = ["cluster_id", "broker_id", "leg", "minute"]

_SUMS = ("attempted", "acknowledged", "received", "lost", "duplicated")


def broker_minutes(records: DataFrame, expected: DataFrame, agent_late_us: int) -> DataFrame:
    """silver/broker_minutes, plus ``latencies``: the pooled successes, ascending, for the cluster's sake."""
    spine = expected.select(
        "cluster_id",
        F.explode("brokers").alias("broker_id"),
        "minute",
    ).withColumn("leg", F.explode(F.array(F.lit("client"), F.lit("leader"))))
    facts = pool(records, agent_late_us)
    return _levels(spine.join(facts, KEY, "left"))


def pool(records: DataFrame, agent_late_us: int) -> DataFrame:
    """One row per key over its records; counts and samples of on-time vantages only."""
    on_time = F.col("schedule_lag_p95_us") <= agent_late_us
    latency = F.when(F.col("leg") == "client", F.col("e2e_us")).otherwise(F.col("ack_us"))
    codes = F.concat(F.map_entries("produce_failures"), F.map_entries("consume_failures"))
    return records.groupBy(*KEY).agg(
        *(F.sum(F.when(on_time, F.col(name))).cast("long").alias(name) for name in _SUMS),
        _pooled(F.when(on_time, latency)).alias("latencies"),
        _pooled(F.when(on_time, F.col("ack_us"))).alias("acks"),
        F.flatten(F.collect_list(F.when(on_time, codes))).alias("codes"),
        F.count_distinct(F.when(on_time, F.col("vantage"))).cast("int").alias("vantages"),
        F.max(~on_time).alias("agent_late"),
        F.array_sort(F.array_distinct(F.flatten(F.collect_list("led_by")))).alias("led_by"),
    )


def _pooled(samples: Column) -> Column:
    """Ascending samples of all vantages; a single vantage's are ascending as they come."""
    lists = F.collect_list(samples)
    return F.when(F.size(lists) == 1, F.get(lists, F.lit(0))).otherwise(F.array_sort(F.flatten(lists)))


def _levels(joined: DataFrame) -> DataFrame:
    no_samples = F.array().cast("array<int>")
    counted = joined.select(
        *KEY,
        *(F.coalesce(F.col(name), F.lit(0)).cast("long").alias(name) for name in _SUMS),
        F.coalesce("latencies", no_samples).alias("latencies"),
        F.coalesce("acks", no_samples).alias("acks"),
        F.coalesce(sum_by_code(F.col("codes")), F.create_map().cast("map<string,int>")).alias("failures"),
        F.coalesce("vantages", F.lit(0)).alias("vantages"),
        F.coalesce("agent_late", F.lit(False)).alias("agent_late"),
        F.coalesce("led_by", no_samples).alias("led_by"),
    ).withColumn("measured", F.col("attempted") >= MEASURED_ATTEMPTS)
    samples, succeeded = F.col("latencies"), F.size("latencies").cast("long")
    deadline = F.when(F.col("leg") == "client", CENSORED_US["client"]).otherwise(CENSORED_US["leader"])

    def measured(value: Column) -> Column:
        return F.when(F.col("measured"), value)

    return counted.select(
        *KEY,
        "attempted",
        succeeded.alias("succeeded"),
        "acknowledged",
        "received",
        measured(succeeded / F.col("attempted")).alias("availability"),
        measured(quantile(50, samples)).cast("long").alias("latency_p50_us"),
        measured(quantile(99, samples)).cast("long").alias("latency_p99_us"),
        measured(censored_quantile(99, samples, F.col("attempted"), deadline))
        .cast("long")
        .alias("latency_p99_censored_us"),
        measured(F.get(samples, F.size(samples) - 1)).cast("long").alias("latency_max_us"),
        measured(quantile(99, F.col("acks"))).cast("long").alias("ack_p99_us"),
        "failures",
        "lost",
        "duplicated",
        "vantages",
        "agent_late",
        "measured",
        "led_by",
        F.to_date("minute").alias("day"),
        "latencies",
    )


def sum_by_code(entries: Column) -> Column:
    """[(code, count), ...] to {code: sum}, codes in order so that equal maps are equal."""
    codes = F.array_sort(F.array_distinct(F.transform(entries, lambda entry: entry["key"])))

    def total(code: Column) -> Column:
        of_code = F.filter(entries, lambda entry: entry["key"] == code)
        return F.aggregate(of_code, F.lit(0), lambda sum_, entry: sum_ + entry["value"])

    return F.map_from_entries(
        F.transform(codes, lambda code: F.struct(code.alias("key"), total(code).alias("value")))
    )
