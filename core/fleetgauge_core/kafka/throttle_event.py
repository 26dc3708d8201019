"""Quota throttling as librdkafka reports it to producers and consumers."""

from collections.abc import Callable

from confluent_kafka import ThrottleEvent


def report_throttling(on_throttled: Callable[[int, float], None], event: ThrottleEvent) -> None:
    """Call ``on_throttled`` with the broker's ID and the throttle time in seconds.

    librdkafka also reports the responses after a throttled one, with a throttle time of 0.
    """
    if event.throttle_time > 0:
        on_throttled(event.broker_id, event.throttle_time)
