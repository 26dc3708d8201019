"""The Spark session: local by default; settings of spark-submit or its files take precedence."""

import os
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from pyspark import SparkConf, SparkContext
from pyspark.sql import SparkSession

from fleetgauge_pipelines.io.cache import default_cache_folder
from fleetgauge_pipelines.io.class_archive import (
    find_archive,
    list_reading_options,
    list_writing_options,
)
from fleetgauge_pipelines.io.errors import JarError
from fleetgauge_pipelines.io.jars import SPARK_LOCK, fetch_jars
from fleetgauge_pipelines.io.java import find_java

# Records are limited in size before they are decoded. These limits keep a corrupt length inside a record from
# allocating more memory than the record can have content.
_AVRO_LIMITS: Mapping[str, str] = {
    f"org.apache.avro.limits.{type_}.maxLength": "65536" for type_ in ("bytes", "string", "collectionItems")
}
#: For every JVM: Spark generates methods for wide rows that are longer than the 8,000 bytes up to which
#: HotSpot compiles by default.
_COMPILE_HUGE_METHODS = "-XX:-DontCompileHugeMethods"
#: For the driver's JVM on one machine. It plans little and passes records on to Python: what the optimizing
#: compiler takes, it would not win back in a day.
_COMPILE_QUICKLY = "-XX:TieredStopAtLevel=1"
#: For the executors' JVMs, which start after the session is configured.
_EXECUTOR_JVM_OPTIONS = " ".join(
    (
        _COMPILE_HUGE_METHODS,
        *(f"-D{key}={value}" for key, value in {"user.timezone": "UTC", **_AVRO_LIMITS}.items()),
    )
)
_EXECUTOR_OPTIONS_KEY = "spark.executor.extraJavaOptions"
#: Setting with which the driver's JVM must be started; it adds to the user's spark.driver.extraJavaOptions.
DRIVER_SETTING = ("spark.driver.defaultJavaOptions", _COMPILE_HUGE_METHODS)

#: With these variables tasks reach an object store, as the driver process does.
_STORE_VARIABLES = (
    *("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN", "AWS_REGION", "AWS_DEFAULT_REGION"),
    *("AWS_ENDPOINT_URL", "AWS_ALLOW_HTTP"),
)

_SETTINGS: Mapping[str, str] = {
    "spark.sql.extensions": "io.delta.sql.DeltaSparkSessionExtension",
    "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.delta.catalog.DeltaCatalog",
    "spark.sql.session.timeZone": "UTC",
    # Serializes the rows that a backfill from a topic stores; faster than Java's (Spark tuning guide).
    "spark.serializer": "org.apache.spark.serializer.KryoSerializer",
    # A task holds a file in memory as columns, which take ten times as much.
    "spark.databricks.delta.optimize.maxFileSize": str(32 * 2**20),
    # Reading the log of a small table takes 50 tasks by default.
    "spark.databricks.delta.snapshotPartitions": "2",
    # The default, INT96, counts nanoseconds: other readers cannot read a file with a time after the year
    # 2262.
    "spark.sql.parquet.outputTimestampType": "TIMESTAMP_MICROS",
    "spark.sql.sources.parallelPartitionDiscovery.threshold": "1000",
    # To name the Python line in an error of Spark, PySpark calls the JVM several more times for every column
    # function: a fifth of the time of a small batch, for a line that no user is shown.
    "spark.python.sql.dataFrameDebugging.enabled": "false",
    # A batch generates more classes than the 100 that the cache keeps by default.
    "spark.sql.codegen.cache.maxEntries": "1000",
    # Delta features that delta-rs can read, which the dashboards use.
    "spark.databricks.delta.properties.defaults.enableDeletionVectors": "false",
    "spark.databricks.delta.properties.defaults.checkpointPolicy": "classic",
    "spark.sql.streaming.stopTimeout": "10s",
    # Workers end when they have been idle for a minute, and imports take the processor for a second.
    "spark.python.daemon.module": "fleetgauge_pipelines.jobs.worker_daemon",
    # Arrow's allocator keeps what is free for a while: a worker would hold twice what a task needs.
    "spark.executorEnv.MIMALLOC_PURGE_DELAY": "0",
}

#: How often a task is tried on one machine: a Python worker may be killed where memory is short. Spark itself
#: tries four times on a cluster, and once on one machine.
_LOCAL_ATTEMPTS = 2

_LOCAL_SETTINGS: Mapping[str, str] = {
    # Micro-batches are small: adaptive planning between stages costs more time than it saves.
    "spark.sql.adaptive.enabled": "false",
    "spark.sql.shuffle.partitions": "2",
    # By TCP, a task and its Python worker wait 40 ms for each other.
    "spark.python.unix.domain.socket.enabled": "true",
    # Delta's vacuum lists files in this many tasks; the default is 10,000.
    "spark.sql.sources.parallelPartitionDiscovery.parallelism": "8",
    "spark.driver.host": "127.0.0.1",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.ui.enabled": "false",
    # Spark describes the plan of every query for its page, which is off; "formatted" takes longest.
    "spark.sql.ui.explainMode": "simple",
}


def is_submitted() -> bool:
    """Return whether spark-submit runs this process, whose JVM and class path then exist already."""
    return "PYSPARK_GATEWAY_PORT" in os.environ


def open_session(app: str, progress: Callable[[str], None], archive_to: Path | None = None) -> SparkSession:
    """Return a session with Delta, Kafka and Avro; spark-submit's master, memory and jars take precedence.

    With ``archive_to`` its JVM writes an archive of the classes that it has loaded there when it ends.

    Raises: SetupError when there is no usable Java or the jars are missing.
    """
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    conf = _start_driver(app, progress, archive_to)
    _prepare_driver(SparkContext._jvm)
    if (master := conf.get("spark.master", "")) == "local[*]":
        conf.set("spark.master", f"local[*,{_LOCAL_ATTEMPTS}]")
    for key, value in {**_SETTINGS, **(_LOCAL_SETTINGS if master.startswith("local") else {})}.items():
        conf.setIfMissing(key, value)
    conf.set(_EXECUTOR_OPTIONS_KEY, f"{conf.get(_EXECUTOR_OPTIONS_KEY, '')} {_EXECUTOR_JVM_OPTIONS}".strip())
    session = SparkSession.builder.config(conf=conf).getOrCreate()
    session.sparkContext.setLogLevel("ERROR")
    # Not by spark.executorEnv, which Spark shows on its pages.
    session.sparkContext.environment.update(
        {name: os.environ[name] for name in _STORE_VARIABLES if name in os.environ}
    )
    return session


def _start_driver(app: str, progress: Callable[[str], None], archive_to: Path | None) -> SparkConf:
    """Start the driver's JVM, unless spark-submit has, and return the settings that it was started with."""
    start_conf = SparkConf(loadDefaults=False)
    if not is_submitted():
        os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
        cache = default_cache_folder()
        java = find_java(cache, progress)
        os.environ["JAVA_HOME"] = str(java.home)
        jars = fetch_jars(SPARK_LOCK, cache, progress)
        start_conf.set("spark.jars", ",".join(str(jar) for jar in jars))
        key, value = DRIVER_SETTING
        classes = (
            list_writing_options(archive_to)
            if archive_to
            else list_reading_options(find_archive(cache, java))
        )
        start_conf.set(key, " ".join((value, _COMPILE_QUICKLY, *classes)))
        start_conf.set("spark.app.name", app).set("spark.ui.showConsoleProgress", "false")
    progress("starting Spark")
    with _redirect_stdout_to_stderr():
        SparkContext._ensure_initialized(conf=start_conf)
    return SparkConf()


def _prepare_driver(jvm: Any) -> None:
    # spark-submit may have started the JVM: set its time zone, and Avro's limits before Avro reads them.
    jvm.java.util.TimeZone.setDefault(jvm.java.util.TimeZone.getTimeZone("UTC"))
    for key, value in _AVRO_LIMITS.items():
        jvm.java.lang.System.setProperty(key, value)
    loader = jvm.java.lang.Thread.currentThread().getContextClassLoader()
    if loader.getResource("io/delta/sql/DeltaSparkSessionExtension.class") is None:
        raise JarError(
            "spark-submit was started without Delta: add the arguments that "
            "`python -m fleetgauge_pipelines.jobs.submit` prints"
        )


@contextmanager
def _redirect_stdout_to_stderr() -> Iterator[None]:
    # A JVM inherits its stdout; the command's own stdout is reserved for its result.
    stdout = os.dup(1)
    os.dup2(2, 1)
    try:
        yield
    finally:
        os.dup2(stdout, 1)
        os.close(stdout)
