"""JVM options that must be set at start; without them jobs would only be slower."""

from typing import Any

from pyspark.sql import SparkSession


def test_the_drivers_jvm_compiles_huge_methods(spark: SparkSession) -> None:
    jvm: Any = spark._jvm
    started_with = jvm.java.lang.management.ManagementFactory.getRuntimeMXBean().getInputArguments()
    assert "-XX:-DontCompileHugeMethods" in list(started_with)
