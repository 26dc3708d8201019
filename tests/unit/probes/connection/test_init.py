import io
import json
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from fleetgauge_core.fleet import load_fleet
from fleetgauge_probes.connection.init import init
from fleetgauge_probes.connection.validate import validate


class Terminal(io.BytesIO):
    """Standard input that is a terminal."""

    def isatty(self) -> bool:
        return True


@pytest.fixture(autouse=True)
def change_to_empty_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def run_in_terminal(*answers: str, options: tuple[str, ...] = ()) -> Result:
    return CliRunner().invoke(init, list(options), input=Terminal("\n".join([*answers, ""]).encode()))


def run_without_terminal(*options: str) -> Result:
    return CliRunner().invoke(init, list(options))


def written_clusters() -> list[tuple[str, str]]:
    return [(cluster.id, cluster.bootstrap) for cluster in load_fleet(Path("fleet.yaml")).clusters]


def test_a_cluster_id_is_required_and_suggestions_are_accepted_for_the_rest() -> None:
    assert run_in_terminal("orders", "", "", "", "").exit_code == 0
    fleet = load_fleet(Path("fleet.yaml"))
    assert written_clusters() == [("orders", "localhost:9092")]
    assert fleet.telemetry
    assert fleet.telemetry.bootstrap == "localhost:9092"
    assert fleet.lake == str(Path("lake").resolve())


def test_several_clusters_can_be_entered() -> None:
    answers = ["orders", "o:1", "y", "payments", "p:1,p:2", "n", "t:1", "s3a://bucket/lake"]
    assert run_in_terminal(*answers).exit_code == 0
    assert written_clusters() == [("orders", "o:1"), ("payments", "p:1,p:2")]
    assert load_fleet(Path("fleet.yaml")).lake == "s3a://bucket/lake"


def test_an_invalid_answer_is_explained_and_asked_for_again() -> None:
    answers = ["or ders", "orders", "o:port", "o:1", "y", "orders", "payments", "p:1", "n", "t t", "t:1", ""]
    result = run_in_terminal(*answers)
    assert result.exit_code == 0
    assert written_clusters() == [("orders", "o:1"), ("payments", "p:1")]
    assert "expected 1 to 128 letters" in result.stderr
    assert result.stderr.count("expected HOST:PORT") == 2
    assert "id 'orders' is given twice" in result.stderr


def test_values_of_options_are_not_asked_for() -> None:
    result = run_in_terminal("t:1", options=("--cluster", "orders", "--bootstrap", "o:1", "--lake", "./l"))
    assert result.exit_code == 0
    assert written_clusters() == [("orders", "o:1")]
    assert "Another" not in result.stderr


def test_a_bootstrap_without_an_option_is_asked_for() -> None:
    options = ("--cluster", "a", "--bootstrap", "a:1", "--cluster", "b")
    assert run_in_terminal("b:1", "", "", options=options).exit_code == 0
    assert written_clusters() == [("a", "a:1"), ("b", "b:1")]


def test_options_are_sufficient_without_a_terminal() -> None:
    result = run_without_terminal(
        "--cluster", "a", "--bootstrap", "a:1", "--cluster", "b", "--bootstrap", "b:1"
    )
    assert (result.exit_code, result.stdout) == (0, "")
    assert written_clusters() == [("a", "a:1"), ("b", "b:1")]
    telemetry = load_fleet(Path("fleet.yaml")).telemetry
    assert telemetry
    assert telemetry.bootstrap == "a:1"


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ((), "--cluster is missing"),
        (("--cluster", "a"), "--bootstrap is missing"),
        (("--bootstrap", "a:1"), "more --bootstrap than --cluster"),
        (("--cluster", "a", "--bootstrap", "a b"), "--bootstrap 'a b': expected HOST:PORT"),
        (("--cluster", "a b", "--bootstrap", "a:1"), "--cluster 'a b': expected 1 to 128 letters"),
        (("--cluster", "a", "--bootstrap", "a:1", "--cluster", "a", "--bootstrap", "b:1"), "given twice"),
        (
            ("--cluster", "a", "--bootstrap", "a:1", "--telemetry", "t:x"),
            "--telemetry 't:x': expected HOST:PORT",
        ),
        (("--cluster", "a", "--bootstrap", "a:1", "--output", "no/such/folder.yaml"), "--output"),
    ],
)
def test_missing_or_invalid_options_without_a_terminal_are_an_error_in_one_line(
    options: tuple[str, ...], message: str
) -> None:
    result = run_without_terminal(*options)
    assert (result.exit_code, result.stdout) == (2, "")
    assert result.stderr.count("\n") == 1
    assert message in result.stderr
    assert not Path("fleet.yaml").exists()


def test_an_existing_file_is_replaced_only_with_force() -> None:
    Path("fleet.yaml").write_text("previous", encoding="utf-8")
    options = ("--cluster", "a", "--bootstrap", "a:1")
    refused = run_without_terminal(*options)
    assert refused.exit_code == 2
    assert "--force" in refused.stderr
    assert Path("fleet.yaml").read_text(encoding="utf-8") == "previous"
    assert run_without_terminal(*options, "--force").exit_code == 0
    assert written_clusters() == [("a", "a:1")]


def test_the_next_commands_are_printed() -> None:
    options = ("--cluster", "a", "--bootstrap", "a:1", "--output", "my fleet.yaml", "--json")
    answer = json.loads(run_without_terminal(*options).stdout)
    assert answer == {
        "config": "my fleet.yaml",
        "next": [
            "fleetgauge validate 'my fleet.yaml' --connect",
            "fleetgauge probe --config 'my fleet.yaml'",
        ],
    }


def test_a_schema_file_in_the_same_folder_is_referred_to() -> None:
    Path("fleet.schema.json").write_text(CliRunner().invoke(validate, ["--schema"]).stdout, encoding="utf-8")
    assert run_without_terminal("--cluster", "a", "--bootstrap", "a:1").exit_code == 0
    assert "$schema=fleet.schema.json" in Path("fleet.yaml").read_text(encoding="utf-8").splitlines()[0]
