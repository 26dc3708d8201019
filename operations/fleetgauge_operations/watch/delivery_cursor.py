"""The delivery cursor of a notifier: which findings it has been sent, so that the next watch continues there.

Findings are settled in order. The exceptions are alerts that are postponed until planned maintenance ends:
they are kept by event ID, because later findings are sent before them.
"""

from collections.abc import Callable, Collection, Iterable, Sequence
from typing import NamedTuple

from fleetgauge_core.detection import Finding, FindingSubject
from fleetgauge_operations.notify.outbox import Settlement
from fleetgauge_operations.watch.state_store import DeliveryRecord
from fleetgauge_operations.watch.suppression import SuppressedFindings

#: How many IDs of rejected events a delivery record keeps.
_REJECTED_KEPT = 100


class DeliveryCursor:
    """The progress of one notifier, restored from its delivery record and its undelivered findings.

    ``save`` is called with the delivery record after every change.
    """

    def __init__(
        self, record: DeliveryRecord, undelivered: Iterable[Finding], save: Callable[[DeliveryRecord], None]
    ) -> None:
        self._record = record
        self._save = save
        self._postponed: dict[FindingSubject, str] = {
            finding.subject: finding.event.event_id
            for finding in undelivered
            if finding.event.event_id in record.owes
        }

    @property
    def rejected(self) -> tuple[str, ...]:
        """IDs of the latest events that the receiver rejected for good."""
        return self._record.rejected

    def settle(self, finding: Finding, settlement: Settlement) -> None:
        """Record that a finding was delivered, rejected or expired: it is not sent again."""
        event_id = finding.event.event_id
        postponed_id = self._postponed.pop(finding.subject, None)
        record = self._record if postponed_id == event_id else self._advance_to(finding)
        if settlement is Settlement.REJECTED:
            record = record.model_copy(update={"rejected": (*record.rejected, event_id)[-_REJECTED_KEPT:]})
        self._replace_record(record)

    def is_postponed(self, finding: Finding) -> bool:
        """Return whether this finding is postponed, and not an earlier or a later one of its subject."""
        return self._postponed.get(finding.subject) == finding.event.event_id

    def postpone(self, finding: Finding) -> None:
        """Record that an alert is not sent yet; a finding that clears a postponed alert is never sent."""
        if self.is_postponed(finding):
            return
        if finding.is_alert:
            self._postponed[finding.subject] = finding.event.event_id
        else:
            self._postponed.pop(finding.subject, None)
        self._replace_record(self._advance_to(finding))

    def _advance_to(self, finding: Finding) -> DeliveryRecord:
        return self._record.model_copy(update={"event_id": finding.event.event_id, "at": finding.event.at})

    def _replace_record(self, record: DeliveryRecord) -> None:
        self._record = record.model_copy(update={"owes": tuple(self._postponed.values())})
        self._save(self._record)


class NotifierBacklog(NamedTuple):
    """A notifier's delivery cursor, and the findings that it has not been sent, in order."""

    cursor: DeliveryCursor
    undelivered: Sequence[Finding]


def start_delivery(
    notifier: str, findings: Sequence[Finding], open_subjects: Collection[FindingSubject]
) -> DeliveryRecord:
    """Return the first delivery record of a new notifier, which is to be sent the open alerts alone."""
    latest_alerts = {
        finding.subject: finding
        for finding in findings
        if finding.is_alert and finding.subject in open_subjects
    }
    last_event = findings[-1].event if findings else None
    return DeliveryRecord(
        notifier=notifier,
        owes=tuple(finding.event.event_id for finding in latest_alerts.values()),
        **({"event_id": last_event.event_id, "at": last_event.at} if last_event else {}),
    )


def restore_suppressed_findings(
    findings: Iterable[Finding],
    open_subjects: Iterable[FindingSubject],
    backlogs: Sequence[NotifierBacklog],
    is_in_maintenance: Callable[[FindingSubject], bool],
) -> SuppressedFindings:
    """Return the open alerts that earlier watches suppressed and whose planned maintenance continues.

    ``backlogs`` are those of all notifiers but heartbeats. An alert was suppressed if a cursor has postponed
    it and no notifier has been sent it. An alert that merely waits for an unavailable receiver is not; nor
    is one that another notifier was sent, because it is resent for as long as it is open.
    """
    latest_alerts = {finding.subject: finding for finding in findings if finding.is_alert}
    candidates = [
        latest_alerts[subject]
        for subject in open_subjects
        if subject in latest_alerts and is_in_maintenance(subject)
    ]
    return SuppressedFindings(
        finding
        for finding in candidates
        if any(cursor.is_postponed(finding) for cursor, _ in backlogs)
        and all(finding in undelivered for _, undelivered in backlogs)
    )
