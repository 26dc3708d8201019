"""Notifications for tests, with a receiver and a clock in memory."""

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta

from fleetgauge_operations.notify.notification import Notification
from fleetgauge_operations.notify.receivers.endpoint import PostResult

NOON = datetime(2026, 3, 2, 12, tzinfo=UTC)


def build_notification(number: int = 0, incident: str = "orders/2", firing: bool = True) -> Notification:
    """Return a notification with the ID ``incident/number``, so many seconds after noon."""
    return Notification(
        notification_id=f"{incident}/{number}",
        incident=incident,
        firing=firing,
        severity="page",
        kind="BROKER_DOWN",
        cluster_id="orders",
        broker_id=2,
        at=NOON + timedelta(seconds=number),
        summary="orders: broker 2 is down",
        alert_name="BROKER_DOWN",
        labels={"broker": "2"},
        annotations={"summary": "orders: broker 2 is down"},
        document={"words": ["no answer"]},
        details={"words": ["no answer"]},
        chat_lines=["no answer"],
        earlier_severities=("page", "ticket"),
    )


@dataclass
class MemoryReceiver:
    """Gives the queued ``answers`` first, then accepts all notifications except those of some incidents."""

    must_resend: bool = False
    label: str = "webhook"
    answers: deque[PostResult] = field(default_factory=deque)
    rejected_incidents: set[str] = field(default_factory=set)
    unavailable_for_incidents: set[str] = field(default_factory=set)
    largest_post: int = 1000
    """How many notifications a POST may have."""
    posts: list[tuple[str, ...]] = field(default_factory=list)
    """The notification IDs of each POST."""
    accepted: list[str] = field(default_factory=list)
    """The accepted notification IDs."""

    def post(self, notifications: Sequence[Notification], now: datetime) -> PostResult:
        notification_ids = tuple(notification.notification_id for notification in notifications)
        self.posts.append(notification_ids)
        answer = self.answers.popleft() if self.answers else PostResult.ACCEPTED
        incidents = {notification.incident for notification in notifications}
        is_too_large = len(notifications) > self.largest_post
        if answer is PostResult.ACCEPTED and (is_too_large or self.rejected_incidents & incidents):
            answer = PostResult.REJECTED
        if answer is PostResult.ACCEPTED and self.unavailable_for_incidents & incidents:
            answer = PostResult.UNAVAILABLE
        if answer is PostResult.ACCEPTED:
            self.accepted += notification_ids
        return answer


@dataclass
class ManualClock:
    """A clock whose elapsed seconds a test sets; the time of day is noon plus these seconds."""

    elapsed_s: float = 0.0

    def now(self) -> datetime:
        return NOON + timedelta(seconds=self.elapsed_s)

    def elapsed(self) -> float:
        return self.elapsed_s
