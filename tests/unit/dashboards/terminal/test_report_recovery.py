"""The review's section on recovery; without recovery data it is absent."""

import json
from datetime import timedelta
from pathlib import Path

import pytest

from fleetgauge_core import tables
from tests.browser.lake import put
from tests.browser.recovery_lake import drill, week_row
from tests.unit.dashboards.terminal.test_report import END, START, WEEK, read_review, write

HEADING = "## Recovery readiness"


def _write(root: Path) -> None:
    write(root)
    kept = {"objective": 300.0, "met": True, "coverage": 0.99}
    put(
        root,
        tables.RECOVERY_WEEKS,
        [
            week_row(
                WEEK, "rpo_s", "fleet", median=4.0, p90=80.0, p99=412.0, subjects=2, subjects_excluded=1
            ),
            week_row(WEEK, "readiness", "fleet", median=1.0, p90=0.991, p99=None, subjects=3),
            week_row(WEEK, "rpo_s", "mirror", "a to b", value=4.0, **kept),
            week_row(WEEK, "rpo_s", "mirror", "c to d", value=412.0, **kept | {"met": False}),
            week_row(WEEK, "readiness", "group", "a to b: <g>", objective=0.99, met=False, coverage=0.5),
            week_row(
                WEEK - timedelta(days=7), "rpo_s", "mirror", "old to b", value=900.0, **kept | {"met": False}
            ),
        ],
    )
    forecast = dict.fromkeys(("replayed", "missing", "decide_ms", "write_ms", "first_record_ms"))
    at = START + timedelta(hours=3)
    put(
        root,
        tables.DRILLS,
        [
            drill(at, "mail", executed=False, ready=False, reasons="stale,loss", **forecast),
            drill(at + timedelta(days=1), "billing", replay_forecast=350, replayed=352, missing=3),
            drill(END, "later"),
        ],
    )


@pytest.fixture(scope="module")
def lake(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("review")
    _write(root)
    return root


def _section(review: str) -> list[str]:
    return review.partition(HEADING)[2].partition("\n## ")[0].splitlines()


def test_the_section_lists_levels_missed_objectives_and_drills(lake: Path) -> None:
    lines = _section(read_review(WEEK, "--lake", lake))
    for line in (
        "| RPO upper bound, p99 of minutes | 4.0 s | 1 min 20 s | 6 min 52 s | 2 mirrors |",
        "| Share of minutes ready | 100% | 99.100% | unknown | 3 groups |",
        "| c to d | RPO upper bound, p99 of minutes | 6 min 52 s | 5 min | 99.0% |",
        "| a to b: \\<g\\> | Share of minutes ready | unknown | 99.000% | 50.0% |",
        "2 drills of consumer groups: 1 executed, 1 READY.",
        "| 2026-03-03 03:00:00 UTC | ada | north-all to south-all | billing | executed | READY "
        "| 350 | 352 | 3 |",
        "| 2026-03-02 03:00:00 UTC | ada | north-all to south-all | mail | forecast | NOT READY: stale, loss "
        "| 140 | – | – |",
    ):
        assert line in lines, line
    section = "\n".join(lines)
    assert "later" not in section
    assert "old to b" not in section
    assert section.index("billing") < section.index("mail")


def test_a_week_that_met_all_objectives_is_summarized(lake: Path, tmp_path: Path) -> None:
    write(tmp_path)
    put(
        tmp_path,
        tables.RECOVERY_WEEKS,
        [week_row(WEEK, "rpo_s", "mirror", "a to b", value=1.0, objective=2.0, met=True)],
    )
    assert "1 of 1 objective of mirrors and groups met." in _section(read_review(WEEK, "--lake", tmp_path))


def test_there_is_no_section_without_recovery_data(tmp_path: Path) -> None:
    write(tmp_path)
    before = read_review(WEEK, "--lake", tmp_path)
    put(tmp_path, tables.DRILLS, [drill(END + timedelta(hours=1), "later")])
    assert HEADING not in before
    assert read_review(WEEK, "--lake", tmp_path) == before


def test_the_section_does_not_change_the_rest_of_the_review(lake: Path, tmp_path: Path) -> None:
    write(tmp_path)
    with_recovery, without = (read_review(WEEK, "--lake", path).splitlines()[1:] for path in (lake, tmp_path))
    begin, end = with_recovery.index(HEADING), with_recovery.index("## Data quality")
    assert with_recovery[:begin] + with_recovery[end:] == without


def test_the_json_contains_recovery_and_drills(lake: Path) -> None:
    review = json.loads(read_review(WEEK, "--lake", lake, "--json"))
    assert [missed["subject"] for missed in review["recovery"]["missed"]] == ["a to b: <g>", "c to d"]
    assert [drill["group_id"] for drill in review["drills"]] == ["mail", "billing"]
