"""The oracle's broker-minutes, in worked examples."""

from datetime import date, timedelta

from fleetgauge_core.tables import BROKER_MINUTES
from tests.oracle.oracle import Row, Tables
from tests.unit.oracle.conftest import MONDAY, Bench


def _row(tables: Tables, broker: int = 1, leg: str = "client", minute: int = 0) -> Row:
    key = (broker, leg, MONDAY + timedelta(minutes=minute))
    return next(row for row in tables.broker_minutes if (row["broker_id"], row["leg"], row["minute"]) == key)


def _minutes(tables: Tables) -> list[int]:
    return sorted({(row["minute"] - MONDAY) // timedelta(minutes=1) for row in tables.broker_minutes})


def test_a_row_has_the_columns_of_the_table(bench: Bench) -> None:
    assert set(_row(bench.evaluate(bench.record()))) == set(BROKER_MINUTES.column_names)


def test_quantiles_of_latencies_from_one_to_a_hundred_milliseconds(
    bench: Bench,
) -> None:
    row = _row(bench.evaluate(bench.record(succeeded_us=[n * 1000 for n in range(1, 101)])))
    assert (row["latency_p50_us"], row["latency_p99_us"], row["latency_max_us"]) == (50_000, 99_000, 100_000)
    assert (row["latency_p99_censored_us"], row["ack_p99_us"], row["availability"]) == (99_000, 99_000, 1.0)
    assert row["day"] == date(2026, 3, 2)


def test_a_client_minute_without_a_success_has_a_censored_p99_of_ten_seconds(bench: Bench) -> None:
    row = _row(bench.evaluate(bench.record(succeeded_us=[], failed=100)))
    assert row["measured"] is True
    assert row["availability"] == 0.0
    assert (
        row["latency_p99_us"] is row["latency_p50_us"] is row["latency_max_us"] is row["ack_p99_us"] is None
    )
    assert row["latency_p99_censored_us"] == 10_000_000
    assert row["failures"] == {"_MSG_TIMED_OUT": 100}


def test_a_leader_minute_without_a_success_has_a_censored_p99_of_five_seconds(bench: Bench) -> None:
    failing = bench.record(leg="leader", succeeded_us=[], failed=100)
    row = _row(bench.evaluate(bench.record(), failing), leg="leader")
    assert (row["latency_p99_us"], row["latency_p99_censored_us"]) == (None, 5_000_000)


def test_two_failures_of_a_hundred_raise_the_censored_p99_and_one_does_not(bench: Bench) -> None:
    one_failure = _row(bench.evaluate(bench.record(succeeded_us=[5] * 98 + [900], failed=1)))
    two_failures = _row(bench.evaluate(bench.record(succeeded_us=[5] * 97 + [900], failed=2)))
    assert (one_failure["latency_p99_censored_us"], one_failure["availability"]) == (900, 0.99)
    assert (two_failures["latency_p99_censored_us"], two_failures["latency_p99_us"]) == (10_000_000, 900)


def test_a_client_probe_succeeds_when_it_is_received_and_not_when_it_is_acknowledged(bench: Bench) -> None:
    not_consumed = bench.record(
        e2e_us=[], received=3, consume_failures={"LATE": 3, "NOT_RECEIVED": 97}, lost=100
    )
    row = _row(bench.evaluate(not_consumed))
    assert (row["succeeded"], row["acknowledged"], row["received"], row["lost"]) == (0, 100, 3, 100)
    assert (row["ack_p99_us"], row["latency_p99_us"], row["availability"]) == (1_000, None, 0.0)
    assert row["failures"] == {"LATE": 3, "NOT_RECEIVED": 97}


def test_a_minute_is_measured_from_fifty_attempts_on(bench: Bench) -> None:
    tables = bench.evaluate(
        bench.record(0, succeeded_us=[8] * 50), bench.record(1, succeeded_us=[8] * 48, failed=1)
    )
    assert _row(tables, minute=0)["measured"] is True
    not_measured = _row(tables, minute=1)
    assert not_measured["measured"] is False
    assert (not_measured["attempted"], not_measured["succeeded"], not_measured["failures"]) == (
        49,
        48,
        {"_MSG_TIMED_OUT": 1},
    )
    levels = [column for column in not_measured if column.startswith(("latency", "availability", "ack_"))]
    assert len(levels) == 6
    assert {not_measured[column] for column in levels} == {None}


def test_the_records_of_two_vantages_are_pooled(bench: Bench) -> None:
    first = bench.record(succeeded_us=[10] * 100, led_by=[3, 1])
    second = bench.record(succeeded_us=[20] * 98, failed=2, vantage="zone-b", led_by=[2, 1])
    row = _row(bench.evaluate(first, second))
    assert (row["attempted"], row["succeeded"], row["availability"], row["vantages"]) == (200, 198, 0.99, 2)
    # Rank 198 of 198 successes and 2 deadlines.
    assert row["latency_p99_censored_us"] == 20
    assert row["led_by"] == [1, 2, 3]


def test_the_records_before_and_after_a_restart_are_pooled(bench: Bench) -> None:
    before = bench.record(succeeded_us=[1] * 30)
    after = bench.record(succeeded_us=[3] * 20, run_id="next run")
    row = _row(bench.evaluate(before, after))
    assert (row["attempted"], row["measured"], row["vantages"]) == (50, True, 1)


def test_the_record_of_a_late_agent_is_not_pooled_and_is_flagged(bench: Bench) -> None:
    on_time = bench.record(schedule_lag_p95_us=100_000)
    late = bench.record(
        succeeded_us=[9_000_000] * 100, vantage="late", schedule_lag_p95_us=100_001, led_by=[2]
    )
    row = _row(bench.evaluate(on_time, late))
    assert (row["attempted"], row["latency_max_us"], row["vantages"]) == (100, 1_000, 1)
    assert row["agent_late"] is True
    assert row["led_by"] == [1, 2]
    assert _row(bench.evaluate(on_time))["agent_late"] is False


def test_a_duplicate_record_counts_once(bench: Bench) -> None:
    record = bench.record()
    assert _row(bench.evaluate(record, dict(record)))["attempted"] == 100


def test_an_expected_broker_without_a_record_has_empty_rows_on_both_legs(bench: Bench) -> None:
    tables = bench.evaluate(bench.record(expected_brokers=[1, 2]))
    assert len(tables.broker_minutes) == 4
    for leg in ("client", "leader"):
        row = _row(tables, broker=2, leg=leg)
        assert (row["attempted"], row["failures"], row["led_by"], row["vantages"]) == (0, {}, [], 0)
        assert (row["measured"], row["agent_late"], row["availability"]) == (False, False, None)


def test_an_unlisted_broker_with_a_record_is_expected_and_a_retired_one_is_not(
    bench: Bench,
) -> None:
    records = [bench.record(expected_brokers=[2, 3]), bench.record(broker=4, expected_brokers=[])]
    assert {row["broker_id"] for row in bench.evaluate(*records).broker_minutes} == {1, 2, 3, 4}
    retired = bench.evaluate(*records, retired=frozenset({3, 4}))
    assert {row["broker_id"] for row in retired.broker_minutes} == {1, 2}


def test_a_minute_without_a_record_expects_the_brokers_of_the_latest_minute_with_one(bench: Bench) -> None:
    tables = bench.evaluate(
        bench.record(0, expected_brokers=[1, 2]), bench.record(1), bench.record(4, expected_brokers=[1, 2])
    )
    client_minutes = [row["minute"] for row in tables.broker_minutes if row["leg"] == "client"]
    assert [client_minutes.count(MONDAY + timedelta(minutes=n)) for n in range(5)] == [2, 1, 1, 1, 2]


def test_the_record_of_a_late_agent_still_makes_brokers_expected(bench: Bench) -> None:
    late = bench.record(3, broker=2, schedule_lag_p95_us=200_000, expected_brokers=[])
    tables = bench.evaluate(bench.record(), late)
    assert _minutes(tables) == [0, 1, 2, 3]
    assert _row(tables, broker=2, minute=3)["measured"] is False


def test_a_cluster_begins_at_its_first_minute_with_a_measured_client_broker(bench: Bench) -> None:
    tables = bench.evaluate(
        bench.record(0, leg="leader"),
        bench.record(1, succeeded_us=[1] * 49),
        bench.record(2),
        bench.record(3),
    )
    assert _minutes(tables) == [2, 3]


def test_a_cluster_that_was_never_measured_has_rows_only_with_since(bench: Bench) -> None:
    record = bench.record(2, succeeded_us=[1] * 49)
    assert bench.evaluate(record).broker_minutes == []
    assert bench.evaluate(record).cluster_weeks == []
    assert _minutes(bench.evaluate(record, since=MONDAY)) == [0, 1, 2]


def test_minutes_from_since_to_the_first_record_expect_its_brokers(bench: Bench) -> None:
    tables = bench.evaluate(bench.record(2, expected_brokers=[1, 2]), since=MONDAY)
    assert len(tables.broker_minutes) == 3 * 2 * 2


def test_since_and_until_limit_the_minutes(bench: Bench) -> None:
    records = [bench.record(0, expected_brokers=[1, 2]), bench.record(9)]
    half_past = MONDAY + timedelta(minutes=3, seconds=30)
    tables = bench.evaluate(*records, since=half_past, until=MONDAY + timedelta(minutes=6))
    assert _minutes(tables) == [4, 5]
    # The expected brokers are those of the record before since.
    assert {row["broker_id"] for row in tables.broker_minutes} == {1, 2}


def test_records_of_a_cluster_that_is_not_configured_are_ignored(bench: Bench) -> None:
    assert bench.evaluate(bench.record(cluster_id="unknown")).broker_minutes == []
