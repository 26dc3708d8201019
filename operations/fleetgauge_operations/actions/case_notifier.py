"""Notification of cases, and of outages of the audit log, until receivers accept it.

The receivers that have accepted a notification are stored with the case in ops/actions, so that another
process continues where this one stops. An outage of ops/actions itself is known to this process only.
"""

import logging
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from functools import partial
from typing import Protocol

from fleetgauge_core.lake.table_store import TableStoreError
from fleetgauge_core.tables import ActionOutcome
from fleetgauge_operations.actions.audit_outage import AuditOutage
from fleetgauge_operations.actions.case_notification import CaseNotification
from fleetgauge_operations.actions.plan.case import ActionCase
from fleetgauge_operations.notify.notification import Notification
from fleetgauge_operations.notify.outbox import Settlement
from fleetgauge_operations.notify.outboxes import Outboxes

_log = logging.getLogger("fleetgauge.mitigate")

#: Older outcomes are not notified any more, except failures.
_MAX_AGE = timedelta(days=1)

#: Identifies one state of a case; each state is notified once.
_CaseState = tuple[str, ActionOutcome, bool, datetime | None]


class CaseStore(Protocol):
    """Storage for cases. Its method raises TableStoreError."""

    def amend_case(self, case_id: str, change: Callable[[ActionCase], ActionCase | None]) -> None:
        """Replace a case by what ``change`` returns for its newest version; leave it unchanged for None."""


@dataclass(slots=True)
class _Receipts:
    """Receivers that accepted a notification, or rejected it for good, and are not stored yet."""

    accepted: set[str] = field(default_factory=set)
    rejected: set[str] = field(default_factory=set)


class CaseNotifier:
    """Queues and sends notifications, and stores which receivers have accepted them."""

    def __init__(
        self,
        store: CaseStore,
        outboxes: Outboxes,
        clock: Callable[[], datetime],
    ) -> None:
        self._store = store
        self._outboxes = outboxes
        self._clock = clock
        self._receipts: dict[_CaseState, _Receipts] = defaultdict(_Receipts)
        self._expired: set[tuple[_CaseState, str]] = set()
        self._outages: dict[str, AuditOutage] = {}

    def notify(self, cases: Iterable[ActionCase]) -> None:
        """Queue what receivers have not accepted yet; alerts of open cases stay open."""
        cases = list(cases)
        names = set(self._outboxes.names().values())
        for case in filter(self._is_due, cases):
            served = self._find_served(case)
            if not names <= served:
                self._outboxes.put(_build_notification(case), partial(self._settle, _state(case)), served)
        outages = [outage.notification() for outage in self._outages.values()]
        self._outboxes.set_firing([*_select_firing(cases), *outages])

    def report_outage(self, cluster_id: str, cause: str) -> None:
        """Open a ticket, once, because no action on the cluster can be audited."""
        if cluster_id not in self._outages:
            outage = self._outages[cluster_id] = AuditOutage(cluster_id, cause, self._clock())
            self._outboxes.put(outage.notification())

    def end_outage(self, cluster_id: str) -> None:
        """Resolve the cluster's ticket, if it has one."""
        if outage := self._outages.pop(cluster_id, None):
            self._outboxes.put(outage.resolution(self._clock()))

    def has_outage(self, cluster_id: str) -> bool:
        """Return whether the cluster has an open ticket about its audit log."""
        return cluster_id in self._outages

    @property
    def is_due(self) -> bool:
        """Whether a notification is to be sent now."""
        return self._outboxes.due_in_s() == 0

    def send(self) -> None:
        """Send what is due, and store which receivers have accepted it."""
        self._outboxes.send()
        if self._receipts:
            try:
                self._store_receipts()
            except TableStoreError as error:
                _log.warning("accepted notifications cannot be stored now, will retry: %s", error)

    def _settle(self, state: _CaseState, receiver: str, settlement: Settlement) -> None:
        if settlement is Settlement.DELIVERED:
            self._receipts[state].accepted.add(receiver)
        elif settlement is Settlement.REJECTED:
            self._receipts[state].rejected.add(receiver)
        else:
            self._expired.add((state, receiver))

    def _find_served(self, case: ActionCase) -> set[str]:
        """Return the receivers to which the present state of a case is not to be sent."""
        state = _state(case)
        receipts = self._receipts.get(state, _Receipts())
        expired = {receiver for expired_state, receiver in self._expired if expired_state == state}
        return {
            *(case.accepted_by or ()),
            *case.rejected_by,
            *receipts.accepted,
            *receipts.rejected,
            *expired,
        }

    def _store_receipts(self) -> None:
        """Add receipts to the cases that are still in the state of which receivers were notified."""
        for state, receipts in list(self._receipts.items()):
            self._store.amend_case(state[0], partial(_add_receipts, state=state, receipts=receipts))
            del self._receipts[state]

    def _is_due(self, case: ActionCase) -> bool:
        """Return whether receivers are to be notified of the case's present state."""
        if case.accepted_by is None or case.outcome is ActionOutcome.BEGUN:
            return False
        is_outdated = self._clock() - (case.ended or case.began) > _MAX_AGE
        return case.outcome is ActionOutcome.FAILED or not is_outdated


def _state(case: ActionCase) -> _CaseState:
    return case.case_id, case.outcome, case.ended is None, case.undone_since


def _add_receipts(case: ActionCase, *, state: _CaseState, receipts: _Receipts) -> ActionCase | None:
    if _state(case) != state:
        return None
    return replace(
        case,
        accepted_by=tuple(dict.fromkeys((*(case.accepted_by or ()), *sorted(receipts.accepted)))),
        rejected_by=tuple(dict.fromkeys((*case.rejected_by, *sorted(receipts.rejected)))),
    )


def _select_firing(cases: Sequence[ActionCase]) -> Iterator[Notification]:
    """Yield the notifications that fire while their case is open, whoever acted; one for each incident.

    A failure fires until it is undone. A refusal or an advice ends when a later case resolves its incident.
    """
    firing: dict[str, Notification] = {}
    for case in sorted(cases, key=lambda case: case.began):
        notification = _build_notification(case)
        is_open = case.ended is None and notification.firing
        previous = firing.get(notification.incident)
        if previous is not None and previous.severity == "page":
            continue
        if is_open:
            firing[notification.incident] = notification
        elif not notification.firing:
            firing.pop(notification.incident, None)
    yield from firing.values()


def _build_notification(case: ActionCase) -> Notification:
    is_resolved = not case.has_changed_cluster and case.ended is not None
    at = case.ended or case.undone_since or case.began
    return CaseNotification.from_case(case, at, is_resolved=is_resolved).notification
