"""One Spark session for all tests of a pytest worker."""

from collections.abc import Iterator

import pytest
from pyspark.sql import SparkSession

from fleetgauge_pipelines.io.session import open_session

#: The suite's lakes have few rows: to interpret a plan costs less than to generate code for it and compile
#: that. Its classes, plans and logs are many: in a heap that grows on demand they are collected all the time.
#: Higher thresholds of C2 (four times the defaults or more) save a third of its time in 24 batches.
#: The demo, chaos and benches run on Spark as users have it, and random fleets do where they are thorough.
_FOR_FEW_ROWS = (
    "--conf spark.sql.codegen.wholeStage=false --conf spark.sql.codegen.factoryMode=NO_CODEGEN "
    "--driver-memory 3g "
    "--driver-java-options '-XX:+UseSerialGC -XX:MetaspaceSize=1g -Xms3g -Xmn1g "
    "-XX:Tier4InvocationThreshold=20000 -XX:Tier4MinInvocationThreshold=4000 "
    "-XX:Tier4CompileThreshold=60000 -XX:Tier4BackEdgeThreshold=160000' pyspark-shell"
)


@pytest.fixture(scope="session")
def spark() -> Iterator[SparkSession]:
    with pytest.MonkeyPatch.context() as patched:
        patched.setenv("PYSPARK_SUBMIT_ARGS", _FOR_FEW_ROWS)
        session = open_session("fleetgauge-tests", print)
    yield session
    session.stop()


@pytest.fixture(scope="module", autouse=True)
def lakes_forgotten(spark: SparkSession) -> Iterator[None]:
    """Clear Delta's cache after a test: it keeps tables for an hour, and thousands would fill the heap."""
    yield
    spark._jvm.org.apache.spark.sql.delta.DeltaLog.clearCache()
