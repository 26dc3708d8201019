"""Findings paired into periods of time, so that periods from different sources can be compared."""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from datetime import datetime

from fleetgauge_core.detection.finding import Finding, FindingSubject


@dataclass(frozen=True, slots=True)
class FindingEpisode:
    """The period from when a subject's alert opened until it cleared; None if it has not cleared."""

    subject: FindingSubject
    kind: str
    opened_at: datetime
    cleared_at: datetime | None = None


def build_episodes(findings: Iterable[Finding]) -> list[FindingEpisode]:
    """Return the episodes of the findings, by the time at which they opened.

    An alert that opened before the first of the findings has no episode.
    """
    cleared, open_episodes = list[FindingEpisode](), dict[FindingSubject, FindingEpisode]()
    for finding in findings:
        subject = finding.subject
        if finding.is_cleared and subject in open_episodes:
            cleared.append(replace(open_episodes.pop(subject), cleared_at=finding.event.at))
        elif finding.is_alert and subject not in open_episodes:
            open_episodes[subject] = FindingEpisode(subject, finding.to_state.value, finding.event.at)
    return sorted([*cleared, *open_episodes.values()], key=lambda episode: episode.opened_at)
