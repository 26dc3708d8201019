"""What one notifier has been told, and what it is still owed, so that the next watch goes on from there.

Findings are dealt with in their order, but for those that wait until their maintenance is over: these are
kept by name, since later ones are told before them.
"""

from collections.abc import Callable, Collection, Iterable, Sequence

from fleetgauge_core.detection import Finding, Subject
from fleetgauge_operations.watch.state_store import Told
from fleetgauge_operations.watch.suppression import Waiting


class Account:
    """Of the note that was left, and the findings that it owes. ``keep`` is given the note as it changes."""

    def __init__(self, note: Told, owed: Iterable[Finding], keep: Callable[[Told], None]) -> None:
        self._note = note
        self._keep = keep
        self._owes: dict[Subject, str] = {
            one.subject: one.event.event_id for one in owed if one.event.event_id in note.owes
        }

    def dealt_with(self, finding: Finding) -> None:
        """It was told of this, or will never be."""
        owed = self._owes.pop(finding.subject, None)
        self._goes_on(self._note if owed == finding.event.event_id else self._upto(finding))

    def has_put_off(self, finding: Finding) -> bool:
        return self._owes.get(finding.subject) == finding.event.event_id

    def put_off(self, finding: Finding) -> None:
        """It is not told of this now; of the end of what it was not told, never."""
        if self.has_put_off(finding):
            return
        if finding.names:
            self._owes[finding.subject] = finding.event.event_id
        else:
            self._owes.pop(finding.subject, None)
        self._goes_on(self._upto(finding))

    def _upto(self, finding: Finding) -> Told:
        return self._note.model_copy(update={"event_id": finding.event.event_id, "at": finding.event.at})

    def _goes_on(self, note: Told) -> None:
        self._note = note.model_copy(update={"owes": tuple(self._owes.values())})
        self._keep(self._note)


def introduced(notifier: str, findings: Sequence[Finding], opened: Collection[Subject]) -> Told:
    """The note of one that is new: it need not hear of the past, but must of what is open."""
    latest = {one.subject: one for one in findings if one.names and one.subject in opened}
    last = findings[-1].event if findings else None
    return Told(
        notifier=notifier,
        owes=tuple(one.event.event_id for one in latest.values()),
        **({"event_id": last.event_id, "at": last.at} if last else {}),
    )


def still_waiting(
    findings: Iterable[Finding],
    opened: Iterable[Subject],
    owing: Sequence[tuple[Account, Sequence[Finding]]],
    planned: Callable[[Subject], bool],
) -> Waiting:
    """What earlier watches told nobody for its maintenance, which goes on.

    ``owing``: of each who is told, what it is owed. What is merely on its way to one that is out does not
    wait, nor what another has been told: it is reminded of that for as long as it stands.
    """
    named = {one.subject: one for one in findings if one.names}
    latest = [named[subject] for subject in opened if subject in named and planned(subject)]
    return Waiting(
        one
        for one in latest
        if any(account.has_put_off(one) for account, _ in owing) and all(one in owed for _, owed in owing)
    )
