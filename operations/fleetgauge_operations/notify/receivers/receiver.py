"""A receiver of the fleet file: its name and how to send it notifications."""

import hashlib
import logging
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from fleetgauge_core.fleet import Notifier, SecretError
from fleetgauge_core.http import ReceiverEndpoint, read_host
from fleetgauge_operations.notify.notification import Notification
from fleetgauge_operations.notify.receivers import alertmanager, pagerduty
from fleetgauge_operations.notify.receivers.alertmanager import alertmanager_body
from fleetgauge_operations.notify.receivers.endpoint import PostAnswer, PostResult, post
from fleetgauge_operations.notify.receivers.pagerduty import pagerduty_body
from fleetgauge_operations.notify.receivers.slack import slack_body
from fleetgauge_operations.notify.receivers.webhook import webhook_body

_log = logging.getLogger("fleetgauge.notify")

_PATHS = {"alertmanager": alertmanager.PATH, "pagerduty": pagerduty.PATH}


@dataclass(frozen=True, slots=True)
class Receiver:
    """A notifier of the fleet file that receives notifications. Secrets are read for each POST."""

    notifier: Notifier
    valid_for: timedelta = timedelta(minutes=5)
    """How long an alert is valid at Alertmanager if it is not sent again."""

    @property
    def label(self) -> str:
        """How log lines name the receiver: its name, or its kind."""
        return self.notifier.name or self.notifier.kind

    @property
    def must_resend(self) -> bool:
        """Whether the receiver resolves an alert that is not sent again."""
        return self.notifier.kind == "alertmanager"

    def post(self, notifications: Sequence[Notification], now: datetime) -> PostResult:
        """POST notifications in one request; only Alertmanager accepts more than one. Failures are logged."""
        answer = self.attempt(notifications, now)
        if answer.result is not PostResult.ACCEPTED:
            _log.error("%s: %s %s", self.label, self._describe(notifications), answer.description)
        return answer.result

    def attempt(self, notifications: Sequence[Notification], now: datetime) -> PostAnswer:
        """POST notifications in one request, and return what came back."""
        try:
            body = self.body(notifications, now)
        except SecretError as error:
            return PostAnswer(PostResult.UNAVAILABLE, f"not delivered: {error}")
        return post(ReceiverEndpoint(self.notifier), _PATHS.get(self.notifier.kind, ""), body)

    def body(self, notifications: Sequence[Notification], now: datetime) -> Any:
        """Return the request body. Raises: SecretError."""
        if self.notifier.burn_in:
            notifications = [notification.in_burn_in() for notification in notifications]
        match self.notifier.kind:
            case "alertmanager":
                return alertmanager_body(notifications, now, self.valid_for)
            case "slack":
                return slack_body(notifications[0])
            case "pagerduty":
                return pagerduty_body(notifications[0], self._routing_key())
            case _:
                return webhook_body(notifications[0])

    @property
    def host(self) -> str:
        """The host of the URL; everything else in a URL may be a secret. Raises: SecretError."""
        return read_host(self.notifier)

    def _routing_key(self) -> str:
        return self.notifier.routing_key.read() if self.notifier.routing_key else ""

    def _describe(self, notifications: Sequence[Notification]) -> str:
        return f"{len(notifications)} alerts" if self.must_resend else notifications[0].notification_id


def receiver_key(notifier: Notifier) -> str:
    """Return a key that identifies the notifier in later processes and reveals no secret."""
    return hashlib.sha256(notifier.identity.encode()).hexdigest()[:16]


def name_receivers(receivers: Mapping[str, Receiver]) -> dict[str, str]:
    """Return the name of each receiver: that of its notifier, or its host.

    If two have the same one, a part of the key is added. It is the key itself if the URL is a secret that
    cannot be read now.
    """
    return _make_unique(
        {key: receiver.notifier.name or _host_or_none(receiver) for key, receiver in receivers.items()}
    )


def name_hosts(receivers: Mapping[str, Receiver]) -> dict[str, str]:
    """Return the names that the receivers had before their notifiers were given names."""
    return _make_unique({key: _host_or_none(receiver) for key, receiver in receivers.items()})


def _make_unique(names: Mapping[str, str | None]) -> dict[str, str]:
    counts = Counter(names.values())
    return {
        key: key if name is None else name if counts[name] == 1 else f"{name} {key[:6]}"
        for key, name in names.items()
    }


def _host_or_none(receiver: Receiver) -> str | None:
    try:
        return receiver.host
    except SecretError:
        return None
