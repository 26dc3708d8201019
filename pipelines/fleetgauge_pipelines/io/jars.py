"""Fetch the jars that a lock pins, and verify their sha256 before a JVM loads them.

Code that starts a JVM calls ``fetch_jars``. ``python -m fleetgauge_pipelines.io.jars fetch`` does the same
ahead of time, for an image or for spark-submit, and ``... lock SPEC LOCK`` resolves a spec and writes its
lock.
"""

import errno
import hashlib
import logging
import os
import shutil
import tempfile
import tomllib
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import click

from fleetgauge_core.runtime.cli import Group
from fleetgauge_core.runtime.options import PathParam
from fleetgauge_pipelines.io.cache import default_cache_folder, describe_cache_error, lock_folder
from fleetgauge_pipelines.io.errors import JarError

if TYPE_CHECKING:
    from jgo.maven import MavenContext

#: Environment variable with the URL of a Maven repository to use instead of Maven Central and jgo's settings.
REPOSITORY_VARIABLE = "FLEETGAUGE_MAVEN_REPOSITORY"

SPARK_LOCK = Path(__file__).with_name("spark-jars.lock.toml")

_PARALLEL_DOWNLOADS = 4
_ATTEMPTS = 2
_PARTIAL = ".partial-"
#: Errors of the local disk, for which trying the download again does not help.
_DISK_ERRORS = (errno.ENOSPC, errno.EDQUOT, errno.EROFS, errno.EACCES)

Fetch = Callable[["Jar", Path], Path]


@dataclass(frozen=True, order=True)
class Jar:
    """A Java archive that a lock pins; jars sort by their fields, which fixes the class path's order."""

    group: str
    artifact: str
    version: str
    classifier: str
    sha256: str

    @property
    def path(self) -> Path:
        """Return its path below the cache's jar folder."""
        suffix = f"-{self.classifier}" if self.classifier else ""
        name = f"{self.artifact}-{self.version}{suffix}.jar"
        return Path(*self.group.split("."), self.artifact, self.version, name)

    def __str__(self) -> str:
        return f"{self.group}:{self.artifact}:{self.version}"


def read_lock(lock: Path) -> tuple[Jar, ...]:
    """Read the jars of a lock file, sorted.

    Raises: JarError when the file is no lock, or a jar in it has no checksum.
    """
    try:
        document = tomllib.loads(lock.read_text(encoding="utf-8"))
        return tuple(sorted(_jar(entry) for entry in document["dependencies"]))
    except (OSError, ValueError, KeyError) as error:
        raise JarError(
            f"{lock}: not a jar lock ({error!r}): write it again from its spec, "
            "with `python -m fleetgauge_pipelines.io.jars lock`"
        ) from error


def _jar(entry: dict[str, str]) -> Jar:
    return Jar(
        group=entry["groupId"],
        artifact=entry["artifactId"],
        version=entry["version"],
        classifier=entry.get("classifier", ""),
        sha256=entry["sha256"],
    )


def fetch_jars(lock: Path, cache: Path, progress: Callable[[str], None]) -> tuple[Path, ...]:
    """Return the verified jars of a lock below ``cache``, in a fixed order, after downloading missing ones.

    Raises: JarError when a jar cannot be fetched, has another checksum, or cannot be stored.
    """
    jars = read_lock(lock)
    root = cache / "jars"
    try:
        if _find_missing(jars, root):
            with lock_folder(root, progress):
                # Another process may have fetched them while this one waited.
                _fetch_all(_find_missing(jars, root), root, progress)
    except OSError as error:
        raise JarError(describe_cache_error(root, error)) from error
    return tuple(root / jar.path for jar in jars)


def count_missing_jars(lock: Path, cache: Path) -> tuple[int, int]:
    """Return how many of a lock's jars are missing from the cache or damaged, and how many the lock has.

    Raises: JarError when the cache cannot be read.
    """
    jars, root = read_lock(lock), cache / "jars"
    try:
        return len(_find_missing(jars, root)), len(jars)
    except OSError as error:
        raise JarError(describe_cache_error(root, error)) from error


def _find_missing(jars: tuple[Jar, ...], root: Path) -> tuple[Jar, ...]:
    return tuple(jar for jar in jars if not _is_intact(jar, root / jar.path))


def _is_intact(jar: Jar, path: Path) -> bool:
    try:
        with path.open("rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest() == jar.sha256
    except FileNotFoundError:
        return False


def _fetch_all(jars: tuple[Jar, ...], root: Path, progress: Callable[[str], None]) -> None:
    if not jars:
        return
    for abandoned in root.glob(f"{_PARTIAL}*"):
        shutil.rmtree(abandoned)
    with (
        tempfile.TemporaryDirectory(dir=root, prefix=_PARTIAL) as partial,
        ThreadPoolExecutor(_PARALLEL_DOWNLOADS) as pool,
    ):
        fetch = _from_maven()
        futures = [pool.submit(_fetch_one, jar, root, Path(partial), fetch) for jar in jars]
        try:
            for done, future in enumerate(as_completed(futures), start=1):
                future.result()
                progress(f"fetched {done} of {len(jars)} jars")
        except BaseException:
            pool.shutdown(wait=False, cancel_futures=True)
            raise


def _fetch_one(jar: Jar, root: Path, partial: Path, fetch: Fetch) -> None:
    """Download to ``partial`` and move the file to its final path only if it has the locked checksum."""
    final = root / jar.path
    final.unlink(missing_ok=True)
    reason = ""
    for _ in range(_ATTEMPTS):
        try:
            path = fetch(jar, partial)
        except (OSError, RuntimeError) as error:
            if isinstance(error, OSError) and error.errno in _DISK_ERRORS:
                raise
            reason = f"download failed ({type(error).__name__})"
            (partial / jar.path).unlink(missing_ok=True)
            continue
        if _is_intact(jar, path):
            final.parent.mkdir(parents=True, exist_ok=True)
            path.replace(final)
            return
        reason = "the downloaded file has another sha256 than the lock"
        path.unlink()
    raise JarError(
        f"{jar}: {reason}: check the network or set another repository in {REPOSITORY_VARIABLE}, then retry"
    )


def _from_maven() -> Fetch:
    open_repository = _maven_contexts()

    def fetch(jar: Jar, into: Path) -> Path:
        component = open_repository(into).project(jar.group, jar.artifact).at_version(jar.version)
        return Path(component.artifact(jar.classifier, "jar").resolve())

    return fetch


def _maven_contexts() -> Callable[[Path], "MavenContext"]:
    # Imported here because importing jgo takes half a second, which is not needed when the cache is complete.
    from jgo.maven import MavenContext

    # jgo warns about the repository's own checksums, but only those of the lock count.
    logging.getLogger("jgo").setLevel(logging.ERROR)
    remote = list_repositories()
    return lambda into: MavenContext(repo_cache=into, remote_repos=remote)


def list_repositories() -> dict[str, str]:
    """Return the URLs of the Maven repositories in use, by name.

    It is the one that REPOSITORY_VARIABLE names, or else Maven Central and those of jgo's settings.
    """
    from jgo.config import GlobalSettings
    from jgo.maven import MavenContext

    named = os.environ.get(REPOSITORY_VARIABLE)
    if named:
        return {REPOSITORY_VARIABLE: named}
    return MavenContext().remote_repos | GlobalSettings.load().repositories


def write_lock(spec: Path, lock: Path) -> int:
    """Resolve a spec, write its lock, and return how many jars it pins."""
    from jgo.env import EnvironmentBuilder, EnvironmentSpec, LockFile, compute_spec_hash

    with tempfile.TemporaryDirectory() as scratch:
        context = _maven_contexts()(Path(scratch, "repository"))
        environment = EnvironmentSpec.load(spec)
        builder = EnvironmentBuilder(context, cache_dir=Path(scratch, "environments"))
        direct, transitive = context.resolver.resolve(builder.spec_to_dependencies(environment))
        needed = [*direct, *(jar for jar in transitive if jar.scope in ("compile", "runtime"))]
        document = LockFile.from_resolved_dependencies(
            needed, environment_name=environment.name, spec_hash=compute_spec_hash(spec)
        )
        document.dependencies.sort(key=lambda jar: (jar.groupId, jar.artifactId, jar.version))
        document.save(lock)
    return len(needed)


@click.group(cls=Group)
def main() -> None:
    """Write jar locks, and fetch the jars that they pin."""


@main.command("fetch")
@click.argument("lock", type=PathParam(dir_okay=False), default=SPARK_LOCK)
def fetch_command(lock: Path) -> None:
    """Fetch the jars of LOCK (default: Spark's) into the cache and print one path per line."""
    for path in fetch_jars(lock, default_cache_folder(), lambda text: click.echo(text, err=True)):
        click.echo(path)


@main.command("lock")
@click.argument("spec", type=PathParam(exists=True, dir_okay=False))
@click.argument("lock", type=PathParam(dir_okay=False))
def lock_command(spec: Path, lock: Path) -> None:
    """Resolve SPEC and write LOCK."""
    click.echo(f"{lock}: {write_lock(spec, lock)} jars", err=True)


if __name__ == "__main__":
    main()
