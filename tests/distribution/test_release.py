"""A release: the sdist builds the same wheel, and all dependencies may be redistributed."""

import json
import tarfile
import tempfile
import zipfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from cyclonedx.schema import SchemaVersion
from cyclonedx.validation.json import JsonStrictValidator

from fleetgauge_core import __version__
from tests.distribution.release import (
    Package,
    build,
    build_bill_of_materials,
    create_environment,
    find_forbidden_licences,
    list_packages,
)


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    return build(tmp_path_factory.mktemp("dist"))


@pytest.fixture(scope="module")
def whole(built: tuple[Path, Path]) -> Iterator[Path]:
    """The bin folder of an environment with the wheel and all its dependencies, without development tools."""
    # It is too large to be kept after a failure, as pytest keeps its own folders.
    with tempfile.TemporaryDirectory() as folder:
        yield create_environment(Path(folder, "venv"), built[0], "[all]")


def read_contents(wheel: Path) -> dict[str, bytes]:
    with zipfile.ZipFile(wheel) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


def test_the_sdist_builds_the_same_wheel(built: tuple[Path, Path], tmp_path: Path) -> None:
    wheel, sdist = built
    with tarfile.open(sdist) as archive:
        archive.extractall(tmp_path, filter="data")
    again, _ = build(tmp_path / "again", source=tmp_path / f"fleetgauge-{__version__}")
    assert read_contents(again) == read_contents(wheel)


def test_the_sdist_contains_the_deployment_and_no_local_files(built: tuple[Path, Path]) -> None:
    with tarfile.open(built[1]) as archive:
        names = {name.partition("/")[2] for name in archive.getnames()}
    assert {"infra/docker/Dockerfile", "infra/prometheus/rules.yml", "docs/operations.md", "LICENSE"} <= names
    assert [name for name in names if "__pycache__" in name or name.startswith((".venv", ".git/"))] == []


def test_every_dependency_may_be_redistributed(whole: Path) -> None:
    packages = list_packages(whole)
    assert {"pyspark", "dash", "confluent-kafka"} <= {package.name for package in packages}
    assert find_forbidden_licences(packages) == []


@pytest.mark.parametrize(
    ("licence", "allowed"),
    [
        ("MIT", True),
        ("GPL-3.0-only", False),
        ("UNKNOWN", False),
        ("GPL-2.0-only OR MIT", True),
        ("GPL-2.0-only AND MIT", False),
        ("MPL-2.0 AND MIT", True),
        ("Apache Software License; BSD License", True),
        ("Apache Software License; GNU General Public License (GPL)", False),
        ("MIT License\n\nCopyright (c) 2022 Somebody", True),
    ],
)
def test_a_licence_expression_is_allowed_if_its_licences_are(licence: str, allowed: bool) -> None:
    assert Package("example", "1.0", licence).allowed is allowed


def test_the_bill_of_materials_is_cyclonedx_and_names_packages_and_jars(whole: Path) -> None:
    document = build_bill_of_materials(whole)
    text = json.dumps(document)
    version = SchemaVersion.from_version(document["specVersion"])
    assert JsonStrictValidator(version).validate_str(text) is None
    assert document["metadata"]["component"]["version"] == __version__
    names = {component["name"] for component in document["components"]}
    assert {"pyspark", "dash", "delta-spark_4.1_2.13", "kafka_2.13"} <= names
    assert {"pytest", "mypy", "hatchling"} & names == set()
    assert str(whole.parents[1]) not in text
