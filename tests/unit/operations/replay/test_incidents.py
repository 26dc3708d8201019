"""The present rules against incidents of real brokers: tests/incidents, which tests/chaos writes."""

from pathlib import Path

import pytest

from fleetgauge_core.detection import DEFAULT_THRESHOLDS
from fleetgauge_operations.replay import SUFFIX
from fleetgauge_operations.replay.comparison import ReplayVerdict, compare_findings
from fleetgauge_operations.replay.incident import Incident

INCIDENTS = sorted((Path(__file__).parents[3] / "incidents").glob(f"*{SUFFIX}"))


def test_the_incidents_include_the_finding_kinds_of_brokers_paths_and_clusters() -> None:
    kinds = {
        finding.to_state.value
        for path in INCIDENTS
        for finding in Incident.read(path).expected
        if finding.is_alert
    }
    assert kinds >= {"BROKER_DOWN", "DEGRADED", "PATH", "CLUSTER_DOWN"}


@pytest.mark.parametrize("path", INCIDENTS, ids=[path.name.removesuffix(SUFFIX) for path in INCIDENTS])
def test_the_present_rules_detect_the_expected_findings(path: Path) -> None:
    comparisons = compare_findings(Incident.read(path), DEFAULT_THRESHOLDS)
    assert {comparison.verdict for comparison in comparisons} == {ReplayVerdict.SAME}
