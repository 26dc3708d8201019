"""Compare the findings that the present rules detect in an incident with the expected ones. Pure."""

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import timedelta
from enum import StrEnum
from itertools import zip_longest

from fleetgauge_core.detection import (
    Finding,
    FindingEpisode,
    FindingSubject,
    FleetHealth,
    Thresholds,
    build_episodes,
    detect_no_data,
    expect_pulses,
    fold_pulse,
)
from fleetgauge_operations.replay.incident import Incident

#: The interval of pulses; a smaller difference counts as none.
TOLERANCE = timedelta(seconds=5)


class ReplayVerdict(StrEnum):
    """How the detected finding differs from the expected one."""

    SAME = "same"
    EARLIER = "earlier"
    LATER = "later"
    MISSED = "missed"
    """The finding was expected, and is not detected."""
    NEW = "new"
    """The finding is detected, and was not expected."""


@dataclass(frozen=True, slots=True)
class FindingComparison:
    """An expected finding beside the detected one; at most one of the two is None."""

    expected: FindingEpisode | None
    detected: FindingEpisode | None

    @property
    def either(self) -> FindingEpisode:
        """The expected finding, or the detected one if none was expected."""
        (episode, *_) = (episode for episode in (self.expected, self.detected) if episode)
        return episode

    @property
    def later_s(self) -> float | None:
        """How many seconds later than expected the finding opens; None if one of the two is missing."""
        if self.expected is None or self.detected is None:
            return None
        return (self.detected.opened_at - self.expected.opened_at).total_seconds()

    @property
    def verdict(self) -> ReplayVerdict:
        """The verdict, by the time at which the finding opens."""
        if self.later_s is None:
            return ReplayVerdict.NEW if self.detected else ReplayVerdict.MISSED
        if abs(self.later_s) < TOLERANCE.total_seconds():
            return ReplayVerdict.SAME
        return ReplayVerdict.LATER if self.later_s > 0 else ReplayVerdict.EARLIER


def detect_findings(incident: Incident, limits: Thresholds) -> tuple[Finding, ...]:
    """Return what a watch with these thresholds detects in the incident, given all of its pulses."""
    if not incident.pulses:
        return ()
    state = expect_pulses(FleetHealth(), [incident.cluster_id], incident.pulses[0].emitted_at)
    detected: list[Finding] = []
    for pulse in incident.pulses:
        state, findings = fold_pulse(state, pulse, limits)
        detected += findings
    detected += detect_no_data(state, incident.until, limits)[1]
    return tuple(finding for finding in detected if incident.since <= finding.event.at <= incident.until)


def compare_findings(incident: Incident, limits: Thresholds) -> list[FindingComparison]:
    """Return the comparisons of the episodes of each subject, by the time at which they opened."""
    expected, detected = (
        _group_by_subject(build_episodes(findings))
        for findings in (incident.expected, detect_findings(incident, limits))
    )
    comparisons = [
        FindingComparison(expected_episode, detected_episode)
        for subject in expected.keys() | detected.keys()
        for expected_episode, detected_episode in zip_longest(expected[subject], detected[subject])
    ]
    return sorted(
        comparisons,
        key=lambda comparison: (comparison.either.opened_at, comparison.either.subject.fingerprint),
    )


def _group_by_subject(
    episodes: Iterable[FindingEpisode],
) -> defaultdict[FindingSubject, list[FindingEpisode]]:
    grouped = defaultdict[FindingSubject, list[FindingEpisode]](list)
    for episode in episodes:
        grouped[episode.subject].append(episode)
    return grouped
