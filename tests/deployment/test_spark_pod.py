"""A pod of Spark on Kubernetes becomes what this version of Spark expects there."""

import importlib.util
import re
import zipfile
from functools import cache
from pathlib import Path
from types import ModuleType

import pyspark
import pytest

from tests.deployment.manifests import INFRA

JARS = Path(pyspark.__file__).parent / "jars"
SAID = {
    "SPARK_HOME": "/spark",
    "SPARK_DRIVER_BIND_ADDRESS": "10.0.0.7",
    "SPARK_CONF_DIR": "/opt/spark/conf",
    "SPARK_CLASSPATH": "/opt/fleetgauge/jars/*",
    "SPARK_DRIVER_URL": "spark://driver:7078",
    "SPARK_EXECUTOR_ID": "1",
    "SPARK_EXECUTOR_CORES": "1",
    "SPARK_EXECUTOR_MEMORY": "1g",
    "SPARK_APPLICATION_ID": "spark-1",
    "SPARK_EXECUTOR_POD_IP": "10.0.0.8",
    "SPARK_EXECUTOR_POD_NAME": "executor-1",
    "SPARK_RESOURCE_PROFILE_ID": "0",
}


@pytest.fixture(scope="module")
def spark_pod() -> ModuleType:
    spec = importlib.util.spec_from_file_location("spark_pod", INFRA / "docker/spark_pod.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@cache
def strings(name: str) -> bytes:
    """A class of Spark's for Kubernetes, in which its constants stand as they are."""
    (jar,) = JARS.glob("spark-kubernetes_*.jar")
    with zipfile.ZipFile(jar) as archive:
        return archive.read(f"org/apache/spark/{name}.class")


def test_a_driver_is_a_submission_in_client_mode_on_the_pods_address(spark_pod: ModuleType) -> None:
    arguments = ["--properties-file", "/opt/spark/conf/spark.properties", "local:///opt/fleetgauge/main.py"]
    became = spark_pod.command(["driver", *arguments], SAID)
    assert became[0] == "/spark/bin/spark-submit"
    assert became[1:5] == ["--conf", "spark.driver.bindAddress=10.0.0.7", "--deploy-mode", "client"]
    assert became[5:] == arguments


def test_an_executor_speaks_with_options_that_spark_knows(spark_pod: ModuleType) -> None:
    became = spark_pod.command(["executor"], SAID)
    backend = became[became.index("-cp") + 2]
    usage = strings(backend.removeprefix("org.apache.spark.").replace(".", "/") + "$")
    options = became[became.index(backend) + 1 :: 2]
    assert len(options) == 7
    assert [option for option in options if f"{option} <".encode() not in usage] == []


def test_what_is_read_from_the_environment_is_what_spark_says_there(spark_pod: ModuleType) -> None:
    read = set(re.findall(r'"(SPARK_\w+)"', (INFRA / "docker/spark_pod.py").read_text()))
    read |= set(re.findall(r"'(SPARK_\w+)'", (INFRA / "docker/spark_pod.py").read_text()))
    ours = {"SPARK_HOME"}
    assert read - ours == set(SAID) - ours | {"SPARK_JAVA_OPT_"}
    constants = strings("deploy/k8s/Constants$")
    assert [name for name in read - ours if name.encode() not in constants] == []


def test_an_executors_java_options_come_in_their_order(spark_pod: ModuleType) -> None:
    options = {f"SPARK_JAVA_OPT_{number}": f"-Dn={number}" for number in range(12)}
    became = spark_pod.command(["executor"], SAID | options)
    assert became[1:13] == [f"-Dn={number}" for number in range(12)]
    assert became[13:15] == ["-Xms1g", "-Xmx1g"]
    assert became[16] == "/opt/spark/conf:/opt/fleetgauge/jars/*:/spark/jars/*"


def test_another_role_is_refused(spark_pod: ModuleType) -> None:
    with pytest.raises(ValueError, match="'driver' or 'executor'"):
        spark_pod.command(["fleetgauge", "stream"], SAID)
