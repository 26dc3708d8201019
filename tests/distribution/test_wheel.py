"""The built wheel in an environment without extras, which has only the agent's dependencies."""

import json
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from tests.distribution.release import build, create_environment, run


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build(tmp_path_factory.mktemp("wheel"))[0]


@pytest.fixture(scope="module")
def clean(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The bin folder of an environment with the wheel and no extra."""
    return create_environment(tmp_path_factory.mktemp("clean") / "venv", wheel)


def test_the_wheel_contains_schemas_locks_and_assets(wheel: Path) -> None:
    names = set(zipfile.ZipFile(wheel).namelist())
    assert {
        "fleetgauge_core/contract/probe_minute_v1.avsc",
        "fleetgauge_pipelines/io/spark-jars.lock.toml",
        "fleetgauge_pipelines/quality/suites/gold.json",
        "fleetgauge_local/kafka-jars.lock.toml",
        "fleetgauge_local/exporter-jars.lock.toml",
        "fleetgauge_local/mirror-jars.lock.toml",
        "fleetgauge_local/broker-log4j2.properties",
        "fleetgauge_local/mirror-log4j2.properties",
        "fleetgauge_local/jmx-exporter.yml",
    } <= names
    assert not [name for name in names if name.startswith("tests/")]


def test_the_commands_of_the_agent_run_without_extras(clean: Path) -> None:
    output = run(clean / "fleetgauge", "--help", cwd=clean)
    assert "probe " in output
    assert "validate " in output
    assert "properties" in json.loads(run(clean / "fleetgauge", "validate", "--schema", cwd=clean))
    assert "Probe every broker of the fleet" in run(clean / "fleetgauge", "probe", "--help", cwd=clean)


def test_a_command_whose_extra_is_missing_names_the_command_to_install_it(clean: Path) -> None:
    result = subprocess.run(
        [clean / "fleetgauge", "dash"], cwd=clean, capture_output=True, text=True, timeout=60
    )
    assert result.returncode == 2
    assert "pip install" in result.stderr
    assert "Traceback" not in result.stderr


def test_all_packages_can_be_imported_without_spark() -> None:
    blocked = "import sys; sys.modules['pyspark'] = None; sys.modules['delta'] = None; "
    packages = "import fleetgauge_probes, fleetgauge_operations, fleetgauge_dashboards"
    modules = (
        "fleetgauge_probes.cli, fleetgauge_operations.watch.cli, "
        "fleetgauge_dashboards.cli, fleetgauge_local.demo_cli, fleetgauge_pipelines.jobs.cli, "
        "fleetgauge_pipelines.jobs.lake_cli"
    )
    run(sys.executable, "-c", f"{blocked}{packages}; import {modules}")
