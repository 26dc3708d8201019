"""Bronze to broker-minutes: on-time vantages pooled, one row per expected broker, leg and minute."""

from collections.abc import Collection
from functools import reduce

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from fleetgauge_core.slo.levels import CENSORED_US, MEASURED_ATTEMPTS
from fleetgauge_pipelines.transforms.quantile import ascending, censored_quantile, quantile

KEY = ["cluster_id", "broker_id", "leg", "minute"]

#: What ``density`` finds, and each cluster's retired brokers beside it.
DENSITY_DDL = "cluster_id string, shared boolean, reach int, retired array<int>"

#: What several records claim together may be more than the table's counts hold.
_INT_MAX = 2**31 - 1

_SUMS = ("attempted", "acknowledged", "received", "lost", "duplicated")


def density() -> tuple[Column, Column]:
    """(shared, reach) over minutes of ``expected_brokers``: they decide how few of the samples have to move.

    ``shared``: some broker-minute has several records, which are pooled.
    ``reach``: no pooled p99 of one of the minutes needs more of a broker than so many of its slowest.
    """
    at_most = F.coalesce(F.max("attempted"), F.lit(0))
    return (
        F.coalesce(F.bool_or("shared"), F.lit(False)).alias("shared"),
        F.least(F.call_function("div", at_most, F.lit(100)) + 1, F.lit(_INT_MAX)).cast("int").alias("reach"),
    )


def broker_minutes(
    records: DataFrame, expected: DataFrame, dense: DataFrame, shared: Collection[bool], agent_late_us: int
) -> DataFrame:
    """silver/broker_minutes, but for ``failures``, with two columns more.

    ``codes``: what ``with_failures`` counts once the samples are gone; its lambdas would keep Spark from
    compiling what is computed beside them. ``slowest``: the samples that the cluster's pooled p99 may need,
    ascending.

    ``expected`` as ``expected_brokers`` has it of these records, ``dense`` as DENSITY_DDL, ``shared`` the
    values of its column of this name. Where nothing is shared a record's levels are computed where it is
    read, and nothing of it is moved.
    """
    on_time = is_on_time(agent_late_us)
    not_retired = ~F.array_contains("retired", F.col("broker_id"))
    known = records.join(F.broadcast(dense), "cluster_id").where(not_retired)
    facts = [
        (pool if several else _alone)(known.where(F.col("shared") == several), on_time)
        for several in sorted(shared) or [False]
    ]
    silent = expected.select("cluster_id", "minute", F.explode("silent").alias("silent"))
    unmeasured = silent.select("cluster_id", "silent.broker_id", "silent.leg", "minute")
    levels = _levels(reduce(DataFrame.unionByName, facts))
    return _of_all(levels.unionByName(unmeasured, allowMissingColumns=True))


def is_on_time(agent_late_us: int) -> Column:
    return F.col("schedule_lag_p95_us") <= agent_late_us


def _latency() -> Column:
    return F.when(F.col("leg") == "client", F.col("e2e_us")).otherwise(F.col("ack_us"))


def _client_acks() -> Column:
    """The leader leg's acknowledgements are its latencies."""
    return F.when(F.col("leg") == "client", F.col("ack_us"))


def _codes() -> Column:
    """[(code, count), ...]; NULL without a failure."""
    codes = F.concat(F.map_entries("produce_failures"), F.map_entries("consume_failures"))
    return F.when((F.size("produce_failures") > 0) | (F.size("consume_failures") > 0), codes)


def _alone(records: DataFrame, on_time: Column) -> DataFrame:
    """What ``pool`` says, of records that have their key to themselves."""
    return records.select(
        *KEY,
        "reach",
        *(F.when(on_time, F.col(name)).cast("long").alias(name) for name in _SUMS),
        F.when(on_time, _latency()).alias("latencies"),
        F.when(on_time, _client_acks()).alias("acks"),
        F.when(on_time, _codes()).alias("codes"),
        on_time.cast("int").alias("vantages"),
        (~on_time).alias("agent_late"),
        F.sort_array(F.array_distinct("led_by")).alias("led_by"),
    )


def pool(records: DataFrame, on_time: Column) -> DataFrame:
    """One row per key over its records; counts and samples of on-time vantages only."""
    return records.groupBy(*KEY).agg(
        F.max("reach").alias("reach"),
        *(F.sum(F.when(on_time, F.col(name))).cast("long").alias(name) for name in _SUMS),
        _pooled(F.when(on_time, _latency())).alias("latencies"),
        _pooled(F.when(on_time, _client_acks())).alias("acks"),
        F.flatten(F.collect_list(F.when(on_time, _codes()))).alias("codes"),
        # Not count_distinct, for which Spark would aggregate everything once more by vantage.
        F.size(F.collect_set(F.when(on_time, F.col("vantage")))).alias("vantages"),
        F.max(~on_time).alias("agent_late"),
        F.sort_array(F.array_distinct(F.flatten(F.collect_list("led_by")))).alias("led_by"),
    )


def _pooled(samples: Column) -> Column:
    """Ascending samples of all vantages; a single vantage's are ascending as they come."""
    lists = F.collect_list(samples)
    return F.when(F.size(lists) == 1, F.get(lists, F.lit(0))).otherwise(ascending(F.flatten(lists)))


def _levels(facts: DataFrame) -> DataFrame:
    no_samples = F.array().cast("array<int>")
    counted = facts.select(
        *KEY,
        "reach",
        *(F.coalesce(F.col(name), F.lit(0)).cast("long").alias(name) for name in _SUMS),
        F.coalesce("latencies", no_samples).alias("latencies"),
        F.when(F.col("leg") == "leader", F.col("latencies")).otherwise(F.col("acks")).alias("acks"),
        "codes",
        "vantages",
        "agent_late",
        "led_by",
    ).withColumn("measured", F.col("attempted") >= MEASURED_ATTEMPTS)
    samples, succeeded = F.col("latencies"), F.size("latencies").cast("long")
    slowest = F.when(F.col("leg") == "client", _last(samples, F.col("reach")))
    deadline = F.when(F.col("leg") == "client", CENSORED_US["client"]).otherwise(CENSORED_US["leader"])

    def measured(value: Column) -> Column:
        return F.when(F.col("measured"), value)

    return counted.select(
        *KEY,
        *_SUMS,
        succeeded.alias("succeeded"),
        measured(succeeded / F.col("attempted")).alias("availability"),
        measured(quantile(50, samples)).cast("long").alias("latency_p50_us"),
        measured(quantile(99, samples)).cast("long").alias("latency_p99_us"),
        measured(censored_quantile(99, samples, F.col("attempted"), deadline))
        .cast("long")
        .alias("latency_p99_censored_us"),
        measured(F.get(samples, F.size(samples) - 1)).cast("long").alias("latency_max_us"),
        measured(quantile(99, F.col("acks"))).cast("long").alias("ack_p99_us"),
        "codes",
        "vantages",
        "agent_late",
        "measured",
        "led_by",
        measured(slowest).alias("slowest"),
    )


def _last(values: Column, at_most: Column) -> Column:
    return F.slice(values, F.greatest(F.size(values) - at_most, F.lit(0)) + 1, at_most)


def _of_all(rows: DataFrame) -> DataFrame:
    """Levels for every expected row: nothing was measured where nothing came."""
    counts = {name: F.coalesce(F.col(name), F.lit(0).cast("long")) for name in (*_SUMS, "succeeded")}
    return rows.withColumns(
        {
            **counts,
            "vantages": F.coalesce("vantages", F.lit(0)),
            "agent_late": F.coalesce("agent_late", F.lit(False)),
            "measured": F.coalesce("measured", F.lit(False)),
            "led_by": F.coalesce("led_by", F.array().cast("array<int>")),
            "day": F.to_date("minute"),
        }
    )


def with_failures(rows: DataFrame) -> DataFrame:
    """``codes`` as the table's ``failures``."""
    none = F.create_map().cast("map<string,int>")
    counted = F.when(F.size("codes") > 0, sum_by_code(F.col("codes")))
    return rows.withColumn("failures", F.coalesce(counted, none)).drop("codes")


def sum_by_code(entries: Column) -> Column:
    """[(code, count), ...] to {code: sum}, codes in order so that equal maps are equal."""
    codes = F.sort_array(F.array_distinct(F.transform(entries, lambda entry: entry["key"])))

    def total(code: Column) -> Column:
        of_code = F.filter(entries, lambda entry: entry["key"] == code)
        sum_ = F.aggregate(of_code, F.lit(0).cast("long"), lambda so_far, entry: so_far + entry["value"])
        return F.least(sum_, F.lit(_INT_MAX)).cast("int")

    return F.map_from_entries(
        F.transform(codes, lambda code: F.struct(code.alias("key"), total(code).alias("value")))
    )
