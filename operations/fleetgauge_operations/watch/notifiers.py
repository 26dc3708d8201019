"""Where findings go. Each notifier is told of what is named and cleared, not of mere doubts."""

from collections.abc import Callable, Iterable
from typing import Protocol

from fleetgauge_core.detection import Finding, Phase, Subject
from fleetgauge_core.fleet import Notifier
from fleetgauge_operations.notify.receivers import routing_key, url
from fleetgauge_operations.watch import pagerduty, slack, webhook
from fleetgauge_operations.watch.alertmanager import Alertmanager
from fleetgauge_operations.watch.heartbeat import Heartbeat
from fleetgauge_operations.watch.message_format import Manner
from fleetgauge_operations.watch.messenger import Message, Messenger
from fleetgauge_operations.watch.telling import Telling


class Sink(Protocol):
    """Somebody to tell, from ``start`` to ``stop``. Must not block the watch for long."""

    def start(self) -> None: ...

    def stop(self) -> None: ...

    def tell(self, finding: Finding) -> None: ...

    def put_off(self, finding: Finding) -> None:
        """This is not to be told, at least not now."""

    def remind(self, named: Iterable[tuple[Subject, Phase]]) -> None:
        """These were named before this watch began."""


def sink(notifier: Notifier, manner: Manner, telling: Telling) -> Sink:
    """Raises SecretError where its address is a secret that cannot be read."""
    match notifier.kind:
        case "heartbeat":
            return Heartbeat(notifier.address, telling)
        case "alertmanager":
            return Alertmanager(url(notifier), manner, telling)
        case "webhook":
            return _messenger(notifier, lambda one: webhook.message(one, manner), telling)
        case "slack":
            return _messenger(notifier, lambda one: slack.message(one, manner), telling)
        case "pagerduty":
            # Its key is read each time, as the address is: it may be replaced while we run.
            return _messenger(
                notifier, lambda one: pagerduty.message(one, manner, routing_key(notifier)), telling
            )


def _messenger(notifier: Notifier, write: Callable[[Finding], object], telling: Telling) -> Messenger:
    return Messenger(notifier.kind, lambda one: Message(url(notifier), write(one)), telling)
