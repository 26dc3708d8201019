"""`fleetgauge slo` over a small lake: data age first, values as stored, one-line errors."""

import csv
import json
import subprocess
import sys
from datetime import UTC, datetime, timedelta
from io import StringIO
from pathlib import Path

import pytest
from click.testing import CliRunner

from fleetgauge_core import tables
from fleetgauge_dashboards.terminal.slo import slo
from tests.browser.lake import ORDERS, PAYMENTS, SEARCH, LakeTimes, write

FLEET = "name: {name}\nsimulated: {simulated}\nlake: {lake}\nclusters: [{{id: orders-eu, bootstrap: o:1}}]\n"


@pytest.fixture
def known(tmp_path: Path) -> LakeTimes:
    return write(tmp_path, datetime.now(UTC))


def _run(*arguments: object) -> str:
    result = CliRunner().invoke(slo, [str(argument) for argument in arguments])
    assert result.exit_code == 0, result.output
    return result.stdout


def test_json_contains_the_newest_week_with_the_tables_column_names(tmp_path: Path, known: LakeTimes) -> None:
    answer = json.loads(_run("--lake", tmp_path, "--json"))
    assert list(answer) == ["week", "age_s", "fleet", "clusters"]
    assert answer["week"] == known.week.isoformat()
    assert 0 <= answer["age_s"] < 120
    assert [row["metric"] for row in answer["fleet"]] == [
        "latency_p99_us",
        "availability_ratio",
        "latency_budget_left_minutes",
    ]
    assert set(answer["fleet"][0]) == set(tables.FLEET_WEEKS.column_names)
    assert (answer["fleet"][0]["clusters"], answer["fleet"][0]["clusters_excluded"]) == (2, 1)
    assert set(tables.CLUSTER_WEEKS.column_names) < set(answer["clusters"][0])
    assert answer["clusters"][0]["cluster_id"] == ORDERS


def test_the_open_week_has_burn_rates(tmp_path: Path, known: LakeTimes) -> None:
    orders, *other_clusters = json.loads(_run("--lake", tmp_path, "--json"))["clusters"]
    # Eight bad minutes of sixty, and of the three hours that there are.
    assert orders["latency_burn_1h"] == pytest.approx(8 / 60 / 0.01)
    assert orders["latency_burn_6h"] == pytest.approx(8 / 180 / 0.01)
    # 20% failed in the first of the eight, 4% in the others.
    assert orders["availability_burn_1h"] == pytest.approx(0.48 / 60 / 0.0005)
    assert "availability page 1h/5m" in orders["alerts_firing"]
    assert "latency page 1h/5m" not in orders["alerts_firing"]
    by_id = {row["cluster_id"]: row for row in other_clusters}
    assert len(by_id[SEARCH]["alerts_frozen"]) == 8
    assert by_id[PAYMENTS]["alerts_firing"] == []


def test_an_older_week_opens_by_any_of_its_days_and_has_no_burn_rates(
    tmp_path: Path, known: LakeTimes
) -> None:
    day = known.week - timedelta(days=11)
    answer = json.loads(_run(day, "--lake", tmp_path, "--json"))
    assert answer["week"] == (known.week - timedelta(days=14)).isoformat()
    revised = next(row for row in answer["clusters"] if row["cluster_id"] == ORDERS)
    assert (revised["revision"], revised["latency_p99_us"]) == (2, 50_500)
    assert revised["latency_burn_1h"] is None


def test_csv_has_one_row_per_cluster(tmp_path: Path, known: LakeTimes) -> None:
    rows = list(csv.DictReader(StringIO(_run("--lake", tmp_path, "--csv"))))
    assert [row["cluster_id"] for row in rows] == [ORDERS, SEARCH, PAYMENTS]
    assert rows[0]["closed"] == "false"
    assert rows[0]["bad_minutes"] == "38"
    assert "availability page 1h/5m" in rows[0]["alerts_firing"].split(";")


def test_the_text_starts_with_the_age_of_the_data(tmp_path: Path, known: LakeTimes) -> None:
    (tmp_path / "fleet.yaml").write_text(FLEET.format(name="made-up", simulated="true", lake=tmp_path))
    lines = _run("--config", tmp_path / "fleet.yaml").splitlines()
    assert lines[0].startswith("made-up (SIMULATED): data until ")
    assert lines[1] == f"Week {known.week}, open, to date"
    text = "\n".join(lines)
    assert "2 included, 1 excluded (coverage below 90%); p99 is the worst of 2 clusters" in text
    assert text.index(ORDERS) < text.index(SEARCH) < text.index(PAYMENTS)
    assert "◌ 8 frozen" in text


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--lake", "{lake}/none"], "no week yet"),
        (["2020-01-01", "--lake", "{lake}"], "no week contains 2020-01-01; the weeks are "),
        (
            ["--config", "none.yaml"],
            "none.yaml: No such file or directory; choose another file with --config",
        ),
        (["soon", "--lake", "{lake}"], "'soon' does not match the format '%Y-%m-%d'"),
    ],
)
def test_wrong_input_is_one_line_and_exit_code_2(
    tmp_path: Path, known: LakeTimes, arguments: list[str], message: str
) -> None:
    result = CliRunner().invoke(
        slo, [argument.format(lake=tmp_path) for argument in arguments], env={"COLUMNS": "300"}
    )
    assert result.exit_code == 2
    assert message in result.output.replace("\n", " ")
    assert "Traceback" not in result.output


def test_an_unreadable_table_is_a_one_line_error(tmp_path: Path, known: LakeTimes) -> None:
    for commit in (tmp_path / "gold/cluster_weeks/_delta_log").glob("*.json"):
        commit.write_text("{broken")
    result = CliRunner().invoke(slo, ["--lake", str(tmp_path)], env={"COLUMNS": "300"})
    assert (result.exit_code, result.stdout) == (2, "")
    assert "gold/cluster_weeks: " in result.stderr


def test_the_command_imports_neither_spark_nor_dash() -> None:
    module = "fleetgauge_dashboards.terminal.slo_command"
    code = f"import sys, {module}; print({{'pyspark', 'dash'}} & set(sys.modules))"
    assert subprocess.check_output([sys.executable, "-c", code], text=True) == "set()\n"
