"""Suppression: alerts during planned maintenance are not notified until it ends, or never if they clear.

Planned maintenance is what `fleetgauge correct` excludes from service levels ahead of time. Suppressed
findings are stored and shown like all others; only their notification is delayed.
"""

from collections.abc import Callable, Iterable

from fleetgauge_core.detection import Finding, FindingSubject


class SuppressedFindings:
    """The suppressed alert of each subject; ``restored`` are those that an earlier watch suppressed."""

    def __init__(self, restored: Iterable[Finding] = ()) -> None:
        self._findings = {finding.subject: finding for finding in restored}

    def __contains__(self, subject: FindingSubject) -> bool:
        return subject in self._findings

    def filter_finding(self, finding: Finding, is_in_maintenance: bool) -> tuple[Finding, ...]:
        """Return the finding if receivers are to be notified of it now, else nothing.

        An alert that was notified before its maintenance is notified until it clears.
        """
        subject = finding.subject
        is_suppressed = subject in self._findings
        is_opening = not finding.from_state.is_alert
        if finding.is_alert and (is_suppressed or (is_in_maintenance and is_opening)):
            self._findings[subject] = finding
            return ()
        if finding.is_cleared and is_suppressed:
            del self._findings[subject]
            return ()
        return (finding,) if finding.is_alert or finding.is_cleared else ()

    def release(self, is_in_maintenance: Callable[[FindingSubject], bool]) -> tuple[Finding, ...]:
        """Return the alerts whose maintenance has ended; they are no longer suppressed."""
        released = [subject for subject in self._findings if not is_in_maintenance(subject)]
        return tuple(self._findings.pop(subject) for subject in released)
