"""One Spark session for the whole suite."""

from collections.abc import Iterator

import pytest
from pyspark.sql import SparkSession

from fleetgauge_pipelines.io.session import open_session


@pytest.fixture(scope="session")
def spark() -> Iterator[SparkSession]:
    session = open_session("fleetgauge-tests", print)
    yield session
    session.stop()
