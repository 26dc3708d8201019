import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from click.testing import CliRunner, Result
from deltalake import DeltaTable, write_deltalake

from fleetgauge_core.tables import CORRECTIONS
from fleetgauge_operations.corrections.cli import correct
from tests.browser.lake import put

FLEET = """
clusters:
  - {id: orders, bootstrap: "orders:9092", region: eu, labels: {team: checkout}}
"""
SPAN = ("--from", "2026-03-02T10:00:00Z", "--to", "2026-03-02T11:00:00+00:00", "--reason", "upgrade")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "fleet.yaml").write_text(FLEET)
    put(tmp_path / "lake", CORRECTIONS, [])
    return tmp_path


def run(folder: Path, *arguments: str) -> Result:
    options = ("--config", str(folder / "fleet.yaml"))
    return CliRunner().invoke(correct, [arguments[0], *options, *arguments[1:]])


def stored(folder: Path) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = (
        DeltaTable(str(folder / "lake" / CORRECTIONS.path)).to_pyarrow_table().to_pylist()
    )
    return rows


def test_what_is_added_is_listed_and_can_be_withdrawn_once(folder: Path) -> None:
    done = run(folder, "add", "--cluster", "orders", "--broker", "2", *SPAN, "--author", "ann", "--json")
    assert done.exit_code == 0, done.output
    added = json.loads(done.stdout)
    assert (added["scope"], added["cluster_id"], added["broker_id"]) == ("broker", "orders", 2)
    assert added["starts"] == "2026-03-02T10:00:00+00:00"

    listed = json.loads(run(folder, "list", "--json").stdout)
    assert [(one["correction_id"], one["state"]) for one in listed] == [(added["correction_id"], "over")]

    assert run(folder, "withdraw", added["correction_id"], "--author", "bob").exit_code == 0
    (row,) = stored(folder)
    assert (row["withdrawn_by"], row["reason"], row["author"]) == ("bob", "upgrade", "ann")
    again = run(folder, "withdraw", added["correction_id"])
    assert (again.exit_code, again.stderr.count("\n")) == (2, 1)


def test_what_recurs_says_how_and_until_when(folder: Path) -> None:
    recurs = ("--recurs", "weekly", "--until", "2027-01-01T00:00:00Z")
    done = run(folder, "add", "--segment", "team=checkout", *SPAN, *recurs, "--json")
    row = json.loads(done.stdout)
    assert (row["scope"], row["segment"], row["segment_value"]) == ("segment", "team", "checkout")
    assert (row["recurs"], row["recurs_until"]) == ("weekly", "2027-01-01T00:00:00+00:00")
    assert "team=checkout" in run(folder, "list").stderr


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ((), "either --cluster"),
        (("--cluster", "orders", "--segment", "region=eu"), "either --cluster"),
        (("--cluster", "nobody"), "no cluster nobody (known: orders)"),
        (("--segment", "region=us"), "no cluster is in segment region=us"),
        (("--segment", "region"), "--segment is NAME=VALUE"),
        (("--cluster", "orders", "--until", "2027-01-01T00:00:00Z"), "--until needs --recurs"),
        (("--cluster", "orders", "--to", "2026-03-02T09:00:00Z"), "is not after --from"),
        (("--cluster", "orders", "--to", "2026-03-09T09:00:00Z", "--recurs", "daily"), "would overlap"),
        (("--cluster", "orders", "--to", "2026-03-09T09:00:00"), "has no UTC offset"),
    ],
)
def test_what_cannot_be_meant_is_refused_in_one_line(
    folder: Path, arguments: tuple[str, ...], said: str
) -> None:
    done = run(folder, "add", *SPAN, *arguments)
    assert done.exit_code == 2
    assert said in " ".join(done.stderr.split())
    assert stored(folder) == []


def test_without_a_lake_it_says_who_makes_one(folder: Path) -> None:
    done = run(folder, "list", "--lake", str(folder / "nothing"))
    assert (done.exit_code, "fleetgauge stream" in done.stderr) == (2, True)


def test_an_object_store_that_does_not_answer_is_one_line_without_the_secret(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    secret = "a-secret-of-nobody"
    for name, value in {
        "AWS_ENDPOINT_URL": "http://127.0.0.1:9",
        "AWS_ALLOW_HTTP": "true",
        "AWS_REGION": "nowhere",
        "AWS_ACCESS_KEY_ID": "key",
        "AWS_SECRET_ACCESS_KEY": secret,
    }.items():
        monkeypatch.setenv(name, value)
    done = run(folder, "list", "--lake", "s3://bucket/lake")
    assert (done.exit_code, done.stderr.count("\n")) == (2, 1)
    assert "AWS_ENDPOINT_URL" in done.stderr
    assert secret not in done.stderr


def test_a_table_of_another_shape_is_one_line(folder: Path) -> None:
    other = folder / "other"
    write_deltalake(str(other / CORRECTIONS.path), pa.table({"a": [1]}))
    done = run(folder, "list", "--lake", str(other))
    assert (done.exit_code, done.stderr.count("\n")) == (2, 1)
