import errno
import hashlib
import os
from pathlib import Path

import pytest
from click.testing import CliRunner
from jgo.env import LockFile, compute_spec_hash

from fleetgauge_local.distribution import KAFKA_LOCK
from fleetgauge_local.mirror_maker import MIRROR_LOCK
from fleetgauge_pipelines.io import jars
from fleetgauge_pipelines.io.errors import JarError
from fleetgauge_pipelines.io.jars import SPARK_LOCK, Jar, fetch_jars, read_lock
from tests.kafka.older_kafka import OLDER_KAFKA_LOCK

CONTENT = b"a jar"
JAR = Jar("org.example", "library", "1.0", "", hashlib.sha256(CONTENT).hexdigest())


def quiet(_: str) -> None:
    pass


@pytest.fixture
def lock(tmp_path: Path) -> Path:
    path = tmp_path / "some.lock.toml"
    entry = f'groupId = "{JAR.group}"\nartifactId = "{JAR.artifact}"\nversion = "{JAR.version}"\n'
    path.write_text(f'[[dependencies]]\n{entry}sha256 = "{JAR.sha256}"\n')
    return path


class Repository:
    """Serves the contents in order, one for each request, and the last one from then on."""

    def __init__(self, *contents: bytes | Exception) -> None:
        self.contents = list(contents)
        self.requests = 0

    def fetch(self, jar: Jar, into: Path) -> Path:
        content = self.contents[min(self.requests, len(self.contents) - 1)]
        self.requests += 1
        if isinstance(content, Exception):
            raise content
        path = into / jar.path
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
        return path


def serve(monkeypatch: pytest.MonkeyPatch, *contents: bytes | Exception) -> Repository:
    repository = Repository(*contents)
    monkeypatch.setattr(jars, "_from_maven", lambda: repository.fetch)
    return repository


def test_a_jar_is_fetched_once(lock: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    repository = serve(monkeypatch, CONTENT)
    first = fetch_jars(lock, tmp_path, quiet)
    assert fetch_jars(lock, tmp_path, quiet) == first
    assert first[0].read_bytes() == CONTENT
    assert repository.requests == 1


def test_a_jar_that_was_damaged_in_the_cache_is_fetched_again(
    lock: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    serve(monkeypatch, CONTENT)
    (path,) = fetch_jars(lock, tmp_path, quiet)
    path.write_bytes(b"half")
    assert fetch_jars(lock, tmp_path, quiet)[0].read_bytes() == CONTENT


@pytest.mark.parametrize("first", [b"another jar", ConnectionError("no route")])
def test_a_failed_or_wrong_download_is_tried_once_more(
    first: bytes | Exception, lock: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    repository = serve(monkeypatch, first, CONTENT)
    assert fetch_jars(lock, tmp_path, quiet)[0].read_bytes() == CONTENT
    assert repository.requests == 2


def test_a_jar_with_another_checksum_is_refused_and_not_stored(
    lock: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    repository = serve(monkeypatch, b"another jar")
    with pytest.raises(JarError, match=r"org.example:library:1.0: the downloaded file has another sha256"):
        fetch_jars(lock, tmp_path, quiet)
    assert repository.requests == 2
    assert list((tmp_path / "jars").rglob("*.jar")) == []


def test_files_of_a_killed_process_are_removed(
    lock: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    serve(monkeypatch, CONTENT)
    (tmp_path / "jars" / ".partial-abandoned").mkdir(parents=True)
    fetch_jars(lock, tmp_path, quiet)
    assert list((tmp_path / "jars").glob(".partial-*")) == []


def test_a_lock_without_a_checksum_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "some.lock.toml"
    path.write_text('[[dependencies]]\ngroupId = "g"\nartifactId = "a"\nversion = "1"\n')
    with pytest.raises(JarError, match=r"not a jar lock .*'sha256'"):
        read_lock(path)


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write anywhere")
def test_a_read_only_cache_is_reported(lock: Path, tmp_path: Path) -> None:
    cache = tmp_path / "cache"
    cache.mkdir(mode=0o500)
    with pytest.raises(JarError, match="Permission denied"):
        fetch_jars(lock, cache, quiet)


@pytest.mark.parametrize(
    "lock",
    [SPARK_LOCK, KAFKA_LOCK, MIRROR_LOCK, OLDER_KAFKA_LOCK],
    ids=["spark", "kafka", "mirror", "older-kafka"],
)
def test_locks_match_their_specs_and_contain_no_url(lock: Path) -> None:
    spec = lock.with_name(lock.name.replace(".lock.toml", ".toml"))
    assert LockFile.load(lock).spec_hash == compute_spec_hash(spec)
    assert "://" not in lock.read_text()
    assert list(read_lock(lock)) == sorted(read_lock(lock))


def test_all_kafka_jars_have_the_same_version() -> None:
    locked = {*read_lock(KAFKA_LOCK), *read_lock(MIRROR_LOCK)}
    versions = {jar.version for jar in locked if jar.group == "org.apache.kafka"}
    assert versions == {"4.3.1"}


@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EROFS])
def test_a_full_or_read_only_disk_is_reported_as_such(
    lock: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, number: int
) -> None:
    serve(monkeypatch, OSError(number, os.strerror(number)), CONTENT)
    with pytest.raises(JarError, match=f"{os.strerror(number)}: free space or set XDG_CACHE_HOME"):
        fetch_jars(lock, tmp_path, quiet)
    assert fetch_jars(lock, tmp_path, quiet)[0].read_bytes() == CONTENT


def test_the_variables_repository_is_the_only_one_in_use(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FLEETGAUGE_MAVEN_REPOSITORY", "http://127.0.0.1:9/maven")
    named = {"FLEETGAUGE_MAVEN_REPOSITORY": "http://127.0.0.1:9/maven"}
    assert jars._maven_contexts()(Path("anywhere")).remote_repos == named == jars.list_repositories()


def test_the_fetch_command_prints_one_path_per_line(
    lock: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    serve(monkeypatch, CONTENT)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    result = CliRunner().invoke(jars.main, ["fetch", str(lock)])
    assert result.exit_code == 0, result.output
    assert [Path(line).read_bytes() for line in result.stdout.splitlines()] == [CONTENT]


def test_the_fetch_command_reports_an_unavailable_jar(
    lock: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    serve(monkeypatch, OSError("no network"))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    result = CliRunner().invoke(jars.main, ["fetch", str(lock)])
    assert result.exit_code == 2
    assert result.stdout == ""
