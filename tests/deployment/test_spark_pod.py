"""The entry point of a Spark pod runs the command that this version of Spark expects on Kubernetes."""

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
ENVIRONMENT = {
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
def read_class(name: str) -> bytes:
    """Return a compiled class of Spark for Kubernetes, which contains its string constants."""
    (jar,) = JARS.glob("spark-kubernetes_*.jar")
    with zipfile.ZipFile(jar) as archive:
        return archive.read(f"org/apache/spark/{name}.class")


def test_a_driver_is_submitted_in_client_mode_on_the_address_of_the_pod(spark_pod: ModuleType) -> None:
    arguments = ["--properties-file", "/opt/spark/conf/spark.properties", "local:///opt/fleetgauge/main.py"]
    command = spark_pod.command(["driver", *arguments], ENVIRONMENT)
    assert command[0] == "/spark/bin/spark-submit"
    assert command[1:5] == ["--conf", "spark.driver.bindAddress=10.0.0.7", "--deploy-mode", "client"]
    assert command[5:] == arguments


def test_an_executor_has_only_options_that_spark_knows(spark_pod: ModuleType) -> None:
    command = spark_pod.command(["executor"], ENVIRONMENT)
    backend = command[command.index("-cp") + 2]
    usage = read_class(backend.removeprefix("org.apache.spark.").replace(".", "/") + "$")
    options = command[command.index(backend) + 1 :: 2]
    assert len(options) == 7
    assert [option for option in options if f"{option} <".encode() not in usage] == []


def test_the_environment_variables_are_those_that_spark_sets(spark_pod: ModuleType) -> None:
    read = set(re.findall(r'"(SPARK_\w+)"', (INFRA / "docker/spark_pod.py").read_text()))
    read |= set(re.findall(r"'(SPARK_\w+)'", (INFRA / "docker/spark_pod.py").read_text()))
    set_by_image = {"SPARK_HOME"}
    assert read - set_by_image == set(ENVIRONMENT) - set_by_image | {"SPARK_JAVA_OPT_"}
    constants = read_class("deploy/k8s/Constants$")
    assert [name for name in read - set_by_image if name.encode() not in constants] == []


def test_the_java_options_of_an_executor_keep_their_order(spark_pod: ModuleType) -> None:
    options = {f"SPARK_JAVA_OPT_{number}": f"-Dn={number}" for number in range(12)}
    command = spark_pod.command(["executor"], ENVIRONMENT | options)
    assert command[1:13] == [f"-Dn={number}" for number in range(12)]
    assert command[13:15] == ["-Xms1g", "-Xmx1g"]
    assert command[16] == "/opt/spark/conf:/opt/fleetgauge/jars/*:/spark/jars/*"


def test_an_unknown_role_is_an_error(spark_pod: ModuleType) -> None:
    with pytest.raises(ValueError, match="'driver' or 'executor'"):
        spark_pod.command(["fleetgauge", "stream"], ENVIRONMENT)
