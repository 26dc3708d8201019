"""What a JVM has to be started with: it cannot be told later, and its lack only shows as slowness."""

from typing import Any

from pyspark.sql import SparkSession


def test_the_drivers_jvm_compiles_long_methods(spark: SparkSession) -> None:
    jvm: Any = spark._jvm
    started_with = jvm.java.lang.management.ManagementFactory.getRuntimeMXBean().getInputArguments()
    assert "-XX:-DontCompileHugeMethods" in list(started_with)
