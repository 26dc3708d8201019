"""The thread that sends the notifications of an outbox continues after unexpected errors."""

import threading
from collections.abc import Sequence
from datetime import datetime
from typing import Any

import pytest

from fleetgauge_operations.notify.notification import Notification
from fleetgauge_operations.notify.outbox import Outbox, RetryPolicy
from fleetgauge_operations.notify.outbox_thread import OutboxThread
from fleetgauge_operations.notify.receivers.endpoint import PostResult
from tests.unit.operations.notify.samples import ManualClock, MemoryReceiver, build_notification


class FailingReceiver(MemoryReceiver):
    """Raises an unexpected error at the first POST."""

    has_failed = threading.Event()

    def post(self, notifications: Sequence[Notification], now: datetime) -> PostResult:
        if not self.has_failed.is_set():
            self.has_failed.set()
            raise RuntimeError("cannot be encoded")
        return super().post(notifications, now)


def test_an_unexpected_error_is_logged_and_sending_continues(caplog: pytest.LogCaptureFixture) -> None:
    receiver: Any = FailingReceiver()
    clock = ManualClock()
    outbox = Outbox(receiver, clock.now, clock.elapsed, RetryPolicy())
    outbox.put(build_notification())
    thread = OutboxThread(outbox, lambda: True, "webhook")
    thread.start()
    assert receiver.has_failed.wait(10)
    thread.stop()
    assert receiver.accepted == ["orders/2/0"]
    assert "webhook: sending failed unexpectedly" in caplog.text
    assert "cannot be encoded" in caplog.text
