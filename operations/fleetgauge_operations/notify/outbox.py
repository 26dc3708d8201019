"""Notifications on their way to a receiver: at least once, in order, again until they are accepted.

Motivation: a receiver may be away for an hour, and the process that notifies may be killed or replaced
meanwhile. The page must come all the same, under the same id, and an alert that Alertmanager forgets unless
it is sent again must be sent for as long as the problem lasts.

Approach: one outbox for each receiver, and one attempt loop for all of them. An outbox keeps its queue in
memory; each process derives the queue anew when it starts, from where it records what was delivered:

- ``watch``: events since the last delivered one, in the topics health-events and watch-state;
- ``mitigate run``: cases that not every receiver has been told of, in ops/actions;
- ``recover run``: the last state of each finding, in recovery/findings;
- an outage of ops/actions itself: in memory alone, as it is found again by whoever starts next.

A notification that its receiver rejects for good is kept and counted, and not sent again.
"""

import logging
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum
from queue import Empty, SimpleQueue

import urllib3

from fleetgauge_operations.notify.notification import Notification
from fleetgauge_operations.notify.receivers import Receiver
from fleetgauge_operations.notify.receivers.endpoint import PostResult

_log = logging.getLogger("fleetgauge.notify")

#: How many rejected notifications an outbox keeps.
_REJECTED_KEPT = 100


class Settlement(StrEnum):
    """How an entry left the outbox."""

    DELIVERED = "delivered"
    REJECTED = "rejected"
    """By the receiver, for good."""
    EXPIRED = "expired"
    """It was too old, and superseded by what happened since."""
    SKIPPED = "skipped"
    """It was not meant to be sent; its turn has come."""


Settle = Callable[[Settlement], None]


@dataclass(frozen=True, slots=True)
class RetryPolicy:
    """When to try again, and for how long."""

    first_pause_s: float = 0.5
    longest_pause_s: float = 30.0
    expires_after: timedelta = timedelta(hours=1)
    """A notification expires then only if a later one of its incident waits behind it."""
    resend_every_s: float = 60.0
    """For receivers that forget an alert which is not sent again."""


@dataclass(frozen=True, slots=True)
class _Entry:
    notification: Notification | None
    since: datetime
    settle: Settle


@dataclass(frozen=True, slots=True)
class _Resumed:
    """An alert that an earlier process opened."""

    notification: Notification


def _ignore(_: Settlement) -> None:
    """Nobody has to know."""


class Outbox:
    """The notifications for one receiver.

    ``put``, ``skip``, ``resume`` and ``wake`` may be called from any thread; all else belongs to the thread
    that sends.
    ``settle`` is called once for each entry, in order, in the thread that sends.
    """

    def __init__(
        self,
        receiver: Receiver,
        clock: Callable[[], datetime],
        elapsed_s: Callable[[], float],
        policy: RetryPolicy,
    ) -> None:
        self._receiver = receiver
        self._clock = clock
        self._elapsed_s = elapsed_s
        self._policy = policy
        self._inbox: SimpleQueue[_Entry | _Resumed | None] = SimpleQueue()
        self._queue: deque[_Entry] = deque()
        self._standing: dict[str, Notification] = {}
        self._rejected: deque[Notification] = deque(maxlen=_REJECTED_KEPT)
        self._pause_s = policy.first_pause_s
        self._due_s = 0.0
        self._resend_s = 0.0

    def put(self, notification: Notification, settle: Settle = _ignore) -> None:
        """Queue a notification."""
        self._inbox.put(_Entry(notification, self._clock(), settle))

    def skip(self, settle: Settle) -> None:
        """Queue a place holder, so that its turn comes after all that was put before it."""
        self._inbox.put(_Entry(None, self._clock(), settle))

    def wake(self) -> None:
        """End a ``wait`` at once."""
        self._inbox.put(None)

    def wait(self, timeout_s: float) -> None:
        """Wait until something is put, or so long."""
        with suppress(Empty):
            self._take_in(self._inbox.get(timeout=timeout_s))

    def resume(self, firing: Iterable[Notification]) -> None:
        """Go on sending alerts that an earlier process opened, if the receiver forgets them otherwise."""
        for notification in firing:
            self._inbox.put(_Resumed(notification))

    def stand(self, firing: Iterable[Notification]) -> None:
        """Keep sending exactly these alerts; all others have been ended by somebody else.

        What is queued of an incident comes first.
        """
        self._take_in_all()
        queued = {entry.notification.incident for entry in self._queue if entry.notification}
        wanted = {notification.incident: notification for notification in firing}
        for incident in [*self._standing]:
            if incident not in queued and incident not in wanted:
                del self._standing[incident]
        for incident, notification in wanted.items():
            if incident not in queued and self._receiver.must_resend:
                self._stand(notification)

    @property
    def is_empty(self) -> bool:
        """Whether every entry is settled."""
        self._take_in_all()
        return not self._queue

    @property
    def rejected(self) -> Sequence[Notification]:
        """The latest notifications that the receiver rejected for good."""
        return tuple(self._rejected)

    def queued(self) -> frozenset[str]:
        """Return the ids of the notifications that wait."""
        self._take_in_all()
        return frozenset(e.notification.notification_id for e in self._queue if e.notification)

    def due_in_s(self) -> float:
        """Return how long nothing has to be sent; 0 if something is due."""
        due_s = self._due_s if not self.is_empty else self._resend_s if self._standing else float("inf")
        return max(0.0, due_s - self._elapsed_s())

    def send(self, pool: urllib3.PoolManager, may_send: Callable[[], bool]) -> bool:
        """Send everything that is due; return False if this process may send no more.

        ``may_send`` is asked before each POST and may take seconds.
        """
        self._take_in_all()
        while True:
            self._settle_without_sending()
            batch = self._next_batch()
            if not batch:
                return True
            if not may_send():
                return False
            if not self._post(pool, batch):
                return True

    def _take_in_all(self) -> None:
        with suppress(Empty):
            while True:
                self._take_in(self._inbox.get_nowait())

    def _take_in(self, entry: _Entry | _Resumed | None) -> None:
        if entry is None:
            return
        if isinstance(entry, _Resumed):
            # What this process has been told of the incident says more.
            if self._receiver.must_resend and entry.notification.incident not in self._standing:
                self._stand(entry.notification)
            return
        self._queue.append(entry)
        if entry.notification and self._receiver.must_resend:
            self._stand(entry.notification)

    def _stand(self, notification: Notification) -> None:
        if all(notification.notification_id != each.notification_id for each in self._rejected):
            self._standing[notification.incident] = notification

    def _settle_without_sending(self) -> None:
        """Place holders, and what is history, at the head of the queue."""
        while self._queue and (settlement := self._settlement_unsent(self._queue[0])):
            entry = self._queue.popleft()
            if entry.notification:
                _log.error("%s: %s given up", self._receiver.kind, entry.notification.notification_id)
            entry.settle(settlement)

    def _settlement_unsent(self, entry: _Entry) -> Settlement | None:
        notification = entry.notification
        if notification is None:
            return Settlement.SKIPPED
        if self._clock() - entry.since <= self._policy.expires_after:
            return None
        superseded = any(
            later.notification and later.notification.incident == notification.incident
            for later in list(self._queue)[1:]
        )
        return Settlement.EXPIRED if superseded else None

    def _next_batch(self) -> Sequence[Notification]:
        """Return what is to be sent now: the head of the queue, or all alerts that stand."""
        now_s = self._elapsed_s()
        if self._queue and now_s >= self._due_s:
            head = self._queue[0].notification
            return self._alerts() if self._receiver.must_resend or head is None else (head,)
        if not self._queue and self._standing and now_s >= self._resend_s:
            return self._alerts()
        return ()

    def _alerts(self) -> Sequence[Notification]:
        return tuple(self._standing.values())

    def _post(self, pool: urllib3.PoolManager, batch: Sequence[Notification]) -> bool:
        """Return whether to go on with the next batch at once."""
        result = self._receiver.post(pool, batch, self._clock())
        results = [result] * len(batch)
        if result is PostResult.REJECTED and len(batch) > 1:
            # One alert that is rejected must not keep the others from being accepted.
            results = [self._receiver.post(pool, (notification,), self._clock()) for notification in batch]
        if PostResult.UNAVAILABLE in results:
            self._put_off()
            return False
        refused = [
            notification
            for notification, answer in zip(batch, results, strict=True)
            if answer is PostResult.REJECTED
        ]
        self._pause_s, self._due_s = self._policy.first_pause_s, 0.0
        self._resend_s = self._elapsed_s() + self._policy.resend_every_s
        self._rejected.extend(refused)
        self._settle_sent(batch, {notification.incident for notification in refused})
        return bool(self._queue)

    def _put_off(self) -> None:
        self._due_s = self._resend_s = self._elapsed_s() + self._pause_s
        self._pause_s = min(2 * self._pause_s, self._policy.longest_pause_s)

    def _settle_sent(self, batch: Sequence[Notification], refused: set[str]) -> None:
        if self._receiver.must_resend:
            for notification in batch:
                is_settled = notification.incident in refused or not notification.firing
                if is_settled and self._standing.get(notification.incident) is notification:
                    del self._standing[notification.incident]
            entries = list(self._queue)
            self._queue.clear()
        else:
            entries = [self._queue.popleft()]
        for entry in entries:
            if entry.notification is None:
                entry.settle(Settlement.SKIPPED)
            else:
                rejected = entry.notification.incident in refused
                entry.settle(Settlement.REJECTED if rejected else Settlement.DELIVERED)
