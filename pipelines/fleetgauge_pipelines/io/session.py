"""The Spark session: local by default, whatever spark-submit says otherwise."""

import os
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager

from pyspark.sql import SparkSession

from fleetgauge_pipelines.io.cache import default_cache
from fleetgauge_pipelines.io.jars import SPARK_LOCK, ensure
from fleetgauge_pipelines.io.java import find_java

# A record's size is capped before Avro sees it; these stop a corrupt length
# inside a record from allocating what the record cannot hold.
_AVRO_LIMITS = " ".join(
    f"-Dorg.apache.avro.limits.{what}.maxLength=65536" for what in ("bytes", "string", "collectionItems")
)
_JVM = f"-Duser.timezone=UTC {_AVRO_LIMITS}"

_SETTINGS: Mapping[str, str] = {
    "spark.sql.extensions": "io.delta.sql.DeltaSparkSessionExtension",
    "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.delta.catalog.DeltaCatalog",
    "spark.sql.session.timeZone": "UTC",
    "spark.driver.extraJavaOptions": _JVM,
    "spark.executor.extraJavaOptions": _JVM,
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
    "spark.ui.showConsoleProgress": "false",
    "spark.sql.streaming.stopTimeout": "10s",
}

_LOCAL: Mapping[str, str] = {
    # Micro-batches are small: planning them again between stages costs more than it saves.
    "spark.sql.adaptive.enabled": "false",
    "spark.sql.shuffle.partitions": "2",
    "spark.driver.memory": "1g",
    "spark.driver.host": "127.0.0.1",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.ui.enabled": "false",
}


def open_session(
    app: str, progress: Callable[[str], None], extra: Mapping[str, str] | None = None
) -> SparkSession:
    """A session with Delta, Kafka and Avro. Under spark-submit the master and its jars are the caller's."""
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
    builder = SparkSession.builder.appName(app)
    settings = dict(_SETTINGS)
    if "SPARK_ENV_LOADED" not in os.environ and "PYSPARK_GATEWAY_PORT" not in os.environ:
        os.environ["JAVA_HOME"] = str(find_java(default_cache(), progress).home)
        jars = ensure(SPARK_LOCK, default_cache(), progress)
        settings |= {**_LOCAL, "spark.jars": ",".join(str(jar) for jar in jars)}
        builder = builder.master("local[*]")
    for key, value in {**settings, **(extra or {})}.items():
        builder = builder.config(key, value)
    progress("starting Spark")
    with _stdout_as_stderr():
        session = builder.getOrCreate()
    session.sparkContext.setLogLevel("ERROR")
    return session


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
