"""The entry point of a Spark pod on Kubernetes.

Spark asks for `driver ARGUMENTS` or `executor` and says the rest in the environment:
org.apache.spark.deploy.k8s, features BasicDriverFeatureStep and BasicExecutorFeatureStep.
"""

import os
import sys
from collections.abc import Mapping, Sequence

_JAVA_OPTION = "SPARK_JAVA_OPT_"
_EXECUTOR = "org.apache.spark.scheduler.cluster.k8s.KubernetesExecutorBackend"


def command(arguments: Sequence[str], env: Mapping[str, str]) -> list[str]:
    """Return the command that the process becomes. Raises ValueError for a role that Spark does not know."""
    match arguments:
        case ["driver", *rest]:
            return _driver(rest, env)
        case ["executor", *_]:
            return _executor(env)
        case _:
            raise ValueError(f"expected 'driver' or 'executor', found {' '.join(arguments)!r}")


def _driver(arguments: Sequence[str], env: Mapping[str, str]) -> list[str]:
    address = f"spark.driver.bindAddress={env['SPARK_DRIVER_BIND_ADDRESS']}"
    submit = f"{env['SPARK_HOME']}/bin/spark-submit"
    return [submit, "--conf", address, "--deploy-mode", "client", *arguments]


def _executor(env: Mapping[str, str]) -> list[str]:
    numbers = sorted(int(name.removeprefix(_JAVA_OPTION)) for name in env if name.startswith(_JAVA_OPTION))
    classes = [env.get("SPARK_CONF_DIR"), env.get("SPARK_CLASSPATH"), f"{env['SPARK_HOME']}/jars/*"]
    variables = {
        "--driver-url": "SPARK_DRIVER_URL",
        "--executor-id": "SPARK_EXECUTOR_ID",
        "--cores": "SPARK_EXECUTOR_CORES",
        "--app-id": "SPARK_APPLICATION_ID",
        "--hostname": "SPARK_EXECUTOR_POD_IP",
        "--resourceProfileId": "SPARK_RESOURCE_PROFILE_ID",
        "--podName": "SPARK_EXECUTOR_POD_NAME",
    }
    return [
        "java",
        *(env[f"{_JAVA_OPTION}{number}"] for number in numbers),
        f"-Xms{env['SPARK_EXECUTOR_MEMORY']}",
        f"-Xmx{env['SPARK_EXECUTOR_MEMORY']}",
        "-cp",
        ":".join(place for place in classes if place),
        _EXECUTOR,
        *(part for option, name in variables.items() for part in (option, env[name])),
    ]


if __name__ == "__main__":
    wanted = command(sys.argv[1:], os.environ)
    os.execvp(wanted[0], wanted)
