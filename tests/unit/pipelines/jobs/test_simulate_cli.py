"""`fleetgauge simulate` without Spark: wrong input, records in files, an interrupt."""

import json
import signal
import subprocess
import sys
from datetime import UTC, datetime
from pathlib import Path

import fastavro
import pytest
from click.testing import CliRunner, Result

from fleetgauge_core.contract import Leg
from fleetgauge_core.fleet import load_fleet
from fleetgauge_pipelines.jobs.simulate_cli import simulate

END = "2026-11-16T00:00:00Z"
FILES = ("--records", "files", "--clusters", "2", "--minutes", "90", "--end", END)


def _run(to: Path, *arguments: str) -> Result:
    return CliRunner().invoke(simulate, ["--to", str(to), *arguments], env={"COLUMNS": "200"})


def test_help_has_an_example() -> None:
    assert "Example: fleetgauge simulate --to" in CliRunner().invoke(simulate, ["--help"]).output


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--minutes", "5"], "--minutes needs --records"),
        (["--records", "files", "--weeks", "1"], "--weeks is for a lake"),
        (["--records", "files", "--minutes", "4321"], "omit --records and give --weeks"),
        (["--records", "topic"], "--records topic needs --config"),
        (["--records", "topic", "--config", "absent.yaml"], "absent.yaml: No such file"),
        (["--end", "2026-11-16T00:00:30Z"], "expected a whole minute"),
        (["--end", "1812-01-01T00:00:00Z"], "not before 2000"),
    ],
)
def test_wrong_input_is_reported_in_one_line_and_nothing_is_written(
    tmp_path: Path, arguments: list[str], message: str
) -> None:
    result = _run(tmp_path / "to", *arguments)
    assert (result.exit_code, result.stdout) == (2, "")
    assert message in result.stderr
    assert result.stderr.count("\n") == 1
    assert not (tmp_path / "to").exists()


def test_a_topic_needs_a_telemetry_cluster(tmp_path: Path) -> None:
    config = tmp_path / "fleet.yaml"
    config.write_text("clusters: [{id: orders, bootstrap: 'orders:9092'}]\n")
    result = _run(tmp_path / "to", "--records", "topic", "--config", str(config))
    assert (result.exit_code, result.stderr.count("\n")) == (2, 1)
    assert "telemetry.bootstrap is missing" in result.stderr


def test_a_folder_with_foreign_files_is_refused_in_one_line(tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("mine")
    result = _run(tmp_path, *FILES)
    assert (result.exit_code, result.stderr.count("\n")) == (2, 1)
    assert "notes.txt was not written by a simulation" in result.stderr


def test_a_folder_that_cannot_be_made_is_one_line(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("mine")
    result = _run(tmp_path / "file" / "to", *FILES)
    assert (result.exit_code, result.stderr.count("\n")) == (2, 1)
    assert "Not a directory" in result.stderr


def test_each_cluster_has_a_file_with_records_up_to_the_end(tmp_path: Path) -> None:
    result = _run(tmp_path, *FILES, "--json")
    assert result.exit_code == 0
    summary = json.loads(result.stdout)
    fleet = load_fleet(tmp_path / "fleet.yaml")
    assert fleet.simulated
    records_by_cluster = {}
    for cluster in fleet.clusters:
        with (tmp_path / "records" / f"{cluster.id}.avro").open("rb") as file:
            records_by_cluster[cluster.id] = list(fastavro.reader(file))
    minutes = {record["minute"] for records in records_by_cluster.values() for record in records}
    assert (min(minutes), max(minutes)) == (
        datetime(2026, 11, 15, 22, 30, tzinfo=UTC),
        datetime(2026, 11, 15, 23, 59, tzinfo=UTC),
    )
    brokers = sum(len({record["broker_id"] for record in records}) for records in records_by_cluster.values())
    counts = {"clusters": 2, "brokers": brokers, "minutes": 90, "records": brokers * 90 * len(Leg)}
    assert summary.items() >= counts.items()
    assert summary["config"] == str(tmp_path / "fleet.yaml")
    assert summary["bytes"] > sum(path.stat().st_size for path in (tmp_path / "records").iterdir())


def test_a_second_run_with_the_same_arguments_does_nothing_and_prints_the_same(tmp_path: Path) -> None:
    first = _run(tmp_path, *FILES, "--json")
    before = {path: path.stat().st_mtime_ns for path in tmp_path.rglob("*")}
    second = _run(tmp_path, *FILES, "--json")
    assert "nothing to do" in second.stderr
    assert json.loads(second.stdout) == json.loads(first.stdout)
    assert {path: path.stat().st_mtime_ns for path in tmp_path.rglob("*")} == before


def test_the_same_seed_gives_the_same_bytes(tmp_path: Path) -> None:
    for name in ("first", "second"):
        assert _run(tmp_path / name, *FILES).exit_code == 0
    contents = [
        {
            path.name: path.read_bytes()
            for path in (tmp_path / name).rglob("*.*")
            if "simulation" not in path.name
        }
        for name in ("first", "second")
    ]
    assert len(contents[0]) == 5
    assert contents[0] == contents[1]


def test_other_arguments_replace_the_simulation(tmp_path: Path) -> None:
    _run(tmp_path, *FILES)
    again = _run(tmp_path, *FILES, "--clusters", "1", "--json")
    assert json.loads(again.stdout)["clusters"] == 1
    assert len(list((tmp_path / "records").iterdir())) == 1


def test_an_interrupted_run_is_reported_in_one_line_and_starts_over_next_time(tmp_path: Path) -> None:
    code = "from fleetgauge_pipelines.jobs.simulate_cli import simulate; simulate()"
    long = ["--to", str(tmp_path), "--records", "files", "--minutes", "4320", "--end", END]
    with subprocess.Popen([sys.executable, "-c", code, *long], stderr=subprocess.PIPE, text=True) as process:
        while not list(tmp_path.glob("records/*.avro")):
            assert process.poll() is None
        process.send_signal(signal.SIGINT)
        _, stderr = process.communicate(timeout=20)
    assert process.returncode == 130
    assert "is incomplete: run the same command again" in stderr
    assert "Traceback" not in stderr
    again = _run(tmp_path, *FILES)
    assert again.exit_code == 0
    assert "nothing to do" not in again.stderr
