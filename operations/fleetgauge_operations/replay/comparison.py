"""What the rules of today find in an incident, beside what was to be found. Pure."""

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

#: Pulses come every 5 s: what differs by less is the same.
TOLERANCE = timedelta(seconds=5)


class ReplayVerdict(StrEnum):
    """How what is named today compares with what was to be named."""

    SAME = "same"
    EARLIER = "earlier"
    LATER = "later"
    MISSED = "missed"
    """To be named, and is not."""
    NEW = "new"
    """Named, and was not to be."""


@dataclass(frozen=True, slots=True)
class FindingComparison:
    """One that was to be named beside one that is named today; either may be missing."""

    wanted: FindingEpisode | None
    found: FindingEpisode | None

    @property
    def either(self) -> FindingEpisode:
        """Whose it is, in any case."""
        (one, *_) = (episode for episode in (self.wanted, self.found) if episode)
        return one

    @property
    def later_s(self) -> float | None:
        """By how much it is named later than it was to be."""
        if self.wanted is None or self.found is None:
            return None
        return (self.found.opened_at - self.wanted.opened_at).total_seconds()

    @property
    def verdict(self) -> ReplayVerdict:
        if self.later_s is None:
            return ReplayVerdict.NEW if self.found else ReplayVerdict.MISSED
        if abs(self.later_s) < TOLERANCE.total_seconds():
            return ReplayVerdict.SAME
        return ReplayVerdict.LATER if self.later_s > 0 else ReplayVerdict.EARLIER


def detect_findings(incident: Incident, limits: Thresholds) -> tuple[Finding, ...]:
    """What a watch finds by these limits in the incident's time, from pulses that begin before it."""
    if not incident.pulses:
        return ()
    state, found = (
        expect_pulses(FleetHealth(), [incident.cluster_id], incident.pulses[0].emitted_at),
        list[Finding](),
    )
    for pulse in incident.pulses:
        state, findings = fold_pulse(state, pulse, limits)
        found += findings
    found += detect_no_data(state, incident.until, limits)[1]
    return tuple(one for one in found if incident.since <= one.event.at <= incident.until)


def compare_findings(incident: Incident, limits: Thresholds) -> list[FindingComparison]:
    """Episode by episode of each subject, in time's order."""
    wanted, found = (
        _by_subject(build_episodes(those)) for those in (incident.wanted, detect_findings(incident, limits))
    )
    pairs = [
        FindingComparison(one, other)
        for subject in wanted.keys() | found.keys()
        for one, other in zip_longest(wanted[subject], found[subject])
    ]
    return sorted(pairs, key=lambda one: (one.either.opened_at, one.either.subject.fingerprint))


def _by_subject(found: Iterable[FindingEpisode]) -> defaultdict[FindingSubject, list[FindingEpisode]]:
    grouped = defaultdict[FindingSubject, list[FindingEpisode]](list)
    for one in found:
        grouped[one.subject].append(one)
    return grouped
