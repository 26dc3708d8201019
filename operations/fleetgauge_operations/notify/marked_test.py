"""A test of a notifier: a marked notification that is resolved at once."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from fleetgauge_core.fleet import Notifier
from fleetgauge_core.http import ReceiverEndpoint
from fleetgauge_operations.notify.notification import Notification
from fleetgauge_operations.notify.receivers import Receiver
from fleetgauge_operations.notify.receivers.endpoint import PostAnswer, PostResult, post
from fleetgauge_operations.notify.receivers.heartbeat import heartbeat_body

_ALERT_NAME = "FleetgaugeTest"
#: Alertmanager tells nobody of an alert that ends before the `group_wait` of its route, 30 s by default.
_ALERT_DURATION = timedelta(minutes=1)
_SUMMARY = "Fleetgauge test: this notifier works, and nothing is wrong"


@dataclass(frozen=True, slots=True)
class NotifierAnswer:
    """What came back from a receiver; ``status`` is None if there was no response."""

    name: str
    kind: str
    accepted: bool
    status: int | None
    detail: str


def list_warnings(kinds: Sequence[str]) -> Iterator[str]:
    """Yield what people have to know before a test of notifiers of these kinds."""
    if "pagerduty" in kinds:
        yield (
            "PagerDuty may page somebody, unless the service's urgency follows the severity; "
            "the incident is resolved at once"
        )
    if "alertmanager" in kinds:
        yield (
            'Alertmanager notifies by its routes: match fleetgauge_test="true" to choose whom; '
            "the alert ends after a minute"
        )
    if "heartbeat" in kinds:
        yield "the service behind a heartbeat takes the test for a sign of life"


def build_test_notifications(kind: str, test_id: str, at: datetime) -> Sequence[Notification]:
    """Return what is sent to a receiver of this kind, in order."""
    firing = Notification(
        notification_id=f"{test_id}/firing",
        incident=test_id,
        firing=True,
        severity="info",
        kind="TEST",
        cluster_id="fleetgauge-test",
        at=at,
        summary=_SUMMARY,
        alert_name=_ALERT_NAME,
        labels={"fleetgauge_test": "true"},
        annotations={"summary": _SUMMARY},
        document={"test": True},
        details={"test": True},
    )
    if kind in ("alertmanager", "slack"):
        return (firing,)
    return (firing, _resolve(firing, test_id))


def _resolve(firing: Notification, test_id: str) -> Notification:
    return Notification(
        notification_id=f"{test_id}/resolved",
        incident=firing.incident,
        firing=False,
        severity=firing.severity,
        kind=firing.kind,
        cluster_id=firing.cluster_id,
        at=firing.at,
        summary="Fleetgauge test: resolved",
        alert_name=firing.alert_name,
        labels=firing.labels,
        document=firing.document,
    )


def send_test(notifier: Notifier, name: str, test_id: str, at: datetime) -> NotifierAnswer:
    """Send a test to a receiver, once, and return what came back; a failed part is named."""
    answers = list(_post_all(notifier, test_id, at))
    failed = [answer for answer in answers if answer.result is not PostResult.ACCEPTED]
    answer = failed[0] if failed else answers[0]
    return NotifierAnswer(name, notifier.kind, not failed, answer.status, answer.description)


def _post_all(notifier: Notifier, test_id: str, at: datetime) -> Iterator[PostAnswer]:
    if notifier.kind == "heartbeat":
        yield post(ReceiverEndpoint(notifier), "", {**heartbeat_body(at), "test": True})
        return
    # In burn-in, the severity would say less than that this is a test.
    receiver = Receiver(notifier.model_copy(update={"burn_in": False}), _ALERT_DURATION)
    # A resolution is sent even if the first response was lost: PagerDuty may have opened an incident.
    for notification in build_test_notifications(notifier.kind, test_id, at):
        yield receiver.attempt((notification,), at)
