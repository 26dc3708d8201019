"""What is planned to be out wakes nobody: findings wait until their maintenance is over, or they are.

Planned is what `fleetgauge correct` took out of the levels ahead of time. A finding is kept and shown all
the same; who is told is all that waits.
"""

from collections.abc import Callable, Iterable

from fleetgauge_core.detection import Finding, FindingSubject


class SuppressedFindings:
    """The findings that wait, ``those`` of earlier watches."""

    def __init__(self, those: Iterable[Finding] = ()) -> None:
        self._findings = {one.subject: one for one in those}

    def __contains__(self, subject: FindingSubject) -> bool:
        return subject in self._findings

    def told_of(self, finding: Finding, planned: bool) -> tuple[Finding, ...]:
        """What is to be told now that this is found: of what was told all else, of what waits nothing."""
        subject = finding.subject
        waits = subject in self._findings
        if finding.is_alert and (waits or (planned and not finding.from_state.is_alert)):
            self._findings[subject] = finding
            return ()
        if finding.is_cleared and waits:
            del self._findings[subject]
            return ()
        return (finding,) if finding.is_alert or finding.is_cleared else ()

    def over(self, planned: Callable[[FindingSubject], bool]) -> tuple[Finding, ...]:
        """What is to be told because its maintenance is over."""
        due = [subject for subject in self._findings if not planned(subject)]
        return tuple(self._findings.pop(subject) for subject in due)
