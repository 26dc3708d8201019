import json
from dataclasses import replace
from pathlib import Path

import pytest
import yaml
from click.testing import CliRunner, Result

from fleetgauge_operations.replay.cli import replay
from tests.unit.operations.replay.stories import hang, incident

HANG = incident(hang(), note="disk full")


def _run(*arguments: object) -> Result:
    return CliRunner().invoke(replay, [str(one) for one in ("run", *arguments)])


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "below").mkdir()
    HANG.write(tmp_path / "hang.incident.gz")
    replace(HANG, wanted=()).write(tmp_path / "below/false.incident.gz")
    (tmp_path / "notes.txt").write_text("none")
    return tmp_path


def test_what_is_named_as_it_was_to_be_exits_0(folder: Path) -> None:
    done = _run(folder / "hang.incident.gz")
    assert done.exit_code == 0
    assert "hang.incident.gz: disk full" in done.stderr
    assert "same: BROKER_DOWN of orders, broker 1: named 2026-03-02T12:01:05Z" in done.stderr


def test_of_a_folder_every_incident_is_judged_and_a_difference_exits_1(folder: Path) -> None:
    done = _run(folder, "--json")
    assert done.exit_code == 1
    first, second = json.loads(done.stdout)
    assert [Path(one["file"]).name for one in (first, second)] == ["false.incident.gz", "hang.incident.gz"]
    assert [one["verdict"] for one in first["findings"]] == ["new"]
    (found,) = second["findings"]
    assert (found["broker"], found["kind"], found["verdict"], found["later_s"]) == (
        1,
        "BROKER_DOWN",
        "same",
        0,
    )
    assert (
        found["wanted"]
        == found["found"]
        == {
            "named_at": "2026-03-02T12:01:05+00:00",
            "cleared_at": "2026-03-02T12:01:35+00:00",
        }
    )


def test_a_threshold_is_tried_without_a_change_of_code(folder: Path) -> None:
    blind = ("--set", "unanswered_ms=60000")
    assert _run(folder / "below", *blind).exit_code == 0
    done = _run(folder / "hang.incident.gz", *blind)
    assert done.exit_code == 1
    assert "missed: BROKER_DOWN of orders, broker 1: was to be named 2026-03-02T12:01:05Z" in done.stderr
    assert _run(folder / "hang.incident.gz", "--set", "calm=7.5").exit_code == 0


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ("calmness=3", "no threshold 'calmness'; there are unanswered_ms"),
        ("flaps=some", "wanted a number above 0, as in flaps=3"),
        ("slow_rounds=0", "wanted a number above 0, as in slow_rounds=4"),
        ("history_block=-1", "wanted a number above 0, as in history_block=15"),
        ("calm", "wanted a number above 0, as in calm=120"),
        ("calm=nan", "wanted a number above 0, as in calm=120"),
        ("calm=inf", "wanted a number above 0, as in calm=120"),
    ],
)
def test_a_threshold_that_is_none_is_refused(change: str, words: str, folder: Path) -> None:
    done = _run(folder, "--set", change)
    assert done.exit_code == 2
    assert words in done.stderr.replace("\n", " ")


def test_what_cannot_be_read_is_one_line(folder: Path, tmp_path: Path) -> None:
    done = _run(folder / "notes.txt")
    assert (done.exit_code, done.stderr.count("\n")) == (2, 1)
    assert "not an incident" in done.stderr
    (tmp_path / "empty").mkdir()
    done = _run(tmp_path / "empty")
    assert (done.exit_code, done.stderr.count("\n")) == (2, 1)
    assert "`fleetgauge replay export` makes one" in done.stderr


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--cluster", "payments"], "no cluster 'payments'"),
        (["--to", "2026-03-02T12:00:00Z"], "is not after --from"),
        (["--out", "fleet.yaml"], "fleet.yaml is there already"),
        (["--config", "none.yaml"], "No such file"),
        (["--from", "yesterday"], "is not a time"),
    ],
)
def test_an_export_of_nothing_is_refused_before_anything_is_asked(
    arguments: list[str], words: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    clusters = [{"id": "orders", "bootstrap": "nobody:1"}]
    Path("fleet.yaml").write_text(
        yaml.safe_dump({"telemetry": {"bootstrap": "nobody:1"}, "clusters": clusters})
    )
    usual = ["--cluster", "orders", "--from", "2026-03-02T12:00:00Z", "--to", "2026-03-02T13:00:00Z"]
    done = CliRunner().invoke(replay, ["export", *usual, *arguments])
    assert done.exit_code == 2
    assert words in done.stderr.replace("\n", " ")
