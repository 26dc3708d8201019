"""Deliver notifications to a receiver at least once and in order, retrying until it accepts them.

Motivation: a receiver may be unavailable for an hour, and the notifying process may be killed or replaced
meanwhile. The page must arrive all the same, under the same id, and Alertmanager resolves an alert that is
not sent again, so it must be sent for as long as the problem lasts.

Approach: one outbox for each receiver, and one retry loop for all of them. An outbox keeps its queue in
memory; a process rebuilds the queue when it starts, from where it records deliveries:

- ``watch``: events since the last delivered one, in the topics health-events and watch-state;
- ``mitigate run``: cases that not every receiver has accepted, in ops/actions;
- ``recover run``: the last state of each finding, in recovery/findings;
- an outage of ops/actions itself: in memory only, because the next process detects it again.

A notification that its receiver rejects permanently is kept and counted, and not sent again.
"""

import logging
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum
from queue import Empty, SimpleQueue

from fleetgauge_operations.notify.notification import Notification
from fleetgauge_operations.notify.receivers import Receiver
from fleetgauge_operations.notify.receivers.endpoint import PostResult

_log = logging.getLogger("fleetgauge.notify")

#: How many rejected notifications an outbox keeps.
_REJECTED_KEPT = 100
#: How many alerts a POST has: about 100 KB, below the 1 MB that proxies accept by default.
_LARGEST_POST = 64


class Settlement(StrEnum):
    """How an entry left the outbox."""

    DELIVERED = "delivered"
    REJECTED = "rejected"
    """The receiver will never accept it."""
    EXPIRED = "expired"
    """It was too old, and a later notification of its incident followed."""
    SKIPPED = "skipped"
    """It was a placeholder that has reached the head of the queue."""


Settle = Callable[[Settlement], None]


@dataclass(frozen=True, slots=True)
class RetryPolicy:
    """How often to retry and resend, and when a notification expires."""

    first_pause_s: float = 0.5
    longest_pause_s: float = 30.0
    expires_after: timedelta = timedelta(hours=1)
    """Only a notification that a later one of its incident follows expires."""
    resend_every_s: float = 60.0
    """Only for receivers that resolve an alert which is not sent again."""


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
    """Do nothing."""


class Outbox:
    """The queue of notifications for one receiver.

    ``put``, ``skip``, ``resume`` and ``wake`` may be called from any thread, everything else only from the
    sending thread. ``settle`` is called once for each entry, in queue order, in the sending thread.
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
        self._firing: dict[str, Notification] = {}
        self._rejected: deque[Notification] = deque(maxlen=_REJECTED_KEPT)
        self._pause_s = policy.first_pause_s
        self._due_s = 0.0
        self._resend_s = 0.0

    def put(
        self, notification: Notification, settle: Settle = _ignore, since: datetime | None = None
    ) -> None:
        """Queue a notification, whose age counts from ``since``, by default from now."""
        self._inbox.put(_Entry(notification, since or self._clock(), settle))

    def skip(self, settle: Settle) -> None:
        """Queue a placeholder, which is settled once everything before it is settled."""
        self._inbox.put(_Entry(None, self._clock(), settle))

    def wake(self) -> None:
        """Make ``wait`` return immediately."""
        self._inbox.put(None)

    def wait(self, timeout_s: float) -> None:
        """Wait until something is queued, at most ``timeout_s``."""
        with suppress(Empty):
            self._receive(self._inbox.get(timeout=timeout_s))

    def resume(self, firing: Iterable[Notification]) -> None:
        """Resend alerts that an earlier process opened, if the receiver would resolve them otherwise."""
        for notification in firing:
            self._inbox.put(_Resumed(notification))

    def set_firing(self, firing: Iterable[Notification]) -> None:
        """Resend exactly these alerts from now on; another process has ended all others.

        Incidents with queued notifications keep those.
        """
        self._drain_inbox()
        queued = {entry.notification.incident for entry in self._queue if entry.notification}
        wanted = {notification.incident: notification for notification in firing}
        for incident in [*self._firing]:
            if incident not in queued and incident not in wanted:
                del self._firing[incident]
        for incident, notification in wanted.items():
            if incident not in queued and self._receiver.must_resend:
                self._keep_firing(notification)

    @property
    def is_empty(self) -> bool:
        """Whether every entry is settled."""
        self._drain_inbox()
        return not self._queue

    @property
    def rejected(self) -> Sequence[Notification]:
        """The latest notifications that the receiver rejected for good."""
        return tuple(self._rejected)

    def queued(self) -> frozenset[str]:
        """Return the ids of the notifications that wait."""
        self._drain_inbox()
        return frozenset(e.notification.notification_id for e in self._queue if e.notification)

    def due_in_s(self) -> float:
        """Return the seconds until something is due; 0 if something is due now, infinity if nothing is."""
        due_s = self._due_s if not self.is_empty else self._resend_s if self._firing else float("inf")
        return max(0.0, due_s - self._elapsed_s())

    def send(self, may_send: Callable[[], bool]) -> bool:
        """Send everything that is due; return False if another process sends from now on.

        ``may_send`` is called before each POST and may take seconds.
        """
        self._drain_inbox()
        while True:
            self._settle_without_sending()
            batch = self._next_batch()
            if not batch:
                return True
            if not may_send():
                return False
            if not self._post(batch, may_send):
                return True

    def _drain_inbox(self) -> None:
        with suppress(Empty):
            while True:
                self._receive(self._inbox.get_nowait())

    def _receive(self, entry: _Entry | _Resumed | None) -> None:
        if entry is None:
            return
        if isinstance(entry, _Resumed):
            # What this process has queued for the incident is newer.
            if self._receiver.must_resend and entry.notification.incident not in self._firing:
                self._keep_firing(entry.notification)
            return
        self._queue.append(entry)
        if entry.notification and self._receiver.must_resend:
            self._keep_firing(entry.notification)

    def _keep_firing(self, notification: Notification) -> None:
        if not self._is_rejected(notification):
            self._firing[notification.incident] = notification

    def _is_rejected(self, notification: Notification) -> bool:
        return any(notification.notification_id == each.notification_id for each in self._rejected)

    def _settle_without_sending(self) -> None:
        """Settle entries at the head of the queue that are not to be sent."""
        while self._queue and (settlement := self._settlement_unsent(self._queue[0])):
            entry = self._queue.popleft()
            if entry.notification and settlement is Settlement.EXPIRED:
                _log.error("%s: %s expired", self._receiver.label, entry.notification.notification_id)
            entry.settle(settlement)

    def _settlement_unsent(self, entry: _Entry) -> Settlement | None:
        notification = entry.notification
        if notification is None:
            return Settlement.SKIPPED
        if self._is_rejected(notification):
            return Settlement.REJECTED
        if not self._is_old(entry):
            return None
        superseded = any(
            later.notification and later.notification.incident == notification.incident
            for later in list(self._queue)[1:]
        )
        return Settlement.EXPIRED if superseded else None

    def _is_old(self, entry: _Entry) -> bool:
        return self._clock() - entry.since > self._policy.expires_after

    def _next_batch(self) -> Sequence[Notification]:
        """Return what to send now: the head of the queue, or all firing alerts."""
        now_s = self._elapsed_s()
        if self._queue and now_s >= self._due_s:
            if self._receiver.must_resend:
                return self._alerts()
            return (next(entry.notification for entry in self._queue if entry.notification),)
        if not self._queue and self._firing and now_s >= self._resend_s:
            return self._alerts()
        return ()

    def _alerts(self) -> Sequence[Notification]:
        return tuple(self._firing.values())

    def _post(self, batch: Sequence[Notification], may_send: Callable[[], bool]) -> bool:
        """Send a batch; return whether to send the next one immediately."""
        results = self._deliver(batch, may_send)
        if PostResult.UNAVAILABLE in results:
            if not self._head_blocks_queue(may_send):
                self._back_off()
                return False
            results = [PostResult.REJECTED]
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

    def _deliver(self, batch: Sequence[Notification], may_send: Callable[[], bool]) -> list[PostResult]:
        """POST a batch in parts; return the result of each notification.

        All remaining ones are UNAVAILABLE after the first that is, so that an outage takes one timeout, and
        once another process sends.
        """
        results: list[PostResult] = []
        for start in range(0, len(batch), _LARGEST_POST):
            if start and not may_send():
                break
            results += self._deliver_part(batch[start : start + _LARGEST_POST], may_send)
            if PostResult.UNAVAILABLE in results:
                break
        return results + [PostResult.UNAVAILABLE] * (len(batch) - len(results))

    def _deliver_part(self, part: Sequence[Notification], may_send: Callable[[], bool]) -> list[PostResult]:
        """POST a part, and its halves if it is rejected: a bad alert must not block the others."""
        result = self._receiver.post(part, self._clock())
        if result is not PostResult.REJECTED or len(part) == 1:
            return [result] * len(part)
        middle = len(part) // 2
        results: list[PostResult] = []
        for half in (part[:middle], part[middle:]):
            if not may_send():
                return [PostResult.UNAVAILABLE] * len(part)
            results += self._deliver_part(half, may_send)
            if PostResult.UNAVAILABLE in results:
                return [PostResult.UNAVAILABLE] * len(part)
        return results

    def _head_blocks_queue(self, may_send: Callable[[], bool]) -> bool:
        """Return whether the receiver accepts the next notification, but has not accepted an old head.

        A status such as 500 may mean an outage or concern this body only; another body shows which.
        That one is sent again in its turn, under the same id.
        """
        waiting = [entry.notification for entry in self._queue if entry.notification]
        if self._receiver.must_resend or len(waiting) < 2 or not self._is_old(self._queue[0]):
            return False
        return may_send() and self._receiver.post((waiting[1],), self._clock()) is PostResult.ACCEPTED

    def _back_off(self) -> None:
        self._due_s = self._resend_s = self._elapsed_s() + self._pause_s
        self._pause_s = min(2 * self._pause_s, self._policy.longest_pause_s)

    def _settle_sent(self, batch: Sequence[Notification], refused: set[str]) -> None:
        if self._receiver.must_resend:
            for notification in batch:
                is_settled = notification.incident in refused or not notification.firing
                if is_settled and self._firing.get(notification.incident) is notification:
                    del self._firing[notification.incident]
            entries = list(self._queue)
            self._queue.clear()
        else:
            entries = [self._queue.popleft()]
        for entry in entries:
            if entry.notification is None:
                entry.settle(Settlement.SKIPPED)
            else:
                rejected = entry.notification.incident in refused or self._is_rejected(entry.notification)
                entry.settle(Settlement.REJECTED if rejected else Settlement.DELIVERED)
