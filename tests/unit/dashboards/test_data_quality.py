"""Data quality is summarized from checks, quarantine, ingestion delay and revisions."""

from datetime import date, timedelta
from pathlib import Path

import pytest

from fleetgauge_core.lake.table_store import TableStore
from fleetgauge_core.tables import QUALITY
from fleetgauge_dashboards.links import QualityView
from fleetgauge_dashboards.pages import quality
from fleetgauge_dashboards.reader import LakeReader
from fleetgauge_dashboards.reader.data_quality import LOOK_BACK, QualityReader
from fleetgauge_dashboards.views.data_quality import DataQuality, summarize_data_quality
from fleetgauge_dashboards.views.record_losses import SUITE
from tests.browser.lake import ORDERS, lost_records, put
from tests.unit.dashboards.served import NOW, LakeFixture, open_lake, visible_text


@pytest.fixture
def lake(tmp_path: Path) -> LakeFixture:
    return open_lake(tmp_path)


def _summarize(lake: LakeFixture) -> DataQuality:
    return summarize_data_quality(QualityReader(lake.context.lake).read(NOW, NOW), NOW, LOOK_BACK.days)


def test_a_failing_check_comes_first(lake: LakeFixture) -> None:
    failing, passing = (gate for gate in _summarize(lake).gates if gate.suite == "silver")
    assert (failing.expectation, failing.holds, failing.failed, failing.checks) == (
        "latency is positive",
        False,
        1,
        10,
    )
    assert failing.observed == "3 of 1,080 rows"
    assert (passing.expectation, passing.holds, passing.failed) == ("counts add up", True, 0)


def test_quarantined_records_are_counted_by_day_and_reason(lake: LakeFixture) -> None:
    quarantined = _summarize(lake).quarantined
    assert quarantined.total == 5
    assert quarantined.days[-1] == date(2026, 3, 5)
    assert len(quarantined.days) == LOOK_BACK.days + 1
    assert {reason: counts[-2:] for reason, counts in quarantined.by_reason.items()} == {
        "not_decodable": (1, 2),
        "too_old": (1, 1),
    }


def test_ingestion_delay_counts_from_the_end_of_the_minute(lake: LakeFixture) -> None:
    # Records of the small lake are ingested 80 to 119 s after their minute's begin.
    number = next(figure for figure in _summarize(lake).key_figures if figure.definition == "lateness")
    assert number.value == "59 s"
    assert number.notes[1] == "over 360 records of the last hour of data"


def test_a_late_revision_is_listed_with_its_reason(lake: LakeFixture) -> None:
    (revised,) = _summarize(lake).revised
    assert (revised.cluster_id, revised.revision, revised.reason) == (ORDERS, 2, "late records")
    assert revised.week == lake.known.week - timedelta(days=14)


def test_an_empty_lake_has_no_checks_records_or_revisions(tmp_path: Path) -> None:
    data_quality = summarize_data_quality(
        QualityReader(LakeReader(str(tmp_path))).read(NOW, None), NOW, LOOK_BACK.days
    )
    assert data_quality.gates == data_quality.revised == ()
    assert data_quality.quarantined.total == 0
    assert [number.value for number in data_quality.key_figures] == ["–", "0", "0", "–", "0"]


def test_the_page_shows_checks_revisions_and_quarantine(lake: LakeFixture) -> None:
    filled = lake.fill(quality.PAGE, QualityView())
    assert "▲ fails silver latency is positive 1 of 10" in visible_text(filled["quality-gates.children"])
    assert "orders-eu Mon 16 Feb 2026 2 late records" in visible_text(filled["quality-revised.children"])
    assert {bar.name for bar in filled["quality-refused.figure"].data} == {"not_decodable", "too_old"}


def test_lost_records_are_counted_and_listed(lake: LakeFixture) -> None:
    recreated = lost_records(NOW - timedelta(hours=1), "recreated", 34, exact=False, sequences_missing=40)
    put(Path(lake.context.lake.root), QUALITY, [recreated])
    data_quality = _summarize(lake)
    assert [(loss.records, loss.is_exact, loss.missing_minutes) for loss in data_quality.losses] == [
        (34, False, 40),
        (1200, True, None),
    ]
    (figure,) = (figure for figure in data_quality.key_figures if figure.definition == "losses")
    assert figure.value == "at least 1,234"
    (gate,) = (gate for gate in data_quality.gates if gate.suite == SUITE)
    assert (gate.failed, gate.observed) == (2, "topic probe-minutes was recreated")
    text = visible_text(lake.fill(quality.PAGE, QualityView())["quality-losses.children"])
    assert "at least 34 40 topic probe-minutes was recreated" in text
    assert "1,200 – topic probe-minutes was expired" in text


def test_a_lake_that_lost_nothing_says_so(tmp_path: Path) -> None:
    lake = open_lake(tmp_path)
    checks = TableStore(str(tmp_path), QUALITY)
    checks.replace([], checks.rows(), {"suite": [SUITE, "silver"]})
    text = visible_text(lake.fill(quality.PAGE, QualityView())["quality-losses.children"])
    assert text.startswith("No record was lost")
