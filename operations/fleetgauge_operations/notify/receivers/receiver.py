"""A receiver of the fleet file: its name and how to send it notifications."""

import hashlib
import logging
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

import urllib3

from fleetgauge_core.fleet import Notifier, SecretError
from fleetgauge_operations.notify.notification import Notification
from fleetgauge_operations.notify.receivers import alertmanager, pagerduty
from fleetgauge_operations.notify.receivers.alertmanager import alertmanager_body
from fleetgauge_operations.notify.receivers.endpoint import PostResult, post
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
    def kind(self) -> str:
        """The notifier's ``kind`` in the fleet file."""
        return self.notifier.kind

    @property
    def must_resend(self) -> bool:
        """Whether the receiver resolves an alert that is not sent again."""
        return self.notifier.kind == "alertmanager"

    def post(
        self, pool: urllib3.PoolManager, notifications: Sequence[Notification], now: datetime
    ) -> PostResult:
        """POST notifications in one request; only Alertmanager accepts more than one."""
        what = self._describe(notifications)
        try:
            url, body = self._url(), self.body(notifications, now)
        except SecretError as error:
            _log.error("%s: %s not delivered: %s", self.kind, what, error)
            return PostResult.UNAVAILABLE
        return post(pool, self.kind, url, body, what)

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
        try:
            return urllib3.util.parse_url(self.notifier.read_url()).host or "unknown"
        except urllib3.exceptions.LocationParseError:
            return "unknown"

    def _url(self) -> str:
        """Return the current URL. Raises: SecretError."""
        path = _PATHS.get(self.notifier.kind)
        return self.notifier.read_url().rstrip("/") + path if path else self.notifier.read_url()

    def _routing_key(self) -> str:
        return self.notifier.routing_key.read() if self.notifier.routing_key else ""

    def _describe(self, notifications: Sequence[Notification]) -> str:
        return f"{len(notifications)} alerts" if self.must_resend else notifications[0].notification_id


def receiver_key(notifier: Notifier) -> str:
    """Return a key that identifies the notifier in later processes and reveals no secret."""
    address = notifier.model_dump_json(include={"kind", "url", "url_from", "routing_key"})
    return hashlib.sha256(address.encode()).hexdigest()[:16]


def name_receivers(receivers: Mapping[str, Receiver]) -> dict[str, str]:
    """Return the name of each receiver: its host, with a part of its key if two share a host.

    The name is the key itself if the URL is a secret that cannot be read now.
    """
    hosts = {key: _host_or_none(receiver) for key, receiver in receivers.items()}
    counts = Counter(hosts.values())
    return {
        key: key if host is None else host if counts[host] == 1 else f"{host} {key[:6]}"
        for key, host in hosts.items()
    }


def _host_or_none(receiver: Receiver) -> str | None:
    try:
        return receiver.host
    except SecretError:
        return None
