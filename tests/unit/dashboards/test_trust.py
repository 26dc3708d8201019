"""Data quality: gates, quarantine, lateness and revisions as the tables have them."""

from datetime import date, timedelta
from pathlib import Path

import pytest

from fleetgauge_dashboards.links import QualityView
from fleetgauge_dashboards.pages import quality
from fleetgauge_dashboards.reader import Lake
from fleetgauge_dashboards.reader.trust import LOOK_BACK, TrustReader
from fleetgauge_dashboards.views.trust import Trusted, trusted
from tests.browser.lake import ORDERS
from tests.unit.dashboards.served import NOW, Served, said, served


@pytest.fixture
def lake(tmp_path: Path) -> Served:
    return served(tmp_path)


def _of(lake: Served) -> Trusted:
    return trusted(TrustReader(lake.context.lake).trust(NOW, NOW), NOW, LOOK_BACK.days)


def test_a_gate_that_does_not_hold_comes_first(lake: Served) -> None:
    broken, well = _of(lake).gates
    assert (broken.expectation, broken.holds, broken.failed, broken.checks) == (
        "latency is positive",
        False,
        1,
        10,
    )
    assert broken.observed == "3 of 1,080 rows"
    assert (well.expectation, well.holds, well.failed) == ("counts add up", True, 0)


def test_what_was_refused_is_counted_by_day_and_reason(lake: Served) -> None:
    refused = _of(lake).refused
    assert refused.total == 5
    assert refused.days[-1] == date(2026, 3, 5)
    assert len(refused.days) == LOOK_BACK.days + 1
    assert {reason: counts[-2:] for reason, counts in refused.by_reason.items()} == {
        "not_decodable": (1, 2),
        "too_old": (1, 1),
    }


def test_lateness_counts_from_the_minutes_end(lake: Served) -> None:
    # Records of the small lake are ingested 80 to 119 s after their minute's begin.
    number = next(one for one in _of(lake).numbers if one.definition == "lateness")
    assert number.value == "59 s"
    assert number.notes[1] == "over 360 records of the last hour of data"


def test_a_revised_week_leads_to_why(lake: Served) -> None:
    (revised,) = _of(lake).revised
    assert (revised.cluster_id, revised.revision, revised.reason) == (ORDERS, 2, "late records")
    assert revised.week == lake.known.week - timedelta(days=14)


def test_an_empty_lake_has_nothing_to_say(tmp_path: Path) -> None:
    found = trusted(TrustReader(Lake(str(tmp_path))).trust(NOW, None), NOW, LOOK_BACK.days)
    assert found.gates == found.revised == ()
    assert found.refused.total == 0
    assert [number.value for number in found.numbers] == ["–", "0", "–", "0"]


def test_the_page_says_it(lake: Served) -> None:
    filled = lake.fill(quality.PAGE, QualityView())
    assert "▲ does not hold silver latency is positive 1 of 10" in said(filled["quality-gates.children"])
    assert "orders-eu Mon 16 Feb 2026 2 late records" in said(filled["quality-revised.children"])
    assert {bar.name for bar in filled["quality-refused.figure"].data} == {"not_decodable", "too_old"}
