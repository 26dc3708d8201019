"""Findings as spans of time, to be laid beside one another."""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from datetime import datetime

from fleetgauge_core.detection.finding import Finding, Subject


@dataclass(frozen=True, slots=True)
class Episode:
    """From the moment when a subject was named to its end; None where it has none."""

    subject: Subject
    kind: str
    named_at: datetime
    cleared_at: datetime | None = None


def episodes(findings: Iterable[Finding]) -> list[Episode]:
    """Each naming with its end. What was named before the first of them has none here."""
    done, under_way = list[Episode](), dict[Subject, Episode]()
    for one in findings:
        if one.clears and one.subject in under_way:
            done.append(replace(under_way.pop(one.subject), cleared_at=one.event.at))
        elif one.names and one.subject not in under_way:
            under_way[one.subject] = Episode(one.subject, one.to_phase.value, one.event.at)
    return sorted([*done, *under_way.values()], key=lambda one: one.named_at)
