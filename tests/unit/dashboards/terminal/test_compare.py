"""`fleetgauge compare` over a lake of 24 clusters."""

import csv
import json
from datetime import date, timedelta
from io import StringIO
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from fleetgauge_core import tables
from fleetgauge_dashboards.terminal.compare import compare
from tests.browser.lake import put

NEWEST = date(2026, 3, 23)
#: 12 clusters on ssd at 40.0 to 41.1 ms, 12 on nvme at 30.0 to 31.1 ms; c23 is hardly measured.
LATENCY_US = {f"c{n:02}": (40_000 if n < 12 else 30_000) + 100 * (n % 12) for n in range(24)}


def _week(cluster: str, back: int, **changed: Any) -> dict[str, Any]:
    """The newest week is open; week 3 back was 5 ms slower everywhere."""
    return {
        "cluster_id": cluster,
        "week": NEWEST - timedelta(days=7 * back),
        "revision": min(back, 1),
        "closed": back > 0,
        "coverage": 0.5 if cluster == "c23" else 0.99,
        "latency_p99_us": LATENCY_US[cluster] + (5_000 if back == 3 else 0) + (90_000 if back == 0 else 0),
        "availability_ratio": 0.9999 if cluster < "c12" else 0.9998,
        "bad_minutes": 3,
    } | changed


@pytest.fixture(scope="module")
def fleet(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the fleet file of a lake in the same folder."""
    root = tmp_path_factory.mktemp("compared")
    rows = [
        _week(cluster_id, back)
        for cluster_id in LATENCY_US
        for back in range(4)
        if (cluster_id, back) != ("c05", 3)
    ]
    put(root / "lake", tables.CLUSTER_WEEKS, rows)
    clusters = [
        {"id": cluster_id, "bootstrap": "b:1", "labels": {"disk": "ssd" if cluster_id < "c12" else "nvme"}}
        for cluster_id in LATENCY_US
    ]
    path = root / "fleet.yaml"
    path.write_text(json.dumps({"clusters": clusters}))
    return path


def _run(fleet: Path, *arguments: str) -> str:
    result = CliRunner().invoke(compare, [*arguments, "--config", str(fleet)])
    assert result.exit_code == 0, result.output
    return result.stdout


def test_clusters_with_two_label_values_are_compared(fleet: Path) -> None:
    answer = json.loads(_run(fleet, "--by", "disk=ssd,nvme", "--json"))
    assert answer["weeks"] == ["2026-03-02", "2026-03-09", "2026-03-16"]
    assert (answer["sides"], answer["clusters_a"], answer["clusters_b"]) == (["ssd", "nvme"], 12, 11)
    # c00 to c11 in the middle of three weeks, c12 to c22 alike.
    assert (answer["median_a"], answer["median_b"]) == (40_550, 30_500)
    assert answer["difference"] == -10_050
    assert -11_100 <= answer["low"] <= -10_050 <= answer["high"] <= -9_000
    assert (answer["verdict"], answer["means_little"], answer["left_out"]) == ("better", False, ["c23"])


def test_lower_availability_is_worse(fleet: Path) -> None:
    answer = json.loads(_run(fleet, "--by", "disk=ssd,nvme", "--metric", "availability_ratio", "--json"))
    assert (answer["verdict"], answer["difference"]) == ("worse", pytest.approx(-0.0001))


def test_equal_groups_are_not_told_apart(fleet: Path) -> None:
    answer = json.loads(_run(fleet, "--by", "disk=ssd,nvme", "--metric", "bad_minutes", "--json"))
    assert (answer["verdict"], answer["low"], answer["high"]) == ("not told apart", 0, 0)


def test_the_same_clusters_before_and_after(fleet: Path) -> None:
    answer = json.loads(_run(fleet, "--before", "2026-03-02", "--after", "2026-03-11", "--json"))
    assert (answer["sides"], answer["weeks"]) == (["before", "after"], ["2026-03-02", "2026-03-09"])
    assert (answer["difference"], answer["low"], answer["high"]) == (-5_000, -5_000, -5_000)
    assert (answer["clusters_a"], answer["clusters_b"], answer["left_out"]) == (22, 22, ["c05", "c23"])
    assert answer["verdict"] == "better"


def test_before_and_after_of_the_clusters_with_a_label(fleet: Path) -> None:
    arguments = ("--before", "2026-03-02", "--after", "2026-03-09", "--by", "disk=nvme", "--csv")
    rows = list(csv.DictReader(StringIO(_run(fleet, *arguments))))
    assert len(rows) == 22
    assert rows[0] == {"side": "before", "cluster_id": "c12", "latency_p99_us": "35000"}
    assert rows[11] == {"side": "after", "cluster_id": "c12", "latency_p99_us": "30000"}


def test_the_text_of_a_before_after_comparison_is_the_median_change(fleet: Path) -> None:
    text = _run(fleet, "--before", "2026-03-02", "--after", "2026-03-09")
    assert "median change of a cluster: −5.00 ms, 95% interval −5.00 ms to −5.00 ms: better" in text


def test_the_text_contains_medians_interval_and_verdict(fleet: Path) -> None:
    text = _run(fleet, "--by", "disk=ssd,nvme", "--weeks", "1")
    assert "latency_p99_us, week 2026-03-16" in text
    assert "nvme compared with ssd: −10.1 ms, 95% interval −10." in text
    assert text.split("interval")[1].splitlines()[0].endswith(": better")
    assert "1 cluster excluded, without a week of sufficient coverage: c23" in text


def test_an_interval_of_few_clusters_is_marked_unreliable(fleet: Path, tmp_path: Path) -> None:
    clusters = [
        {"id": cluster_id, "bootstrap": "b:1", "region": region}
        for cluster_id, region in (("c00", "a"), ("c12", "b"))
    ]
    small_fleet = tmp_path / "fleet.yaml"
    small_fleet.write_text(json.dumps({"lake": str(fleet.parent / "lake"), "clusters": clusters}))
    text = _run(small_fleet, "--by", "region=a,b")
    assert "95% interval −10.0 ms to −10.0 ms: too few to tell" in text
    assert "The interval is unreliable: 1 cluster, at least 10 are needed." in text


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([], "nothing to compare: give --by LABEL=A,B, or --before WEEK --after WEEK"),
        (["--by", "disk=ssd"], "--by disk=ssd: use LABEL=A,B with two different values"),
        (["--by", "disk=ssd,ssd"], "two different values"),
        (["--by", "disk=ssd,hdd"], "no cluster has disk=hdd; values of disk: nvme, ssd"),
        (["--by", "team=a,b"], "no cluster has team=a; labels: disk, tier"),
        (["--before", "2026-03-02"], "--before and --after must be given together"),
        (
            ["--before", "2026-03-02", "--after", "2026-03-03"],
            "are in the same week, 2026-03-02: give two weeks",
        ),
        (
            ["--before", "2025-03-02", "--after", "2026-03-03"],
            "no week contains 2025-03-02; the weeks are 2026-03-02 to",
        ),
        (
            ["--before", "2026-03-02", "--after", "2026-03-09", "--by", "disk=a,b"],
            "with --before and --after use LABEL=A",
        ),
        (
            ["--by", "disk=ssd,nvme", "--metric", "availability_p99"],
            "has no availability_p99 with 90% coverage",
        ),
    ],
)
def test_wrong_input_is_one_line_and_exit_code_2(fleet: Path, arguments: list[str], message: str) -> None:
    result = CliRunner().invoke(compare, [*arguments, "--config", str(fleet)])
    assert result.exit_code == 2
    assert message in result.stderr
    assert result.stderr.count("\n") == 1


def test_labels_need_the_fleet_file(fleet: Path) -> None:
    result = CliRunner().invoke(compare, ["--by", "disk=ssd,nvme", "--lake", str(fleet.parent / "lake")])
    assert result.exit_code == 2
    assert "--by needs the clusters' labels: give the fleet file with --config" in result.stderr
