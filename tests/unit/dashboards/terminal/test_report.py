"""The weekly review of a lake: the tables' numbers, the same bytes again, and text that stays text."""

import json
import subprocess
import sys
from collections.abc import Iterable
from datetime import UTC, date, datetime, timedelta
from html.parser import HTMLParser
from pathlib import Path
from random import Random
from typing import Any

import pytest
from click.testing import CliRunner, Result

from fleetgauge_core import tables
from fleetgauge_dashboards.terminal.report import report
from tests.browser.lake import put
from tests.chromium import CHROMIUM

WEEK = date(2026, 3, 2)
START = datetime(2026, 3, 2, tzinfo=UTC)
END = START + timedelta(days=7)
HOSTILE = "<script>alert(1)</script>|[a](javascript:alert(2))\n# b"
FLEET = """
name: shop
lake: {lake}
page_url: https://pages.example/
clusters: [{{id: orders-eu, bootstrap: "o:1"}}]
"""

#: Per cluster: p99 in the week before and in this week, bad minutes, and their cause.
CLUSTERS = {
    "orders-eu": ((40_000, 90_000), (3, 130), "broker_down"),
    "payments-us": ((60_000, 30_000), (140, 2), "roll"),
    "search-ap": ((50_000, 51_000), (0, 0), None),
}


def cluster_week(
    cluster: str, week: date, p99_us: int, bad: int, cause: str | None, **changed: Any
) -> dict[str, Any]:
    values = {
        "cluster_id": cluster,
        "week": week,
        "revision": 1,
        "closed": True,
        "latency_p99_us": p99_us,
        "latency_p99_censored_us": p99_us,
        "availability_ratio": 0.9999,
        "bad_minutes": bad,
        "latency_budget_minutes": 100.8,
        "latency_budget_left_minutes": 100.8 - bad,
        "availability_budget_minutes": 5.04,
        "availability_spent_minutes": 1.0,
        "coverage": 0.993,
        "causes": {cause: bad} if cause else {},
        "computed_at": END + timedelta(hours=49),
    }
    return values | changed


def fleet_week(
    week: date, metric: str, p99: float, segment: tuple[str, str] = ("fleet", "")
) -> dict[str, Any]:
    return {
        "week": week,
        "metric": metric,
        "segment": segment[0],
        "segment_value": segment[1],
        "revision": 1,
        "median": p99 / 2,
        "p90": p99 * 0.9,
        "p99": p99,
        "clusters": 3,
        "clusters_excluded": 1,
        "closed": True,
    }


def write(root: Path, more: Iterable[dict[str, Any]] = ()) -> None:
    """Write a closed week with one row for each section of the review."""
    last = WEEK - timedelta(days=7)
    weeks = [
        cluster_week(name, week, p99s[place], bads[place], cause)
        for name, (p99s, bads, cause) in CLUSTERS.items()
        for place, week in enumerate((last, WEEK))
    ]
    weeks.append(cluster_week("quiet-1", WEEK, 20_000, 0, None, coverage=0.415))
    revised = {"revision": 2, "revision_reason": "late_records", "computed_at": START + timedelta(days=2)}
    weeks.append(cluster_week("search-ap", last, 50_000, 0, None, **revised))
    put(root, tables.CLUSTER_WEEKS, [*weeks, *more])
    fleet = [
        fleet_week(WEEK - timedelta(days=7 * back), "latency_p99_us", 90_000 - 1_000 * back)
        for back in range(9)
    ]
    tier = ("tier", "multi-zone")
    fleet.append(fleet_week(WEEK, "latency_budget_left_minutes", -29.2, tier))
    put(root, tables.FLEET_WEEKS, fleet)
    causes = ((WEEK, "broker_down", 130), (WEEK, "roll", 2), (last, "roll", 140))
    put(
        root,
        tables.BURN_CAUSES,
        [
            {
                "week": week,
                "segment": "fleet",
                "segment_value": "",
                "cause": cause,
                "bad_minutes": bad,
                "clusters": 1,
            }
            for week, cause, bad in causes
        ],
    )
    put(root, tables.HEALTH_EVENTS, events("hang", START + timedelta(hours=9), 400))
    put(root, tables.ACTIONS, [action(START + timedelta(hours=9, seconds=36))])
    refused = [
        {"source": str(n), "value": b"", "reason": "future", "ingested_at": START + timedelta(hours=n)}
        for n in range(3)
    ]
    put(root, tables.QUARANTINE, [*refused, {"source": "later", "reason": "future", "ingested_at": END}])


def events(name: str, at: datetime, lasted_s: int) -> list[dict[str, Any]]:
    steps = (
        (0, "HEALTHY", "SUSPECT"),
        (6, "SUSPECT", "BROKER_DOWN"),
        (6 + lasted_s, "BROKER_DOWN", "HEALTHY"),
    )
    return [
        {
            "event_id": f"{name}-{n}",
            "fingerprint": name,
            "cluster_id": "orders-eu",
            "broker_id": 2,
            "at": at + timedelta(seconds=s),
            "from_state": was,
            "to_state": is_,
            "kind": "BROKER_DOWN",
            "evidence": "{}",
        }
        for n, (s, was, is_) in enumerate(steps)
    ]


def action(at: datetime, **changed: Any) -> dict[str, Any]:
    detail = {"outcome": "refused", "words": ["second_sick: broker 3 is slow as well"]}
    values = {
        "action_id": f"{at}",
        "kind": "demote",
        "cluster_id": "orders-eu",
        "broker_id": 2,
        "starts": at,
        "reason": "DEGRADED",
        "author": "on duty",
        "detail": json.dumps(detail),
    }
    return values | changed


@pytest.fixture(scope="module")
def lake(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("review")
    write(root)
    return root


def run_report(*arguments: object) -> Result:
    return CliRunner().invoke(report, [str(argument) for argument in arguments])


def read_review(*arguments: object) -> str:
    result = run_report(*arguments)
    assert result.exit_code == 0, result.output
    return result.stdout


def test_the_review_lists_changes_causes_incidents_and_actions(lake: Path) -> None:
    review = read_review(WEEK, "--lake", lake)
    for line in (
        "Week of Mon 02 Mar 2026, 2026-03-02 00:00:00 UTC to 2026-03-09 00:00:00 UTC, 10,080 minutes; "
        "closed.",
        "Of 4 clusters 3 met the latency objective and 4 the availability objective; 132 minutes summed "
        "over all clusters exceeded the latency objective.",
        "| Latency p99 | 45.0 ms | 81.0 ms | 90.0 ms | 89.0 ms | ▁▂▃▄▅▅▆▇█ | 3 clusters: p99 is the worst "
        "cluster |",
        "### Newly over budget",
        "| orders-eu | 130 | 3 | −29.2 min | 4.04 min | broker_down |",
        "### Recovered",
        "| payments-us | 2 | 140 | 98.8 min | 4.04 min | roll |",
        "| orders-eu | 40.0 ms | 90.0 ms | 2.25 | broker_down |",
        "| payments-us | 60.0 ms | 30.0 ms | 0.50 | roll |",
        "New clusters: quiet-1.",
        "| broker_down | 130 | 98.4% | ██████████ | 1 | 0 |",
        "| roll | 2 | 1.5% | █ | 1 | 140 |",
        "1 alert opened. Opened 6 s after the first sign in the median of 1. No action on them is recorded.",
        "| 2026-03-02 09:00:06 UTC | BROKER_DOWN | orders-eu broker 2 | 6 s | – | 6 min 40 s |",
        "| 2026-03-02 09:00:36 UTC | demote | orders-eu broker 2 | on duty | refused | – | "
        "DEGRADED; second_sick: broker 3 is slow as well |",
        "| multi-zone | 3 | −14.6 min | −26.3 min | −29.2 min | – |",
        "Excluded for coverage below 90%: 1 cluster: quiet-1 (41.5%).",
        "| future | 3 |",
        "| 2026-02-23 | search-ap | 2 | late_records | 50.0 ms |",
    ):
        assert line in review.splitlines(), line


@pytest.mark.parametrize("seed", range(3))
def test_the_json_equals_the_tables(tmp_path: Path, seed: int) -> None:
    random = Random(seed)
    rows = [
        cluster_week(f"c{n:02}", WEEK, random.randrange(1_000, 10_000_000), random.randrange(300), "unknown")
        for n in range(40)
    ]
    quantiles = [
        fleet_week(WEEK, metric, random.random() * 1e6)
        for metric in (
            "latency_p99_us",
            "availability_ratio",
            "availability_p99",
            "latency_budget_left_minutes",
        )
    ]
    put(tmp_path, tables.CLUSTER_WEEKS, rows)
    put(tmp_path, tables.FLEET_WEEKS, quantiles)
    review = json.loads(read_review(WEEK, "--lake", tmp_path, "--json"))
    for headline, row in zip(review["headlines"], quantiles, strict=True):
        assert headline["now"] == {
            name: row[name] for name in ("median", "p90", "p99", "clusters", "clusters_excluded")
        }
    over = [row for row in rows if row["bad_minutes"] > 100.8]
    assert review["budgets"] == {
        "clusters": 40,
        "bad_minutes": sum(row["bad_minutes"] for row in rows),
        "latency_kept": 40 - len(over),
        "availability_kept": 40,
    }
    bad = {row["cluster_id"]: row["bad_minutes"] for row in rows}
    assert {cluster["cluster_id"]: cluster["bad_minutes"] for cluster in review["changes"]["newly_over"]} == {
        row["cluster_id"]: bad[row["cluster_id"]] for row in over
    }
    assert len(review["worst"]) == 10


@pytest.mark.parametrize("form", ["md", "html"])
def test_the_review_of_a_closed_week_does_not_change_later(tmp_path: Path, form: str) -> None:
    write(tmp_path)
    before = read_review(WEEK, "--lake", tmp_path, "--format", form)
    put(tmp_path, tables.HEALTH_EVENTS, events("later", END + timedelta(hours=1), 60))
    put(tmp_path, tables.ACTIONS, [action(END + timedelta(days=3))])
    put(tmp_path, tables.CLUSTER_WEEKS, [cluster_week("orders-eu", WEEK + timedelta(days=7), 1, 1, None)])
    assert read_review(WEEK, "--lake", tmp_path, "--format", form) == before


def test_a_revision_of_the_week_is_listed(tmp_path: Path) -> None:
    write(
        tmp_path,
        [cluster_week("orders-eu", WEEK, 88_000, 131, "roll", revision=2, revision_reason="late_records")],
    )
    review = read_review(WEEK, "--lake", tmp_path)
    assert "10,080 minutes; closed, revision 2." in review
    assert "| orders-eu | 40.0 ms | 88.0 ms | 2.20 | roll |" in review


def test_the_default_is_the_newest_ended_week(lake: Path, tmp_path: Path) -> None:
    assert read_review("--lake", lake) == read_review(WEEK, "--lake", lake)
    today = datetime.now(UTC).date()
    put(
        tmp_path,
        tables.CLUSTER_WEEKS,
        [cluster_week("a", today - timedelta(days=today.weekday()), 1, 1, None, closed=False)],
    )
    assert "open week, to date." in read_review("--lake", tmp_path)


class _PageContent(HTMLParser):
    """Tags, addresses and text of a page."""

    def __init__(self) -> None:
        super().__init__()
        self.tags: set[str] = set()
        self.addresses: list[str] = []
        self.text = ""

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.add(tag)
        self.addresses += [value or "" for name, value in attrs if name in ("href", "src")]

    def handle_data(self, data: str) -> None:
        self.text += data


def test_a_hostile_name_stays_text_and_all_links_lead_to_the_pages(tmp_path: Path) -> None:
    root = tmp_path / "lake"
    write(root, [cluster_week(HOSTILE, WEEK, 900_000, 500, HOSTILE, coverage=0.2)])
    config = tmp_path / "fleet.yaml"
    config.write_text(FLEET.format(lake=root))
    seen = _PageContent()
    seen.feed(read_review(WEEK, "--config", config, "--format", "html"))
    assert "script" not in seen.tags
    assert HOSTILE.replace("\n", " ") in seen.text
    assert seen.addresses
    assert all(address.startswith("https://pages.example/") for address in seen.addresses)
    assert "https://pages.example/cluster/orders-eu?week=2026-03-02" in seen.addresses
    assert "https://pages.example/alerts?cluster=orders-eu&alert=hang-0" in seen.addresses


def test_the_html_file_is_self_contained(lake: Path) -> None:
    seen = _PageContent()
    seen.feed(read_review(WEEK, "--lake", lake, "--format", "html"))
    assert seen.addresses == []
    assert not {"script", "link", "img", "iframe"} & seen.tags
    assert {"table", "h1", "main"} < seen.tags


@pytest.mark.skipif(not CHROMIUM.exists(), reason=f"{CHROMIUM} is missing: apt-get install chromium")
def test_a_pdf_is_reproducible(lake: Path, tmp_path: Path) -> None:
    for name in ("a.pdf", "b.pdf"):
        read_review(WEEK, "--lake", lake, "--format", "pdf", "--output", tmp_path / name)
    first = (tmp_path / "a.pdf").read_bytes()
    assert first.startswith(b"%PDF-")
    assert b"D:20260311000000+00'00'" in first
    assert first == (tmp_path / "b.pdf").read_bytes()


def test_a_pdf_without_chromium_is_a_one_line_error(
    lake: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    result = run_report(WEEK, "--lake", lake, "--format", "pdf", "--output", tmp_path / "a.pdf")
    assert (result.exit_code, result.stdout) == (2, "")
    assert "no Chromium or Chrome in PATH; use --format html" in result.stderr


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--lake", "{lake}/none"], "no week yet"),
        (
            ["2020-01-01", "--lake", "{lake}"],
            "no week contains 2020-01-01; the weeks are 2026-01-05 to 2026-03-02",
        ),
        (
            ["--lake", "{lake}", "--output", "{lake}/none/a.md"],
            "none is no folder that this user can write to",
        ),
        (["--lake", "{lake}", "--format", "docx"], "'docx' is not one of 'md', 'html', 'pdf'"),
    ],
)
def test_wrong_input_is_one_line_and_exit_code_2(lake: Path, arguments: list[str], message: str) -> None:
    result = run_report(*(argument.format(lake=lake) for argument in arguments))
    assert result.exit_code == 2
    assert message in result.output.replace("\n", " ")
    assert "Traceback" not in result.output


def test_the_command_imports_neither_spark_nor_dash() -> None:
    module = "fleetgauge_dashboards.terminal.report_command"
    code = f"import sys, {module}; print({{'pyspark', 'dash'}} & set(sys.modules))"
    assert subprocess.check_output([sys.executable, "-c", code], text=True) == "set()\n"
