"""The images: linted, without root, and with only the packages that their process needs."""

import re
import subprocess
import sys
import tomllib
from collections.abc import Sequence
from pathlib import Path

import pytest

from tests.deployment.images import DOCKERFILE, LOCKS, read_stages
from tests.deployment.manifests import ROOT

#: The extras of the distribution that each image contains.
EXTRAS = {
    "agent": (),
    "watch": ("operations", "corrections"),
    "stream": ("pipelines",),
    "dash": ("dashboards",),
}
#: Large packages of other images, which must not be included by accident.
FOREIGN = {
    "agent": {"pyspark", "pyarrow", "dash"},
    "watch": {"pyspark", "dash"},
    "stream": {"dash"},
    "dash": {"pyspark", "delta-spark"},
}

PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]


def read_lock_file(name: str) -> dict[str, str]:
    """Return the pin (version and hashes) of each package in a lock."""
    text = (ROOT / f"locks/{name}.txt").read_text().replace("\\\n", "")
    lines = [line for line in text.splitlines() if line and not line.lstrip().startswith("#")]
    return {line.partition("==")[0]: " ".join(line.split()) for line in lines}


def parse_names(requirements: list[str]) -> set[str]:
    return {re.split(r"[\[~=<>]", requirement)[0] for requirement in requirements}


def test_the_dockerfile_is_linted() -> None:
    hadolint = Path(sys.executable).with_name("hadolint")
    result = subprocess.run([hadolint, DOCKERFILE], capture_output=True, text=True, timeout=60)
    assert result.returncode == 0, result.stdout


@pytest.mark.parametrize("target", LOCKS)
def test_an_image_runs_as_a_numeric_user_other_than_root(target: str) -> None:
    user, group = read_stages()[target].instructions["USER"].split(":")
    assert int(user) > 0
    assert int(group) > 0


@pytest.mark.parametrize("target", LOCKS)
def test_an_image_starts_without_a_shell(target: str) -> None:
    assert read_stages()[target].parse_arguments("ENTRYPOINT")
    assert isinstance(read_stages()[target].parse_arguments("CMD"), list)


@pytest.mark.parametrize("target", ["agent", "watch", "stream", "dash"])
def test_an_image_gets_the_environment_of_its_own_lock(target: str) -> None:
    assert f"--from={target}-environment /opt/fleetgauge /opt/fleetgauge" in read_stages()[target].copies
    text = DOCKERFILE.read_text()
    section = text[text.index(f"AS {target}-environment") :].split("FROM")[0]
    assert f"--require-hashes -r locks/{target}.txt" in section


@pytest.mark.parametrize("name", [*EXTRAS, "build"])
def test_a_lock_of_an_image_has_the_pins_of_the_full_lock(name: str) -> None:
    full = read_lock_file("python")
    own = read_lock_file(name)
    assert own
    differing = [package for package, pin in own.items() if full.get(package) != pin]
    assert differing == [], "run 'make lock-images'"


@pytest.mark.parametrize(("name", "extras"), EXTRAS.items())
def test_a_lock_of_an_image_has_all_packages_of_its_extras_and_no_foreign_ones(
    name: str, extras: Sequence[str]
) -> None:
    required = parse_names(PROJECT["dependencies"])
    for extra in extras:
        required |= parse_names(PROJECT["optional-dependencies"][extra])
    assert required <= set(read_lock_file(name)), "run 'make lock-images'"
    assert FOREIGN[name] & set(read_lock_file(name)) == set()


def test_the_locks_are_made_with_the_extras_of_the_images() -> None:
    (line,) = (
        line for line in (ROOT / "Makefile").read_text().splitlines() if line.startswith("IMAGE_EXTRAS")
    )
    made = dict(role.split(":") for role in line.partition(":=")[2].split())
    assert {name: tuple(filter(None, extras.split(","))) for name, extras in made.items()} == EXTRAS


def test_the_build_context_has_only_the_sources_of_the_wheel() -> None:
    lines = (ROOT / ".dockerignore").read_text().splitlines()
    assert lines[1] == "*"
    included = {line[1:] for line in lines if line.startswith("!")}
    tool = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]
    for package in tool["hatch"]["build"]["targets"]["wheel"]["packages"]:
        assert package in included or package.split("/")[0] in included
    assert {"pyproject.toml", "locks", PROJECT["readme"], *PROJECT["license-files"]} <= included
    assert not included & {"tests", "docs", ".git", ".venv"}
    assert all((ROOT / path).exists() for path in included)
