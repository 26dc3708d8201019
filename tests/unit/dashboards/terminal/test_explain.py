"""From a week's number to its minutes, brokers and probes, while they are held and after they expired."""

import csv
import json
from io import StringIO
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from fleetgauge_core import tables
from fleetgauge_dashboards.terminal.explain import explain
from tests.browser.lake import put
from tests.unit.dashboards.terminal import known_week


@pytest.fixture(scope="module")
def full_lake(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A lake from which nothing has expired."""
    root = tmp_path_factory.mktemp("full_lake")
    for write in (
        known_week.write_gold,
        known_week.write_silver,
        known_week.write_bronze,
        known_week.write_corrections,
    ):
        write(root)
    return root


@pytest.fixture(scope="module")
def expired_lake(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A lake with only the gold tables."""
    root = tmp_path_factory.mktemp("expired_lake")
    known_week.write_gold(root)
    known_week.write_evidence(root)
    return root


def _run(lake: Path, *arguments: str) -> str:
    result = CliRunner().invoke(
        explain, [known_week.CLUSTER, str(known_week.WEEK), "--lake", str(lake), *arguments]
    )
    assert result.exit_code == 0, result.output
    return result.stdout


def _json(lake: Path) -> dict[str, Any]:
    answer = json.loads(_run(lake, "--json"))
    assert isinstance(answer, dict)
    return answer


def _minute_text(number: int) -> str:
    return known_week.at(number).isoformat().replace("+00:00", "Z")


def test_each_number_has_its_rank_and_its_deciding_minute(full_lake: Path) -> None:
    latency, censored, availability = _json(full_lake)["decided"]
    assert latency["words"] == (
        "10,068 minutes, rank ceil(0.99 x 10,068) = 9,968: the 9,968th of 10,068 ascending is 29.979 ms"
    )
    assert (latency["minutes"], latency["position"], latency["found"]) == (10_068, 9_968, 29_979)
    assert latency["deciding"] == [{"minute": _minute_text(known_week.DECIDES_LATENCY), "broker_id": 1}]
    assert (censored["found"], censored["deciding"][0]["minute"]) == (
        known_week.CENSORED_P99_US,
        _minute_text(known_week.DECIDES_CENSORED),
    )
    assert (availability["position"], availability["found"]) == (101, 0.995)
    assert "the 101st of 10,068 ascending (9,968th from the best) is 99.500%" in availability["words"]
    assert (availability["sharing"], len(availability["deciding"])) == (150, 5)
    assert availability["deciding"][0] == {"minute": _minute_text(known_week.LOSSY[0]), "broker_id": 3}
    assert _json(full_lake)["notes"] == []


def test_bad_minutes_are_grouped_into_periods_with_broker_and_cause(full_lake: Path) -> None:
    answer = _json(full_lake)
    assert answer["bad_minutes_found"] == 10
    assert answer["bad_stretches"] == [
        {
            "start": _minute_text(1_000),
            "end": _minute_text(1_010),
            "minutes": 10,
            "broker_id": 2,
            "worst_us": 10_000_000,
            "causes": ["broker_down"],
        }
    ]
    assert answer["brokers"] == [
        {"broker_id": 2, "minutes": 10, "bad_minutes": 10},
        {"broker_id": 1, "minutes": 10_058, "bad_minutes": 0},
    ]


def test_unmeasured_periods_are_listed(full_lake: Path) -> None:
    unmeasured = _json(full_lake)["unmeasured"]
    assert [(period["start"], period["minutes"], period["fewest_measured"]) for period in unmeasured] == [
        (_minute_text(500), 12, 0),
        (_minute_text(600), 3, 2),
    ]


def test_a_revision_lists_its_changed_values(full_lake: Path) -> None:
    first, second = _json(full_lake)["revisions"]
    assert (first["reason"], first["changed"]) == ("closed", {})
    assert second["reason"] == "late_records"
    assert {name for name in second["changed"] if not name.endswith("_raw")} == {
        "bad_minutes",
        "latency_budget_left_minutes",
    }
    assert second["changed"]["bad_minutes"] == [9, 10]


def test_samples_come_from_bronze_records_of_on_time_vantages(full_lake: Path) -> None:
    samples = {minute["minute"]: minute for minute in _json(full_lake)["samples"]}
    assert set(samples) == {
        _minute_text(k) for k in (known_week.DECIDES_LATENCY, known_week.DECIDES_CENSORED, 2_000)
    }
    deciding = samples[_minute_text(known_week.DECIDES_LATENCY)]
    assert deciding["source"] == "bronze"
    client = {broker["broker_id"]: broker for broker in deciding["brokers"] if broker["leg"] == "client"}
    assert (client[1]["attempted"], len(client[1]["latencies_us"])) == (200, 200)
    # The p99 of 200 successes is the 198th, which is what the week is.
    assert client[1]["latencies_us"][197] == known_week.LATENCY_P99_US
    lossy = {
        (broker["broker_id"], broker["leg"]): broker for broker in samples[_minute_text(2_000)]["brokers"]
    }
    assert lossy[3, "client"]["failures"] == {"MSG_TIMED_OUT": 1}
    assert lossy[3, "leader"]["attempted"] == 200


def test_corrections_that_may_apply_to_the_week_are_listed(full_lake: Path, tmp_path: Path) -> None:
    assert {correction["correction_id"] for correction in _json(full_lake)["corrections"]} == {
        "ours",
        "weekly",
    }
    elsewhere = tmp_path / "fleet.yaml"
    elsewhere.write_text(
        f"lake: {full_lake}\nclusters: [{{id: {known_week.CLUSTER}, bootstrap: o:1, region: us}}]\n"
    )
    answer = CliRunner().invoke(
        explain, [known_week.CLUSTER, str(known_week.WEEK), "--config", str(elsewhere), "--json"]
    )
    assert [correction["correction_id"] for correction in json.loads(answer.stdout)["corrections"]] == [
        "ours"
    ]


def test_evidence_replaces_expired_silver_and_bronze(expired_lake: Path) -> None:
    answer = _json(expired_lake)
    assert answer["notes"] == [
        "silver no longer holds the week's minutes; this explanation comes from the evidence of 13 minutes"
    ]
    latency, censored, availability = answer["decided"]
    assert latency["words"] == "29.979 ms, taken from the week's row"
    assert latency["deciding"] == [{"minute": _minute_text(known_week.DECIDES_LATENCY), "broker_id": 1}]
    assert censored["deciding"][0]["minute"] == _minute_text(known_week.DECIDES_CENSORED)
    assert availability["deciding"] == [{"minute": _minute_text(2_000), "broker_id": 3}]
    assert (answer["minutes_held"], answer["brokers"], answer["unmeasured"]) == (0, [], [])
    (bad,) = answer["bad_stretches"]
    assert (bad["start"], bad["minutes"], bad["broker_id"]) == (_minute_text(1_000), 10, 2)
    assert {minute["source"] for minute in answer["samples"]} == {"evidence"}


def test_csv_contains_the_kept_evidence_and_stderr_a_note(expired_lake: Path) -> None:
    arguments = [known_week.CLUSTER, str(known_week.WEEK), "--lake", str(expired_lake), "--csv"]
    result = CliRunner().invoke(explain, arguments)
    assert len(list(csv.DictReader(StringIO(result.stdout)))) == 13
    assert result.stderr.startswith("Note: silver no longer holds the week's minutes")


def test_without_evidence_only_the_weeks_row_is_explained(tmp_path: Path) -> None:
    known_week.write_gold(tmp_path)
    answer = _json(tmp_path)
    assert "the week's row alone, as no evidence was kept" in answer["notes"][0]
    assert (answer["samples"], answer["bad_stretches"]) == ([], [])
    assert "availability_ratio: 99.9920%, as stored for the week" in _run(tmp_path)


def test_expired_samples_are_reported(tmp_path: Path) -> None:
    known_week.write_gold(tmp_path)
    known_week.write_silver(tmp_path)
    assert {minute["source"] for minute in _json(tmp_path)["samples"]} == {"expired"}
    assert "samples of 2026-03-08 22:19: expired, and not kept as evidence" in _run(tmp_path)


def test_corrected_values_are_shown_with_raw_values(tmp_path: Path) -> None:
    known_week.write_silver(tmp_path)
    known_week.write_gold(tmp_path)
    corrected = {"latency_p99_us": 29_970, "latency_p99_us_raw": known_week.LATENCY_P99_US, "revision": 3}
    week = {
        "cluster_id": known_week.CLUSTER,
        "week": known_week.WEEK,
        "closed": True,
        "minutes_expected": known_week.MINUTES,
    }
    censored = {
        "latency_p99_censored_us": known_week.CENSORED_P99_US,
        "availability_p99": known_week.AVAILABILITY_P99,
    }
    put(tmp_path, tables.CLUSTER_WEEKS, [week | censored | corrected | {"bad_minutes": 0}])
    answer = _json(tmp_path)
    assert answer["corrected"] == {"latency_p99_us": [29_970, 29_979]}
    assert answer["decided"][0]["words"].endswith("is 29.979 ms; with corrections 29.970 ms")
    assert answer["decided"][0]["deciding"][0]["minute"] == _minute_text(9_970)


def test_a_mismatch_between_silver_and_the_week_is_noted(tmp_path: Path) -> None:
    known_week.write_gold(tmp_path)
    rows = [
        {
            "cluster_id": known_week.CLUSTER,
            "minute": known_week.at(0),
            "day": known_week.WEEK,
            "latency_p99_us": 7,
        }
    ]
    counts = {"brokers_measured": 1, "brokers_expected": 1, "attempted": 100, "succeeded": 100}
    put(tmp_path, tables.CLUSTER_MINUTES, [rows[0] | counts])
    notes = _json(tmp_path)["notes"]
    assert notes[0] == "silver holds 1 of the week's 10,080 minutes"
    assert notes[1] == "silver now gives latency_p99_us = 7, but revision 2 has 29979"


def test_csv_contains_the_weeks_minutes(full_lake: Path) -> None:
    rows = list(csv.DictReader(StringIO(_run(full_lake, "--csv"))))
    assert len(rows) == known_week.MINUTES
    assert (rows[0]["minute"], rows[0]["latency_p99_us"]) == ("2026-03-02T00:00:00Z", "20000")
    assert sum(row["bad"] == "true" for row in rows) == 10


def test_the_text_contains_every_section(full_lake: Path) -> None:
    text = _run(full_lake)
    for part in (
        "orders-eu, week 2026-03-02, closed, revision 2",
        "determined by 2026-03-08 22:19 (broker 1)",
        "and 145 minutes more with the same value",
        "bad_minutes: 10 over 100 ms; budget 100.8 min, left 90.8 min",
        "2026-03-02 16:40 to 16:50",
        "coverage: 99.87% of broker-minutes; at least one broker was measured in 10,068 of 10,080 minutes",
        "maintenance (ada)",
        "bad_minutes: 9 -> 10",
        "samples of 2026-03-08 22:19, from bronze:",
        "definition v1:",
    ):
        assert part in text


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["nobody", "2026-03-02"], "no cluster 'nobody'; the lake has orders-eu"),
        (
            ["orders-eu", "2026-01-01"],
            "orders-eu: no week contains 2026-01-01; the weeks are 2026-03-02 to 2026-03-02",
        ),
    ],
)
def test_wrong_input_is_one_line_and_exit_code_2(
    expired_lake: Path, arguments: list[str], message: str
) -> None:
    result = CliRunner().invoke(explain, [*arguments, "--lake", str(expired_lake)], env={"COLUMNS": "300"})
    assert result.exit_code == 2
    assert message in result.stderr
    assert result.stderr.count("\n") == 1


def test_an_empty_lake_is_a_one_line_error(tmp_path: Path) -> None:
    result = CliRunner().invoke(explain, ["orders-eu", "2026-03-02", "--lake", str(tmp_path / "none")])
    assert result.exit_code == 2
    assert "no week yet" in result.stderr
