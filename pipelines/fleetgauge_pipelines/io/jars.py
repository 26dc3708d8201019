"""Java archives that a lock pins, fetched once and checked by sha256 before any JVM loads them.

``ensure`` serves whoever starts a JVM; ``python -m fleetgauge_pipelines.io.jars fetch`` does the same
ahead of time, for an image or for spark-submit, and ``... lock SPEC LOCK`` resolves a spec again and
writes its lock.
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

from fleetgauge_core.runtime.cli import InputError
from fleetgauge_pipelines.io.cache import default_cache, one_at_a_time
from fleetgauge_pipelines.io.errors import JarError

if TYPE_CHECKING:
    from jgo.maven import MavenContext

#: Names a repository to ask instead of Maven Central and of what jgo's own settings add.
REPOSITORY_VARIABLE = "FLEETGAUGE_MAVEN_REPOSITORY"

SPARK_LOCK = Path(__file__).with_name("spark-jars.lock.toml")

_DOWNLOADS_AT_ONCE = 4
_ATTEMPTS = 2
_PARTIAL = ".partial-"
#: What a repository is not to blame for.
_DISK = (errno.ENOSPC, errno.EDQUOT, errno.EROFS, errno.EACCES)

Fetch = Callable[["Jar", Path], Path]


@dataclass(frozen=True, order=True)
class Jar:
    """One archive of a lock; the order of its fields is the order of the class path."""

    group: str
    artifact: str
    version: str
    classifier: str
    sha256: str

    @property
    def path(self) -> Path:
        """Where it lies below the cache's jar folder."""
        suffix = f"-{self.classifier}" if self.classifier else ""
        name = f"{self.artifact}-{self.version}{suffix}.jar"
        return Path(*self.group.split("."), self.artifact, self.version, name)

    def __str__(self) -> str:
        return f"{self.group}:{self.artifact}:{self.version}"


def read_lock(lock: Path) -> tuple[Jar, ...]:
    """The jars of a lock, sorted. A jar without a checksum makes the lock unusable."""
    try:
        document = tomllib.loads(lock.read_text(encoding="utf-8"))
        return tuple(sorted(_jar(entry) for entry in document["dependencies"]))
    except (OSError, ValueError, KeyError) as error:
        raise JarError(f"{lock}: not a jar lock ({error!r}): make it again from its spec") from error


def _jar(entry: dict[str, str]) -> Jar:
    return Jar(
        group=entry["groupId"],
        artifact=entry["artifactId"],
        version=entry["version"],
        classifier=entry.get("classifier", ""),
        sha256=entry["sha256"],
    )


def ensure(lock: Path, cache: Path, progress: Callable[[str], None]) -> tuple[Path, ...]:
    """The lock's jars below ``cache``, every one checked, in an order that never changes."""
    jars = read_lock(lock)
    root = cache / "jars"
    if _wrong(jars, root):
        try:
            with one_at_a_time(root, progress):
                # Another process may have fetched them while this one waited.
                _fetch_all(_wrong(jars, root), root, progress)
        except OSError as error:
            raise JarError(f"{root}: {error.strerror or error}: free space or set XDG_CACHE_HOME") from error
    return tuple(root / jar.path for jar in jars)


def missing(lock: Path, cache: Path) -> tuple[int, int]:
    """How many of the lock's jars are not in the cache as they should be, and how many it has."""
    jars = read_lock(lock)
    return len(_wrong(jars, cache / "jars")), len(jars)


def _wrong(jars: tuple[Jar, ...], root: Path) -> tuple[Jar, ...]:
    return tuple(jar for jar in jars if not _intact(jar, root / jar.path))


def _intact(jar: Jar, path: Path) -> bool:
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
        ThreadPoolExecutor(_DOWNLOADS_AT_ONCE) as pool,
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
    """Download beside the final place and move there only what has the locked checksum."""
    final = root / jar.path
    final.unlink(missing_ok=True)
    reason = ""
    for _ in range(_ATTEMPTS):
        try:
            path = fetch(jar, partial)
        except (OSError, RuntimeError) as error:
            if isinstance(error, OSError) and error.errno in _DISK:
                raise
            reason = f"not fetched ({type(error).__name__})"
            (partial / jar.path).unlink(missing_ok=True)
            continue
        if _intact(jar, path):
            final.parent.mkdir(parents=True, exist_ok=True)
            path.replace(final)
            return
        reason = "what came has another sha256 than the lock"
        path.unlink()
    raise JarError(
        f"{jar}: {reason}: check the network or name another repository in {REPOSITORY_VARIABLE}; then repeat"
    )


def _from_maven() -> Fetch:
    maven = _maven()

    def fetch(jar: Jar, into: Path) -> Path:
        component = maven(into).project(jar.group, jar.artifact).at_version(jar.version)
        return Path(component.artifact(jar.classifier, "jar").resolve())

    return fetch


def _maven() -> Callable[[Path], "MavenContext"]:
    # Imported here because jgo costs half a second that a warm cache need not pay.
    from jgo.maven import MavenContext

    # What a repository says of its own checksums is no news: the lock's decide.
    logging.getLogger("jgo").setLevel(logging.ERROR)
    remote = repositories()
    return lambda into: MavenContext(repo_cache=into, remote_repos=remote)


def repositories() -> dict[str, str]:
    """Name to URL of those that are asked: the variable's alone, or jgo's default and its settings'."""
    from jgo.config import GlobalSettings
    from jgo.maven import MavenContext

    named = os.environ.get(REPOSITORY_VARIABLE)
    if named:
        return {REPOSITORY_VARIABLE: named}
    return MavenContext().remote_repos | GlobalSettings.load().repositories


def write_lock(spec: Path, lock: Path) -> int:
    """Resolve a spec afresh, write its lock and say how many jars it pins."""
    from jgo.env import EnvironmentBuilder, EnvironmentSpec, LockFile, compute_spec_hash

    with tempfile.TemporaryDirectory() as scratch:
        context = _maven()(Path(scratch, "repository"))
        wanted = EnvironmentSpec.load(spec)
        builder = EnvironmentBuilder(context, cache_dir=Path(scratch, "environments"))
        named, brought = context.resolver.resolve(builder.spec_to_dependencies(wanted))
        needed = [*named, *(jar for jar in brought if jar.scope in ("compile", "runtime"))]
        made = LockFile.from_resolved_dependencies(
            needed, environment_name=wanted.name, spec_hash=compute_spec_hash(spec)
        )
        made.dependencies.sort(key=lambda jar: (jar.groupId, jar.artifactId, jar.version))
        made.save(lock)
    return len(needed)


@click.group()
def main() -> None:
    """Keep the jar locks, and what they pin."""


@main.command("fetch")
@click.argument("lock", type=click.Path(dir_okay=False, path_type=Path), default=SPARK_LOCK)
def fetch_command(lock: Path) -> None:
    """Put the jars of LOCK (default: Spark's) into the cache; one path a line on stdout."""
    try:
        for path in ensure(lock, default_cache(), lambda text: click.echo(text, err=True)):
            click.echo(path)
    except JarError as error:
        raise InputError(str(error)) from error


@main.command("lock")
@click.argument("spec", type=click.Path(exists=True, dir_okay=False, path_type=Path))
@click.argument("lock", type=click.Path(dir_okay=False, path_type=Path))
def lock_command(spec: Path, lock: Path) -> None:
    """Resolve SPEC and write LOCK."""
    click.echo(f"{lock}: {write_lock(spec, lock)} jars", err=True)


if __name__ == "__main__":
    main()
