"""People are notified of cases, and of outages of their record.

Which receivers have accepted a notification is recorded with its case in ops/actions, so that any later
process goes on from there. An outage of ops/actions itself is known to this process alone.
"""

import logging
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from functools import partial
from typing import Protocol

from fleetgauge_core.kafka import KafkaUnavailableError
from fleetgauge_core.lake.table_store import TableStoreError
from fleetgauge_operations.mitigation.audit_outage import AuditOutage
from fleetgauge_operations.mitigation.case import Case, Outcome
from fleetgauge_operations.mitigation.live import SeatTakenError
from fleetgauge_operations.mitigation.news import News
from fleetgauge_operations.notify.notification import Notification
from fleetgauge_operations.notify.outbox import Settlement
from fleetgauge_operations.notify.outboxes import Outboxes

_log = logging.getLogger("fleetgauge.mitigate")

#: People are not notified later of how a case ended; of one that failed, however late.
_NOTIFIED_WITHIN = timedelta(days=1)

#: A case in one of its states.
_CaseState = tuple[str, Outcome, bool, datetime | None]


class CaseRecord(Protocol):
    """Where cases are recorded. Every call raises TableStoreError."""

    def all_cases(self) -> Iterable[Case]: ...

    def amend(self, case: Case) -> None: ...


@dataclass(slots=True)
class _Receipts:
    """Receivers that accepted a notification, or rejected it for good, and are not recorded yet."""

    accepted: set[str] = field(default_factory=set)
    rejected: set[str] = field(default_factory=set)


class CaseNotifier:
    """Queues, sends and records notifications; ``lead`` is held while receipts are recorded."""

    def __init__(
        self,
        record: CaseRecord,
        outboxes: Outboxes,
        lead: Callable[[], AbstractContextManager[object]],
        clock: Callable[[], datetime],
    ) -> None:
        self._record = record
        self._outboxes = outboxes
        self._lead = lead
        self._clock = clock
        self._receipts: dict[_CaseState, _Receipts] = defaultdict(_Receipts)
        self._expired: set[tuple[_CaseState, str]] = set()
        self._outages: dict[str, AuditOutage] = {}

    def notify(self, cases: Iterable[Case]) -> None:
        """Queue what receivers have not accepted yet; alerts of open cases stay open."""
        cases = list(cases)
        names = set(self._outboxes.names().values())
        for case in filter(self._is_due, cases):
            served = self._served(case)
            if not names <= served:
                self._outboxes.put(_notification(case), partial(self._settle, _state(case)), served)
        self._outboxes.stand([*_standing(cases), *(one.notification() for one in self._outages.values())])

    def report_outage(self, cluster_id: str, cause: str) -> None:
        """Open a ticket, once, that nothing about this cluster can be recorded."""
        if cluster_id not in self._outages:
            outage = self._outages[cluster_id] = AuditOutage(cluster_id, cause, self._clock())
            self._outboxes.put(outage.notification())

    def end_outage(self, cluster_id: str) -> None:
        """Close that ticket, if there is one."""
        if outage := self._outages.pop(cluster_id, None):
            self._outboxes.put(outage.resolution(self._clock()))

    def has_outage(self, cluster_id: str) -> bool:
        return cluster_id in self._outages

    @property
    def is_due(self) -> bool:
        """Whether there is something to send now."""
        return self._outboxes.due_in_s() == 0

    def send(self) -> None:
        """Send what is due, and record who accepted it."""
        self._outboxes.send()
        if self._receipts:
            try:
                self._record_receipts()
            except (KafkaUnavailableError, SeatTakenError, TableStoreError) as error:
                _log.warning("who has been notified cannot be recorded now: %s", error)

    def _settle(self, state: _CaseState, receiver: str, settlement: Settlement) -> None:
        if settlement is Settlement.DELIVERED:
            self._receipts[state].accepted.add(receiver)
        elif settlement is Settlement.REJECTED:
            self._receipts[state].rejected.add(receiver)
        else:
            self._expired.add((state, receiver))

    def _served(self, case: Case) -> set[str]:
        """The receivers that are not to be sent how the case stands."""
        state = _state(case)
        receipts = self._receipts.get(state, _Receipts())
        expired = {receiver for of_state, receiver in self._expired if of_state == state}
        return {*(case.told or ()), *case.rejected, *receipts.accepted, *receipts.rejected, *expired}

    def _record_receipts(self) -> None:
        """Read again under the lead: somebody else may have changed the cases meanwhile."""
        if any(receipts.accepted or receipts.rejected for receipts in self._receipts.values()):
            with self._lead():
                for case in self._record.all_cases():
                    receipts = self._receipts.get(_state(case))
                    if receipts and (receipts.accepted or receipts.rejected):
                        self._record.amend(_with_receipts(case, receipts))
        self._receipts.clear()

    def _is_due(self, case: Case) -> bool:
        """Whether somebody is to be notified of how it stands."""
        if case.told is None or case.outcome is Outcome.BEGUN:
            return False
        is_past = self._clock() - (case.ended or case.began) > _NOTIFIED_WITHIN
        return case.outcome is Outcome.FAILED or not is_past


def _state(case: Case) -> _CaseState:
    return case.case_id, case.outcome, case.ended is None, case.undone_since


def _with_receipts(case: Case, receipts: _Receipts) -> Case:
    return replace(
        case,
        told=tuple(dict.fromkeys((*(case.told or ()), *sorted(receipts.accepted)))),
        rejected=tuple(dict.fromkeys((*case.rejected, *sorted(receipts.rejected)))),
    )


def _standing(cases: Sequence[Case]) -> Iterator[Notification]:
    """Alerts that fire for as long as their case is open, whoever acted; one for each incident.

    A failure stands until it is undone. A refusal or an advice is over once a later case of its incident is.
    """
    standing: dict[str, Notification] = {}
    for case in sorted(cases, key=lambda case: case.began):
        notification = _notification(case)
        is_open = case.ended is None and notification.firing
        before = standing.get(notification.incident)
        if before is not None and before.severity == "page":
            continue
        if is_open:
            standing[notification.incident] = notification
        elif not notification.firing:
            standing.pop(notification.incident, None)
    yield from standing.values()


def _notification(case: Case) -> Notification:
    is_over = not case.acted and case.ended is not None
    at = case.ended or case.undone_since or case.began
    return News.of(case, at, over=is_over).notification
