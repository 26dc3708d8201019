"""The commands of `fleetgauge correct` with a real lake."""

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
RANGE_AND_REASON = (
    "--from",
    "2026-03-02T10:00:00Z",
    "--to",
    "2026-03-02T11:00:00+00:00",
    "--reason",
    "upgrade",
)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder with a fleet file and a lake without corrections."""
    (tmp_path / "fleet.yaml").write_text(FLEET)
    put(tmp_path / "lake", CORRECTIONS, [])
    return tmp_path


def run(folder: Path, *arguments: str) -> Result:
    command, *options = arguments
    return CliRunner().invoke(correct, [command, "--config", str(folder / "fleet.yaml"), *options])


def read_rows(folder: Path) -> list[dict[str, Any]]:
    """Return the stored corrections."""
    table = DeltaTable(str(folder / "lake" / CORRECTIONS.path)).to_pyarrow_table()
    rows: list[dict[str, Any]] = table.to_pylist()
    return rows


def test_a_correction_is_added_listed_and_withdrawn_once(folder: Path) -> None:
    scope = ("--cluster", "orders", "--broker", "2")
    result = run(folder, "add", *scope, *RANGE_AND_REASON, "--author", "ann", "--json")
    assert result.exit_code == 0, result.output
    added = json.loads(result.stdout)
    assert (added["scope"], added["cluster_id"], added["broker_id"]) == ("broker", "orders", 2)
    assert added["starts"] == "2026-03-02T10:00:00+00:00"

    listed = json.loads(run(folder, "list", "--json").stdout)
    assert [(correction["correction_id"], correction["state"]) for correction in listed] == [
        (added["correction_id"], "over")
    ]

    assert run(folder, "withdraw", added["correction_id"], "--author", "bob").exit_code == 0
    (row,) = read_rows(folder)
    assert (row["withdrawn_by"], row["reason"], row["author"]) == ("bob", "upgrade", "ann")
    repeated = run(folder, "withdraw", added["correction_id"])
    assert (repeated.exit_code, repeated.stderr.count("\n")) == (2, 1)


def test_a_recurring_correction_of_a_segment_has_its_period_and_end(folder: Path) -> None:
    recurrence = ("--recurs", "weekly", "--until", "2027-01-01T00:00:00Z")
    result = run(folder, "add", "--segment", "team=checkout", *RANGE_AND_REASON, *recurrence, "--json")
    row = json.loads(result.stdout)
    assert (row["scope"], row["segment"], row["segment_value"]) == ("segment", "team", "checkout")
    assert (row["recurs"], row["recurs_until"]) == ("weekly", "2027-01-01T00:00:00+00:00")
    assert "team=checkout" in run(folder, "list").stderr


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((), "either --cluster"),
        (("--cluster", "orders", "--segment", "region=eu"), "either --cluster"),
        (("--cluster", "other"), "no cluster other (known: orders)"),
        (("--segment", "region=us"), "no cluster is in segment region=us"),
        (("--segment", "region"), "--segment is NAME=VALUE"),
        (("--cluster", "orders", "--until", "2027-01-01T00:00:00Z"), "--until needs --recurs"),
        (("--cluster", "orders", "--to", "2026-03-02T09:00:00Z"), "is not after --from"),
        (("--cluster", "orders", "--to", "2026-03-09T09:00:00Z", "--recurs", "daily"), "would overlap"),
        (("--cluster", "orders", "--to", "2026-03-09T09:00:00"), "has no UTC offset"),
        (
            ("--cluster", "orders", "--from", "2026-03-02T10:59:01Z"),
            "the correction would have no effect: no minute begins within the range",
        ),
        (
            ("--cluster", "orders", "--recurs", "daily", "--until", "2026-03-02T10:00:00Z"),
            "--until is not later than --from",
        ),
    ],
)
def test_an_invalid_correction_is_refused_and_not_stored(
    folder: Path, arguments: tuple[str, ...], message: str
) -> None:
    result = run(folder, "add", *RANGE_AND_REASON, *arguments)
    assert result.exit_code == 2
    assert message in " ".join(result.stderr.split())
    assert read_rows(folder) == []


def test_a_correction_is_refused_while_another_one_excludes_its_minutes(folder: Path) -> None:
    arguments = ("add", "--cluster", "orders", *RANGE_AND_REASON)
    correction_id = json.loads(run(folder, *arguments, "--json").stdout)["correction_id"]
    repeated = run(folder, *arguments, "--broker", "2")
    assert (repeated.exit_code, len(read_rows(folder))) == (2, 1)
    assert f"excluded already, by correction {correction_id}" in " ".join(repeated.stderr.split())
    assert run(folder, "withdraw", correction_id).exit_code == 0
    assert run(folder, *arguments).exit_code == 0


def test_the_message_about_a_missing_lake_names_the_command_that_creates_it(folder: Path) -> None:
    result = run(folder, "list", "--lake", str(folder / "nothing"))
    assert (result.exit_code, "fleetgauge stream" in result.stderr) == (2, True)


def test_an_unavailable_object_store_is_reported_in_one_line_without_the_secret(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    secret = "not-a-real-secret"
    for name, value in {
        "AWS_ENDPOINT_URL": "http://127.0.0.1:9",
        "AWS_ALLOW_HTTP": "true",
        "AWS_REGION": "nowhere",
        "AWS_ACCESS_KEY_ID": "key",
        "AWS_SECRET_ACCESS_KEY": secret,
    }.items():
        monkeypatch.setenv(name, value)
    result = run(folder, "list", "--lake", "s3://bucket/lake")
    assert (result.exit_code, result.stderr.count("\n")) == (2, 1)
    assert "AWS_ENDPOINT_URL" in result.stderr
    assert secret not in result.stderr


def test_a_table_with_other_columns_is_reported_in_one_line(folder: Path) -> None:
    lake = folder / "other"
    write_deltalake(str(lake / CORRECTIONS.path), pa.table({"a": [1]}))
    result = run(folder, "list", "--lake", str(lake))
    assert (result.exit_code, result.stderr.count("\n")) == (2, 1)
