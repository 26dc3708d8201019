"""The outboxes of all receivers of a fleet, sent from the process's main loop."""

from collections.abc import Callable, Collection, Iterable, Sequence
from datetime import datetime, timedelta

from fleetgauge_core.fleet import Notifier
from fleetgauge_operations.notify.notification import Notification
from fleetgauge_operations.notify.outbox import Outbox, RetryPolicy, Settlement
from fleetgauge_operations.notify.receivers import Receiver, name_hosts, name_receivers, receiver_key

#: How long an alert is valid at Alertmanager if the process resends it.
RESENT = timedelta(minutes=5)
#: How long it is valid if a command sends it once and ends.
SENT_ONCE = timedelta(days=1)
#: How often a command tries to send.
_ATTEMPTS = 3
_FIRST_PAUSE_S = 1.0

#: Called with a receiver's name and how a notification left its outbox.
SettleReceiver = Callable[[str, Settlement], None]


class Outboxes:
    """One outbox for each notifier except heartbeats."""

    def __init__(
        self,
        notifiers: Iterable[Notifier],
        clock: Callable[[], datetime],
        elapsed_s: Callable[[], float],
        valid_for: timedelta = RESENT,
        policy: RetryPolicy | None = None,
    ) -> None:
        receivers = [Receiver(notifier, valid_for) for notifier in notifiers if notifier.kind != "heartbeat"]
        self._receivers = {receiver_key(receiver.notifier): receiver for receiver in receivers}
        self._outboxes = {
            key: Outbox(receiver, clock, elapsed_s, policy or RetryPolicy())
            for key, receiver in self._receivers.items()
        }

    def names(self) -> dict[str, str]:
        """Return the names of the receivers by key; the key itself if the address cannot be read now."""
        return name_receivers(self._receivers)

    def put(
        self,
        notification: Notification,
        settle: SettleReceiver = lambda _, __: None,
        except_for: Collection[str] = (),
    ) -> None:
        """Queue a notification for all receivers except some, unless it is queued already."""
        # A notifier may have been given its name after it was stored under its host.
        naming = (self.names(), name_hosts(self._receivers)) if except_for else ()
        for key, outbox in self._outboxes.items():
            is_included = all(names[key] not in except_for for names in naming)
            if is_included and notification.notification_id not in outbox.queued():
                outbox.put(notification, self._settle_as(key, settle))

    def set_firing(self, firing: Sequence[Notification]) -> None:
        """Resend exactly these alerts to receivers that would resolve them otherwise."""
        for outbox in self._outboxes.values():
            outbox.set_firing(firing)

    def send(self) -> None:
        """Send everything that is due."""
        for outbox in self._outboxes.values():
            if not outbox.due_in_s():
                outbox.send(lambda: True)

    @property
    def is_empty(self) -> bool:
        """Whether no notification is queued."""
        return all(outbox.is_empty for outbox in self._outboxes.values())

    def due_in_s(self) -> float:
        """Return the seconds until something is due; infinity if nothing is."""
        return min((outbox.due_in_s() for outbox in self._outboxes.values()), default=float("inf"))

    def all_due_in_s(self) -> float:
        """Return the seconds until every queued notification is due."""
        waiting = [outbox.due_in_s() for outbox in self._outboxes.values() if not outbox.is_empty]
        return max(waiting, default=0.0)

    def _settle_as(self, key: str, settle: SettleReceiver) -> Callable[[Settlement], None]:
        return lambda settlement: settle(self.names()[key], settlement)


def notify_now(
    notifiers: Iterable[Notifier],
    notification: Notification,
    clock: Callable[[], datetime],
    elapsed_s: Callable[[], float],
    wait: Callable[[float], object],
) -> list[str]:
    """Send a notification from a command in at most three attempts; return the receivers that accept it."""
    delivered: list[str] = []

    def settle(name: str, settlement: Settlement) -> None:
        if settlement is Settlement.DELIVERED:
            delivered.append(name)

    policy = RetryPolicy(first_pause_s=_FIRST_PAUSE_S)
    outboxes = Outboxes(notifiers, clock, elapsed_s, SENT_ONCE, policy)
    outboxes.put(notification, settle)
    outboxes.send()
    for _ in range(_ATTEMPTS - 1):
        if outboxes.is_empty:
            break
        wait(outboxes.all_due_in_s())
        outboxes.send()
    return delivered
