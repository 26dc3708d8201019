from fleetgauge_probes.agent.broker_progress import BrokerCounters, BrokerProgress

SECOND_NS = 1_000_000_000
BUSY = BrokerCounters(queued_requests=0, completed_requests=1000, replicated_bytes=50_000, offline_log_dirs=0)


def stalled_ms(*readings: BrokerCounters, interval_s: float = 5) -> int | None:
    """Return the stall after these consecutive readings."""
    progress = BrokerProgress()
    for number, counters in enumerate(readings):
        progress.record(2, round(number * interval_s * SECOND_NS), counters)
    return progress.stalled_ms(2, round(len(readings) * interval_s * SECOND_NS))


def read(queued: int = 0, completed: int = 1000, replicated: int = 50_000) -> BrokerCounters:
    return BrokerCounters(queued, completed, replicated, offline_log_dirs=0)


def test_a_broker_is_not_stalled_while_any_counter_increases() -> None:
    assert stalled_ms(*(read(queued=9, completed=count) for count in range(5))) == 0
    assert stalled_ms(*(read(replicated=count) for count in range(1, 6))) == 0


def test_a_stall_lasts_from_the_last_progress_to_the_latest_reading() -> None:
    assert stalled_ms(read(completed=1), *[BUSY] * 5) == 20_000
    assert stalled_ms(*[BUSY] * 5, read(completed=1001)) == 0


def test_a_broker_that_replicates_nothing_is_stalled_only_while_requests_are_queued() -> None:
    without_replication = read(replicated=0)
    assert stalled_ms(*[without_replication] * 5) == 0
    assert stalled_ms(*[read(queued=3, replicated=0)] * 5) == 20_000


def test_readings_expire_after_fifteen_seconds() -> None:
    progress = BrokerProgress()
    assert (progress.latest_counters(2, 0), progress.stalled_ms(2, 0)) == (None, None)
    progress.record(2, 0, BUSY)
    assert progress.latest_counters(2, 15 * SECOND_NS - 1) == BUSY
    assert progress.latest_counters(2, 15 * SECOND_NS) is None
    assert progress.stalled_ms(2, 15 * SECOND_NS) is None
