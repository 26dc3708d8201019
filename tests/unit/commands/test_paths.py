"""Paths in options and in fleet.yaml: unusual ones work, or are refused in one line."""

import json
import shutil
from collections.abc import Sequence
from contextlib import chdir
from pathlib import Path

import click
import pytest
from click.testing import CliRunner, Result

from fleetgauge_core.fleet import load_fleet
from fleetgauge_core.fleet.load import FleetFileError
from fleetgauge_core.lake.delta_table import LakePathError
from fleetgauge_core.runtime.cli import main
from fleetgauge_core.runtime.options import LakeParam, PathParam
from fleetgauge_local.errors import LocalFleetError
from fleetgauge_local.fleet import LocalFleet
from fleetgauge_pipelines.io.cache import default_cache_folder
from fleetgauge_pipelines.io.errors import SetupError
from fleetgauge_pipelines.jobs.lake_session import open_lake_for_reading, open_lake_for_writing
from tests.promises.commands import commands
from tests.promises.run_promises import write_inputs

NAMES = ["a b", "50% off", "#1?", "größe 東京", "-dash", "a=b,c;d:e", "~"]


@pytest.fixture(scope="module")
def inputs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("inputs")
    with chdir(folder):
        write_inputs(folder)
    return folder


def run(*arguments: str) -> Result:
    return CliRunner().invoke(main, arguments, prog_name="fleetgauge")


def test_every_path_of_an_option_is_read_in_one_way() -> None:
    parameters = [parameter for _, command, _ in commands() for parameter in command.params]
    paths = [parameter for parameter in parameters if isinstance(parameter.type, click.Path)]
    assert len(paths) > 20
    assert all(isinstance(parameter.type, PathParam) for parameter in paths)
    lakes = {
        path: parameter.type
        for path, command, _ in commands()
        for parameter in command.params
        if "--lake" in parameter.opts
    }
    assert len(lakes) > 10
    # `init` writes it to the fleet file as it is.
    assert {path for path, kind in lakes.items() if not isinstance(kind, LakeParam)} == {"fleetgauge init"}


@pytest.mark.parametrize("name", NAMES)
def test_a_folder_may_have_any_name(
    name: str, inputs: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shutil.copytree(inputs, tmp_path / name)
    (tmp_path / "link").symlink_to(tmp_path / name)
    monkeypatch.chdir(tmp_path)
    folder = f"./{name}"
    for command in (
        ("slo", "--lake", f"{tmp_path / name}/lake/", "--json"),
        ("slo", "--lake", "link/lake", "--json"),
        ("slo", f"--config={folder}/fleet.yaml", "--json"),
        ("report", "2026-03-02", "--config", f"{folder}/fleet.yaml", "--output", f"{folder}/review.md"),
        ("recover", "map", "--from-file", f"{folder}/case.json"),
        ("replay", "run", f"{folder}/hang.incident.gz"),
        ("validate", f"{folder}/every-key.yaml"),
    ):
        result = run(*command)
        assert result.exit_code == 0, (command, result.output)
    assert (tmp_path / name / "review.md").stat().st_size > 0


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("slo", "--lake", ""), "Invalid value for '--lake': the path is empty: write . for this folder"),
        (("slo", "--config", ""), "Invalid value for '--config': the path is empty: write . for this folder"),
        (("slo", "--lake", "~nobody-of-that-name/lake"), "there is no home folder ~nobody-of-that-name: "),
        (("report", "--output", "missing/review.md"), "missing is no folder that this user can write to"),
        (("report", "--output", "."), "File '.' is a directory."),
        (("simulate", "--to", "a|b"), "a|b/lake: the path of a lake cannot contain '|'"),
        (("demo", "--dir", "a[1]"), "a[1]/lake: the path of a lake cannot contain '['"),
    ],
)
def test_a_path_that_cannot_be_used_is_refused_before_work_begins(
    arguments: Sequence[str], message: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    result = run(*arguments)
    assert result.exit_code == 2
    assert message in result.stderr.splitlines()[-1]
    assert list(tmp_path.iterdir()) == []


def test_a_lake_that_cannot_be_is_refused_before_spark_starts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("fleetgauge_pipelines.io.session.open_session", lambda *_: pytest.fail("it starts"))
    for open_lake in (open_lake_for_reading, open_lake_for_writing):
        with (
            pytest.raises(LakePathError, match="the path of a lake cannot contain '%41'"),
            open_lake(str(tmp_path / "%41")),
        ):
            pass
    assert list(tmp_path.iterdir()) == []


def test_the_home_folder_is_meant_by_a_tilde(
    inputs: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", str(inputs))
    monkeypatch.chdir(tmp_path)
    assert run("slo", "--lake=~/lake", "--json").exit_code == 0
    assert run("slo", "--config=~/fleet.yaml", "--json").exit_code == 0


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        ("secrets/a b", "{folder}/secrets/a b"),
        ("../50% #1?", "{folder}/../50% #1?"),
        ("-größe", "{folder}/-größe"),
        ("/run/x", "/run/x"),
        ("~/x", "{home}/x"),
        ("./~", "{folder}/~"),
    ],
)
def test_paths_of_keys_are_relative_to_the_folder_of_the_file(
    path: str, expected: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    folder = tmp_path / "conf d"
    folder.mkdir()
    sasl = {"mechanism": "PLAIN", "username": "me", "password": {"file": path}}
    security = {"tls": {"ca": path, "certificate": path, "key": path}, "sasl": sasl}
    document = {"clusters": [{"id": "orders", "bootstrap": "o:1", "security": security}], "lake": path}
    (folder / "fleet.yaml").write_text(json.dumps(document), encoding="utf-8")
    monkeypatch.chdir(folder)
    fleet = load_fleet(Path("fleet.yaml"))
    resolved = Path(expected.format(folder=folder, home=tmp_path / "home"))
    (cluster,) = fleet.clusters
    assert cluster.security.tls
    assert cluster.security.sasl
    assert cluster.security.sasl.password
    assert set(cluster.security.tls.files) == {resolved}
    assert cluster.security.sasl.password.file == resolved
    assert fleet.lake == str(resolved.resolve())


def test_a_home_that_does_not_exist_is_named_with_its_key(tmp_path: Path) -> None:
    document = {"clusters": [{"id": "orders", "bootstrap": "o:1"}], "lake": "~nobody-of-that-name/lake"}
    (tmp_path / "fleet.yaml").write_text(json.dumps(document), encoding="utf-8")
    with pytest.raises(FleetFileError, match=r"fleet.yaml: lake: .*there is no home folder"):
        load_fleet(tmp_path / "fleet.yaml")


@pytest.mark.parametrize("name", ["a,b", "a:b"])
def test_a_cache_that_java_cannot_load_jars_from_is_refused(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / name))
    with pytest.raises(SetupError, match="set XDG_CACHE_HOME to another folder"):
        default_cache_folder()


def test_a_folder_of_a_local_fleet_that_kafka_cannot_use_is_refused(tmp_path: Path) -> None:
    with pytest.raises(LocalFleetError, match="choose another folder"):
        LocalFleet(tmp_path / "a,b").start()
    assert list(tmp_path.iterdir()) == []
