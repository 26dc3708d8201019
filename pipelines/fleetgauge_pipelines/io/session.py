"""The Spark session: local by default; what spark-submit, its environment or its files say goes first."""

import os
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from pyspark import SparkConf, SparkContext
from pyspark.sql import SparkSession

from fleetgauge_pipelines.io.cache import default_cache
from fleetgauge_pipelines.io.errors import JarError
from fleetgauge_pipelines.io.jars import SPARK_LOCK, ensure
from fleetgauge_pipelines.io.java import find_java

# A record's size is capped before Avro sees it; these stop a corrupt length
# inside a record from allocating what the record cannot hold.
_AVRO_LIMITS: Mapping[str, str] = {
    f"org.apache.avro.limits.{what}.maxLength": "65536" for what in ("bytes", "string", "collectionItems")
}
#: For every JVM: what Spark generates for a wide row is longer than the 8,000 bytes that HotSpot compiles.
_COMPILE = "-XX:-DontCompileHugeMethods"
#: For JVMs that are not started yet: the executors'.
_JVM_OPTIONS = " ".join(
    (_COMPILE, *(f"-D{key}={value}" for key, value in {"user.timezone": "UTC", **_AVRO_LIMITS}.items()))
)
_EXECUTORS_OPTIONS = "spark.executor.extraJavaOptions"
#: What the driver's JVM has to be started with; somebody's own spark.driver.extraJavaOptions stand beside it.
DRIVERS_SETTING = ("spark.driver.defaultJavaOptions", _COMPILE)

_SETTINGS: Mapping[str, str] = {
    "spark.sql.extensions": "io.delta.sql.DeltaSparkSessionExtension",
    "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.delta.catalog.DeltaCatalog",
    "spark.sql.session.timeZone": "UTC",
    # For rows that wait as bytes between the steps of a batch; Spark's tuning guide prefers it to Java's own.
    "spark.serializer": "org.apache.spark.serializer.KryoSerializer",
    # One commit of a small table must not cost fifty tasks.
    "spark.databricks.delta.snapshotPartitions": "2",
    # Its default, INT96, counts nanoseconds: a time beyond 2262 would make a file unreadable elsewhere.
    "spark.sql.parquet.outputTimestampType": "TIMESTAMP_MICROS",
    "spark.sql.sources.parallelPartitionDiscovery.threshold": "1000",
    # A batch compiles more classes than the default cache of 100 keeps for the next.
    "spark.sql.codegen.cache.maxEntries": "1000",
    # What dashboards can read without a JVM.
    "spark.databricks.delta.properties.defaults.enableDeletionVectors": "false",
    "spark.databricks.delta.properties.defaults.checkpointPolicy": "classic",
    "spark.sql.streaming.stopTimeout": "10s",
}

_LOCAL: Mapping[str, str] = {
    # Micro-batches are small: planning them again between stages costs more than it saves.
    "spark.sql.adaptive.enabled": "false",
    "spark.sql.shuffle.partitions": "2",
    # Delta lists what a vacuum may remove in so many tasks; the default is ten thousand.
    "spark.sql.sources.parallelPartitionDiscovery.parallelism": "8",
    "spark.driver.host": "127.0.0.1",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.ui.enabled": "false",
}


def submitted() -> bool:
    """Whether spark-submit runs this process; its JVM, and with it the class path, is there already."""
    return "PYSPARK_GATEWAY_PORT" in os.environ


def open_session(app: str, progress: Callable[[str], None]) -> SparkSession:
    """A session with Delta, Kafka and Avro; master, memory and jars are spark-submit's where it names them.

    Raises SetupError.
    """
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    given = _given(app, progress)
    _prepare(SparkContext._jvm)
    master = given.get("spark.master", "")
    for key, value in {**_SETTINGS, **(_LOCAL if master.startswith("local") else {})}.items():
        given.setIfMissing(key, value)
    given.set(_EXECUTORS_OPTIONS, f"{given.get(_EXECUTORS_OPTIONS, '')} {_JVM_OPTIONS}".strip())
    session = SparkSession.builder.config(conf=given).getOrCreate()
    session.sparkContext.setLogLevel("ERROR")
    return session


def _given(app: str, progress: Callable[[str], None]) -> SparkConf:
    """What the driver's JVM was told, by whoever started it: spark-submit, or this process."""
    at_start = SparkConf(loadDefaults=False)
    if not submitted():
        os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
        os.environ["JAVA_HOME"] = str(find_java(default_cache(), progress).home)
        jars = ensure(SPARK_LOCK, default_cache(), progress)
        at_start.set("spark.jars", ",".join(str(jar) for jar in jars))
        at_start.set(*DRIVERS_SETTING)
        at_start.set("spark.app.name", app).set("spark.ui.showConsoleProgress", "false")
    progress("starting Spark")
    with _stdout_as_stderr():
        SparkContext._ensure_initialized(conf=at_start)
    return SparkConf()


def _prepare(jvm: Any) -> None:
    """The driver's JVM may be anybody's: bring it to UTC, set Avro's limits before Avro reads them."""
    jvm.java.util.TimeZone.setDefault(jvm.java.util.TimeZone.getTimeZone("UTC"))
    for key, value in _AVRO_LIMITS.items():
        jvm.java.lang.System.setProperty(key, value)
    loader = jvm.java.lang.Thread.currentThread().getContextClassLoader()
    if loader.getResource("io/delta/sql/DeltaSparkSessionExtension.class") is None:
        raise JarError(
            "spark-submit brought no Delta: give it the words of `python -m fleetgauge_pipelines.jobs.submit`"
        )


@contextmanager
def _stdout_as_stderr() -> Iterator[None]:
    """A JVM that is started meanwhile prints to stderr: stdout is for the command's answer alone."""
    stdout = os.dup(1)
    os.dup2(2, 1)
    try:
        yield
    finally:
        os.dup2(stdout, 1)
        os.close(stdout)
