"""The images: linted, nobody's, and with no more in them than their process needs."""

import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from tests.deployment.images import DOCKERFILE, LOCKS, stages
from tests.deployment.manifests import ROOT

#: What each image's process is made of: an extra of the distribution.
EXTRAS = {"agent": None, "watch": "operations", "stream": "pipelines", "dash": "dashboards"}
#: What makes another image large, and must not come along by accident.
FOREIGN = {
    "agent": {"pyspark", "pyarrow", "dash"},
    "watch": {"pyspark", "pyarrow", "dash"},
    "stream": {"dash"},
    "dash": {"pyspark", "delta-spark"},
}

PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]


def locked(name: str) -> dict[str, str]:
    """Package to its pin, version and hashes, in one of the locks."""
    text = (ROOT / f"locks/{name}.txt").read_text().replace("\\\n", "")
    lines = [line for line in text.splitlines() if line and not line.lstrip().startswith("#")]
    return {line.partition("==")[0]: " ".join(line.split()) for line in lines}


def names(requirements: list[str]) -> set[str]:
    return {re.split(r"[\[~=<>]", requirement)[0] for requirement in requirements}


def test_the_dockerfile_is_linted() -> None:
    hadolint = Path(sys.executable).with_name("hadolint")
    done = subprocess.run([hadolint, DOCKERFILE], capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stdout


@pytest.mark.parametrize("target", LOCKS)
def test_an_image_ends_as_a_numeric_user_other_than_root(target: str) -> None:
    user, group = stages()[target].said["USER"].split(":")
    assert int(user) > 0
    assert int(group) > 0


@pytest.mark.parametrize("target", LOCKS)
def test_an_image_is_entered_without_a_shell(target: str) -> None:
    assert stages()[target].words("ENTRYPOINT")
    assert isinstance(stages()[target].words("CMD"), list)


@pytest.mark.parametrize("target", ["agent", "watch", "stream", "dash"])
def test_an_image_gets_the_environment_of_its_own_lock(target: str) -> None:
    assert f"--from={target}-environment /opt/fleetgauge /opt/fleetgauge" in stages()[target].copies
    text = DOCKERFILE.read_text()
    section = text[text.index(f"AS {target}-environment") :].split("FROM")[0]
    assert f"--require-hashes -r locks/{target}.txt" in section


@pytest.mark.parametrize("name", [*EXTRAS, "build"])
def test_a_lock_of_an_image_says_what_the_one_lock_says(name: str) -> None:
    everything = locked("python")
    own = locked(name)
    assert own
    differing = [package for package, pin in own.items() if everything.get(package) != pin]
    assert differing == [], "run 'make lock-images'"


@pytest.mark.parametrize(("name", "extra"), EXTRAS.items())
def test_a_lock_of_an_image_has_all_that_its_extra_asks_for_and_nothing_foreign(
    name: str, extra: str | None
) -> None:
    wanted = names(PROJECT["dependencies"])
    if extra is not None:
        wanted |= names(PROJECT["optional-dependencies"][extra])
    assert wanted <= set(locked(name)), "run 'make lock-images'"
    assert FOREIGN[name] & set(locked(name)) == set()


def test_the_build_sees_all_that_the_wheel_is_made_of_and_nothing_else_of_the_tree() -> None:
    lines = (ROOT / ".dockerignore").read_text().splitlines()
    assert lines[1] == "*"
    seen = {line[1:] for line in lines if line.startswith("!")}
    tool = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]
    for package in tool["hatch"]["build"]["targets"]["wheel"]["packages"]:
        assert package in seen or package.split("/")[0] in seen
    assert {"pyproject.toml", "locks", PROJECT["readme"], *PROJECT["license-files"]} <= seen
    assert not seen & {"tests", "docs", ".git", ".venv"}
    assert all((ROOT / path).exists() for path in seen)
