import io
import json
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from fleetgauge_core.fleet import load
from fleetgauge_probes.connection.init import init
from fleetgauge_probes.connection.validate import validate


class Terminal(io.BytesIO):
    """Where a person types."""

    def isatty(self) -> bool:
        return True


@pytest.fixture(autouse=True)
def in_an_empty_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def _answering(*answers: str, options: tuple[str, ...] = ()) -> Result:
    return CliRunner().invoke(init, list(options), input=Terminal("\n".join([*answers, ""]).encode()))


def _without_a_terminal(*options: str) -> Result:
    return CliRunner().invoke(init, list(options))


def _clusters() -> list[tuple[str, str]]:
    return [(one.id, one.bootstrap) for one in load(Path("fleet.yaml")).clusters]


def test_a_person_needs_to_name_one_cluster_and_may_take_what_is_usual_for_the_rest() -> None:
    assert _answering("orders", "", "", "", "").exit_code == 0
    fleet = load(Path("fleet.yaml"))
    assert _clusters() == [("orders", "localhost:9092")]
    assert fleet.telemetry
    assert fleet.telemetry.bootstrap == "localhost:9092"
    assert fleet.lake == str(Path("lake").resolve())


def test_a_person_may_name_several_clusters() -> None:
    answers = ["orders", "o:1", "y", "payments", "p:1,p:2", "n", "t:1", "s3a://bucket/lake"]
    assert _answering(*answers).exit_code == 0
    assert _clusters() == [("orders", "o:1"), ("payments", "p:1,p:2")]
    assert load(Path("fleet.yaml")).lake == "s3a://bucket/lake"


def test_a_wrong_answer_is_asked_for_again_with_the_reason() -> None:
    answers = ["or ders", "orders", "o:port", "o:1", "y", "orders", "payments", "p:1", "n", "t t", "t:1", ""]
    result = _answering(*answers)
    assert result.exit_code == 0
    assert _clusters() == [("orders", "o:1"), ("payments", "p:1")]
    assert "wanted: 1 to 128 letters" in result.stderr
    assert result.stderr.count("wanted: HOST:PORT") == 2
    assert "id 'orders' is given twice" in result.stderr


def test_a_person_is_not_asked_what_the_options_say() -> None:
    result = _answering("t:1", options=("--cluster", "orders", "--bootstrap", "o:1", "--lake", "./l"))
    assert result.exit_code == 0
    assert _clusters() == [("orders", "o:1")]
    assert "Another" not in result.stderr


def test_a_bootstrap_that_the_options_lack_is_asked_for() -> None:
    options = ("--cluster", "a", "--bootstrap", "a:1", "--cluster", "b")
    assert _answering("b:1", "", "", options=options).exit_code == 0
    assert _clusters() == [("a", "a:1"), ("b", "b:1")]


def test_without_a_terminal_options_are_enough() -> None:
    result = _without_a_terminal(
        "--cluster", "a", "--bootstrap", "a:1", "--cluster", "b", "--bootstrap", "b:1"
    )
    assert (result.exit_code, result.stdout) == (0, "")
    assert _clusters() == [("a", "a:1"), ("b", "b:1")]
    telemetry = load(Path("fleet.yaml")).telemetry
    assert telemetry
    assert telemetry.bootstrap == "a:1"


@pytest.mark.parametrize(
    ("options", "told"),
    [
        ((), "--cluster is missing"),
        (("--cluster", "a"), "--bootstrap is missing"),
        (("--bootstrap", "a:1"), "more --bootstrap than --cluster"),
        (("--cluster", "a", "--bootstrap", "a b"), "--bootstrap 'a b': wanted: HOST:PORT"),
        (("--cluster", "a b", "--bootstrap", "a:1"), "--cluster 'a b': wanted: 1 to 128 letters"),
        (("--cluster", "a", "--bootstrap", "a:1", "--cluster", "a", "--bootstrap", "b:1"), "given twice"),
        (("--cluster", "a", "--bootstrap", "a:1", "--telemetry", "t:x"), "--telemetry 't:x': wanted"),
        (("--cluster", "a", "--bootstrap", "a:1", "--output", "no/such/folder.yaml"), "--output"),
    ],
)
def test_without_a_terminal_what_is_missing_or_wrong_is_one_line_and_exit_2(
    options: tuple[str, ...], told: str
) -> None:
    result = _without_a_terminal(*options)
    assert (result.exit_code, result.stdout) == (2, "")
    assert result.stderr.count("\n") == 1
    assert told in result.stderr
    assert not Path("fleet.yaml").exists()


def test_a_file_that_is_there_is_replaced_by_force_alone() -> None:
    Path("fleet.yaml").write_text("precious", encoding="utf-8")
    options = ("--cluster", "a", "--bootstrap", "a:1")
    refused = _without_a_terminal(*options)
    assert refused.exit_code == 2
    assert "--force" in refused.stderr
    assert Path("fleet.yaml").read_text(encoding="utf-8") == "precious"
    assert _without_a_terminal(*options, "--force").exit_code == 0
    assert _clusters() == [("a", "a:1")]


def test_it_says_what_to_do_next() -> None:
    options = ("--cluster", "a", "--bootstrap", "a:1", "--output", "my fleet.yaml", "--json")
    answer = json.loads(_without_a_terminal(*options).stdout)
    assert answer == {
        "config": "my fleet.yaml",
        "next": [
            "fleetgauge validate 'my fleet.yaml' --connect",
            "fleetgauge probe --config 'my fleet.yaml'",
        ],
    }


def test_an_editor_is_led_to_the_schema_that_lies_beside() -> None:
    Path("fleet.schema.json").write_text(CliRunner().invoke(validate, ["--schema"]).stdout, encoding="utf-8")
    assert _without_a_terminal("--cluster", "a", "--bootstrap", "a:1").exit_code == 0
    assert "$schema=fleet.schema.json" in Path("fleet.yaml").read_text(encoding="utf-8").splitlines()[0]
