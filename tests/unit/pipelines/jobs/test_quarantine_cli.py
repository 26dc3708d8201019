"""The commands `fleetgauge quarantine` without Spark: what they list, show and refuse."""

import json
import re
import subprocess
import sys
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from click.testing import CliRunner, Result
from deltalake import write_deltalake

from fleetgauge_core.contract import PROBE_MINUTE
from fleetgauge_core.lake.quarantine_view import decode_readable_fields
from fleetgauge_core.tables import QUARANTINE
from fleetgauge_pipelines.jobs.quarantine_cli import quarantine
from tests.spark.broken import encode_untimed, good_record

NOON = datetime(2026, 3, 2, 12, tzinfo=UTC)
GOOD = PROBE_MINUTE.encode(good_record(1, NOON))
ROWS = [
    ("t/0/1", GOOD, "unknown_cluster", "orders", NOON),
    ("t/0/2", GOOD, "unknown_cluster", "orders", NOON + timedelta(hours=1)),
    ("t/0/3", GOOD[: len(GOOD) // 2], "not_decodable", "half", NOON),
    ("t/0/4", GOOD + b"\x00", "trailing_bytes", "one more", NOON),
    ("t/0/5", b"noise", "not_decodable", "5 bytes", NOON + timedelta(hours=2)),
    ("torn.avro:7", None, "not_decodable", None, NOON - timedelta(days=1)),
    (
        "t/0/6",
        encode_untimed(
            good_record(2, NOON)
            | {"minute": 2**62, "emitted_at": int(NOON.timestamp() * 1000), "run_id": "r"}
        ),
        "not_decodable",
        "a time",
        NOON,
    ),
]


@pytest.fixture(scope="module")
def lake(tmp_path_factory: pytest.TempPathFactory) -> Path:
    lake = tmp_path_factory.mktemp("lake")
    types = (pa.string(), pa.binary(), pa.string(), pa.string(), pa.timestamp("us", "UTC"))
    schema = pa.schema(list(zip(QUARANTINE.column_names, types, strict=True)))
    columns = [pa.array(column, type_) for column, type_ in zip(zip(*ROWS, strict=True), types, strict=True)]
    write_deltalake(str(lake / QUARANTINE.path), pa.Table.from_arrays(columns, schema=schema))
    return lake


def _run(*arguments: str) -> Result:
    return CliRunner().invoke(quarantine, [*arguments], env={"COLUMNS": "200"})


def _show(lake: Path, source: str) -> Any:
    result = _run("show", source, "--lake", str(lake), "--json")
    assert result.exit_code == 0, result.stderr
    return json.loads(result.stdout)


@pytest.mark.parametrize("command", [[], ["list"], ["show"], ["replay"]])
def test_help_has_an_example(command: list[str]) -> None:
    assert "Example: fleetgauge quarantine" in _run(*command, "--help").output


def test_the_list_has_one_object_per_reason_with_the_most_frequent_first(lake: Path) -> None:
    result = _run("list", "--lake", str(lake), "--json")
    assert json.loads(result.stdout) == [
        {
            "reason": "not_decodable",
            "rows": 4,
            "first_ingested_at": "2026-03-01T12:00:00Z",
            "last_ingested_at": "2026-03-02T14:00:00Z",
            "example": "t/0/3",
        },
        {
            "reason": "unknown_cluster",
            "rows": 2,
            "first_ingested_at": "2026-03-02T12:00:00Z",
            "last_ingested_at": "2026-03-02T13:00:00Z",
            "example": "t/0/1",
        },
        {
            "reason": "trailing_bytes",
            "rows": 1,
            "first_ingested_at": "2026-03-02T12:00:00Z",
            "last_ingested_at": "2026-03-02T12:00:00Z",
            "example": "t/0/4",
        },
    ]
    assert result.stderr.count("\n") == 3


@pytest.mark.parametrize(
    ("options", "reasons"),
    [
        (["--reason", "trailing_bytes"], ["trailing_bytes"]),
        (["--since", "2026-03-02T13:00:00Z"], ["not_decodable", "unknown_cluster"]),
        (["--since", "2026-03-03"], []),
    ],
)
def test_the_list_is_filtered_by_the_options(lake: Path, options: list[str], reasons: list[str]) -> None:
    result = _run("list", "--lake", str(lake), "--json", *options)
    assert sorted(row["reason"] for row in json.loads(result.stdout)) == reasons


def test_a_decodable_row_shows_its_record(lake: Path) -> None:
    shown = _show(lake, "t/0/1")
    assert (shown["reason"], shown["detail"], shown["size"]) == ("unknown_cluster", "orders", len(GOOD))
    assert shown["hex"] == GOOD[:64].hex()
    assert shown["unreadable"] is None
    fields = shown["fields"]
    assert list(fields) == list(good_record(1, NOON))
    assert (fields["cluster_id"], fields["broker_id"], fields["leg"]) == ("orders", 1, "client")
    assert fields["minute"] == "2026-03-02T12:00:00.000+00:00"
    assert len(fields["ack_us"]) == 100


def test_a_truncated_row_shows_its_readable_fields_and_where_they_end(lake: Path) -> None:
    shown = _show(lake, "t/0/3")
    assert shown["fields"]["cluster_id"] == "orders"
    assert "emitted_at" not in shown["fields"]
    assert re.fullmatch(r"ack_us cannot be read, from byte \d+ on", shown["unreadable"])


@pytest.mark.parametrize(
    ("source", "fields", "unreadable"),
    [
        ("t/0/4", 27, "1 bytes after the record"),
        ("t/0/5", 0, "no single-object marker"),
        ("torn.avro:7", 0, "no single-object marker"),
    ],
)
def test_an_incomplete_record_shows_why(lake: Path, source: str, fields: int, unreadable: str) -> None:
    shown = _show(lake, source)
    assert (len(shown["fields"]), shown["unreadable"]) == (fields, unreadable)


def test_an_invalid_time_is_shown_as_a_number(lake: Path) -> None:
    assert _show(lake, "t/0/6")["fields"]["minute"] == 2**62


def test_text_output_abbreviates_long_arrays(lake: Path) -> None:
    result = _run("show", "t/0/1", "--lake", str(lake))
    assert result.stdout == ""
    assert "ack_us: 100 values, 2001, 2011, 2021, ..., 2991" in result.stderr


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["list", "--lake", "nowhere"], "nowhere/ops/quarantine: no such table"),
        (["show", "t/0/1", "--lake", "nowhere"], "nowhere/ops/quarantine: no such table"),
        (["list", "--config", "absent.yaml"], "absent.yaml: No such file"),
        (["replay", "--config", "absent.yaml"], "absent.yaml: No such file"),
    ],
)
def test_wrong_input_is_reported_in_one_line(arguments: list[str], message: str) -> None:
    result = _run(*arguments)
    assert (result.exit_code, result.stdout, result.stderr.count("\n")) == (2, "", 1)
    assert message in result.stderr


def test_a_replay_without_a_lake_creates_none(tmp_path: Path) -> None:
    config = tmp_path / "fleet.yaml"
    config.write_text("clusters: [{id: orders, bootstrap: 'orders:9092'}]\n")
    result = _run("replay", "--config", str(config), "--lake", str(tmp_path / "lake"))
    assert (result.exit_code, result.stderr.count("\n")) == (2, 1)
    assert "no table ops/quarantine found" in result.stderr
    assert not (tmp_path / "lake").exists()


def test_an_unknown_source_is_reported_in_one_line(lake: Path) -> None:
    result = _run("show", "t/0/99", "--lake", str(lake))
    assert (result.exit_code, result.stdout, result.stderr.count("\n")) == (2, "", 1)


def test_list_and_show_need_neither_spark_nor_a_jvm(lake: Path) -> None:
    # By the entry point, which ends the process before the threads of Arrow could abort it.
    code = (
        "import sys; sys.modules['pyspark'] = None;from fleetgauge_core.runtime.entry_point import run; run()"
    )
    for arguments in (["list"], ["show", "t/0/1"]):
        command = [sys.executable, "-c", code, "quarantine", *arguments, "--lake", str(lake), "--json"]
        process = subprocess.run(command, capture_output=True, text=True, check=False)
        assert process.returncode == 0, process.stderr
        assert json.loads(process.stdout)


@pytest.mark.parametrize("cut", range(0, len(GOOD), 97))
def test_a_record_truncated_anywhere_can_be_shown(cut: int) -> None:
    fields, unreadable = decode_readable_fields(GOOD[:cut])
    assert unreadable
    assert len(fields) < 27
    assert bool(fields) == (cut > 0)
