"""The oracle's cluster-minutes, in worked examples."""

from typing import Any

from fleetgauge_core.tables import CLUSTER_MINUTES
from tests.oracle.oracle import Row
from tests.unit.oracle.conftest import Bench


def _minute(bench: Bench, *records: dict[str, Any]) -> Row:
    (row,) = bench.evaluate(*records).cluster_minutes
    return row


def test_a_row_has_the_columns_of_the_table_and_no_cause_yet(bench: Bench) -> None:
    row = _minute(bench, bench.record())
    assert set(row) == set(CLUSTER_MINUTES.column_names)
    assert row["cause"] is None


def test_a_minute_has_the_levels_of_its_worst_broker_and_pooled_ones(bench: Bench) -> None:
    row = _minute(
        bench,
        bench.record(broker=1, succeeded_us=[10] * 100),
        bench.record(broker=2, succeeded_us=[50] * 100),
        bench.record(broker=3, succeeded_us=[20] * 90, failed=10),
    )
    assert (row["latency_p99_us"], row["latency_worst_home"]) == (50, 2)
    assert (row["availability"], row["availability_worst_home"]) == (0.9, 3)
    assert row["latency_p99_censored_us"] == 10_000_000
    assert (row["attempted"], row["succeeded"], row["availability_pooled"]) == (300, 290, 290 / 300)
    # Rank 288 of 100 tens, 90 twenties and 100 fifties.
    assert row["latency_pooled_p99_us"] == 50
    assert (row["brokers_expected"], row["brokers_measured"]) == (3, 3)


def test_of_equally_bad_brokers_the_lowest_id_is_the_worst_even_if_it_is_zero(bench: Bench) -> None:
    row = _minute(
        bench, *(bench.record(broker=broker, succeeded_us=[7] * 99, failed=1) for broker in (2, 0, 1))
    )
    assert (row["latency_worst_home"], row["availability_worst_home"]) == (0, 0)


def test_the_leader_leg_only_affects_the_worst_leader_columns(bench: Bench) -> None:
    row = _minute(
        bench,
        bench.record(broker=1),
        bench.record(broker=1, leg="leader", succeeded_us=[30] * 100),
        bench.record(broker=2, leg="leader", succeeded_us=[90] * 100),
        bench.record(broker=3, leg="leader", succeeded_us=[99] * 49),
    )
    assert (row["leader_ack_p99_us"], row["leader_worst_broker"]) == (90, 2)
    assert (row["latency_p99_us"], row["attempted"]) == (1_000, 100)
    assert (row["brokers_expected"], row["brokers_measured"]) == (3, 1)


def test_a_broker_that_is_down_has_the_worst_availability_and_no_latency(
    bench: Bench,
) -> None:
    row = _minute(bench, bench.record(broker=1), bench.record(broker=2, succeeded_us=[], failed=100))
    assert (row["latency_p99_us"], row["latency_worst_home"]) == (1_000, 1)
    assert (row["availability"], row["availability_worst_home"]) == (0.0, 2)
    assert (row["latency_p99_censored_us"], row["availability_pooled"]) == (10_000_000, 0.5)


def test_a_broker_that_is_not_measured_is_neither_the_worst_nor_pooled(bench: Bench) -> None:
    row = _minute(bench, bench.record(broker=1), bench.record(broker=2, succeeded_us=[9_999] * 40, failed=9))
    assert (row["latency_p99_us"], row["latency_pooled_p99_us"], row["availability"]) == (1_000, 1_000, 1.0)
    assert (row["attempted"], row["succeeded"]) == (100, 100)


def test_a_minute_without_a_measurement_is_expected_and_has_no_levels(bench: Bench) -> None:
    row = bench.evaluate(bench.record(0), bench.record(2)).cluster_minutes[1]
    filled = {name: value for name, value in row.items() if value is not None}
    assert {*filled} == {
        "cluster_id",
        "minute",
        "day",
        "brokers_expected",
        "brokers_measured",
        "attempted",
        "succeeded",
    }
    assert (row["brokers_expected"], row["brokers_measured"], row["attempted"], row["succeeded"]) == (
        1,
        0,
        0,
        0,
    )
