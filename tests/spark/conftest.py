"""One Spark session for all that a worker runs."""

from collections.abc import Iterator

import pytest
from pyspark.sql import SparkSession

from fleetgauge_pipelines.io.session import open_session


@pytest.fixture(scope="session")
def spark() -> Iterator[SparkSession]:
    session = open_session("fleetgauge-tests", print)
    yield session
    session.stop()


@pytest.fixture(scope="module", autouse=True)
def lakes_forgotten(spark: SparkSession) -> Iterator[None]:
    """Delta remembers every table for an hour; a suite makes thousands, and its heap has room for fewer."""
    yield
    spark._jvm.org.apache.spark.sql.delta.DeltaLog.clearCache()
