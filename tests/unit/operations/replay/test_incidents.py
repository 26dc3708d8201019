"""Every change of rules meets what has happened to real brokers: tests/incidents, kept by tests/chaos."""

from pathlib import Path

import pytest

from fleetgauge_core.detection import DEFAULT_THRESHOLDS
from fleetgauge_operations.replay.comparison import ReplayVerdict, compare_findings
from fleetgauge_operations.replay.incident import SUFFIX, Incident

INCIDENTS = sorted((Path(__file__).parents[3] / "incidents").glob(f"*{SUFFIX}"))


def test_every_kind_of_finding_of_a_broker_or_a_way_has_happened() -> None:
    named = {one.to_state.value for path in INCIDENTS for one in Incident.read(path).wanted if one.is_alert}
    assert named >= {"BROKER_DOWN", "DEGRADED", "PATH", "CLUSTER_DOWN"}


@pytest.mark.parametrize("path", INCIDENTS, ids=[path.name.removesuffix(SUFFIX) for path in INCIDENTS])
def test_todays_rules_find_what_was_to_be_found(path: Path) -> None:
    told = compare_findings(Incident.read(path), DEFAULT_THRESHOLDS)
    assert {one.verdict for one in told} == {ReplayVerdict.SAME}
