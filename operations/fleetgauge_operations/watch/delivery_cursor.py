"""What one notifier has been told, and what it is still owed, so that the next watch goes on from there.

Findings are dealt with in their order, but for those that wait until their maintenance is over: these are
kept by name, since later ones are told before them.
"""

from collections.abc import Callable, Collection, Iterable, Sequence

from fleetgauge_core.detection import Finding, FindingSubject
from fleetgauge_operations.notify.outbox import Settlement
from fleetgauge_operations.watch.state_store import DeliveryRecord
from fleetgauge_operations.watch.suppression import SuppressedFindings

#: How many rejected events a note keeps.
_REJECTED_KEPT = 100


class DeliveryCursor:
    """Of the note that was left, and the findings that it owes. ``keep`` is given the note as it changes."""

    def __init__(
        self, note: DeliveryRecord, owed: Iterable[Finding], keep: Callable[[DeliveryRecord], None]
    ) -> None:
        self._note = note
        self._keep = keep
        self._owes: dict[FindingSubject, str] = {
            one.subject: one.event.event_id for one in owed if one.event.event_id in note.owes
        }

    @property
    def rejected(self) -> tuple[str, ...]:
        """The latest events that the notifier rejected for good."""
        return self._note.rejected

    def settle(self, finding: Finding, settlement: Settlement) -> None:
        """StateRecord that a finding was delivered, rejected or expired: it is not sent again."""
        event_id = finding.event.event_id
        owed = self._owes.pop(finding.subject, None)
        note = self._note if owed == event_id else self._upto(finding)
        if settlement is Settlement.REJECTED:
            note = note.model_copy(update={"rejected": (*note.rejected, event_id)[-_REJECTED_KEPT:]})
        self._goes_on(note)

    def has_put_off(self, finding: Finding) -> bool:
        return self._owes.get(finding.subject) == finding.event.event_id

    def put_off(self, finding: Finding) -> None:
        """It is not told of this now; of the end of what it was not told, never."""
        if self.has_put_off(finding):
            return
        if finding.is_alert:
            self._owes[finding.subject] = finding.event.event_id
        else:
            self._owes.pop(finding.subject, None)
        self._goes_on(self._upto(finding))

    def _upto(self, finding: Finding) -> DeliveryRecord:
        return self._note.model_copy(update={"event_id": finding.event.event_id, "at": finding.event.at})

    def _goes_on(self, note: DeliveryRecord) -> None:
        self._note = note.model_copy(update={"owes": tuple(self._owes.values())})
        self._keep(self._note)


def start_delivery(
    notifier: str, findings: Sequence[Finding], opened: Collection[FindingSubject]
) -> DeliveryRecord:
    """The note of one that is new: it need not hear of the past, but must of what is open."""
    latest = {one.subject: one for one in findings if one.is_alert and one.subject in opened}
    last = findings[-1].event if findings else None
    return DeliveryRecord(
        notifier=notifier,
        owes=tuple(one.event.event_id for one in latest.values()),
        **({"event_id": last.event_id, "at": last.at} if last else {}),
    )


def restore_suppressed_findings(
    findings: Iterable[Finding],
    opened: Iterable[FindingSubject],
    owing: Sequence[tuple[DeliveryCursor, Sequence[Finding]]],
    planned: Callable[[FindingSubject], bool],
) -> SuppressedFindings:
    """What earlier watches told nobody for its maintenance, which goes on.

    ``owing``: of each who is told, what it is owed. What is merely on its way to one that is out does not
    wait, nor what another has been told: it is reminded of that for as long as it stands.
    """
    named = {one.subject: one for one in findings if one.is_alert}
    latest = [named[subject] for subject in opened if subject in named and planned(subject)]
    return SuppressedFindings(
        one
        for one in latest
        if any(account.has_put_off(one) for account, _ in owing) and all(one in owed for _, owed in owing)
    )
