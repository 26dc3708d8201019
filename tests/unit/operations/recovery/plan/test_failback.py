"""Reports of a failback: which records are at risk, and what is to be decided."""

import pytest

from fleetgauge_operations.recovery.offsets.checkpoint import LogRange
from fleetgauge_operations.recovery.plan.failback import (
    NO_STRANDED_RECORDS,
    FailbackReport,
    OffsetSpan,
    PartitionFailback,
    StrandedRecords,
    find_span_at_risk,
    span_since_failover,
)


@pytest.mark.parametrize(
    ("replicated", "log", "span"),
    [
        (949, LogRange(0, 1000), OffsetSpan(950, 1000)),
        (999, LogRange(0, 1000), OffsetSpan(1000, 1000)),
        (None, LogRange(40, 1000), OffsetSpan(40, 1000)),
        (10, LogRange(40, 1000), OffsetSpan(40, 1000)),
        (2000, LogRange(0, 1000), OffsetSpan(1000, 1000)),
    ],
)
def test_unreplicated_offsets_of_the_primary_are_at_risk(
    replicated: int | None, log: LogRange, span: OffsetSpan
) -> None:
    assert find_span_at_risk(replicated, log) == span


def test_the_length_of_a_span_is_the_number_of_records_at_risk() -> None:
    assert len(find_span_at_risk(949, LogRange(0, 1000))) == 50


def test_records_written_to_the_secondary_since_the_failover_are_new() -> None:
    assert span_since_failover(700, LogRange(0, 720)) == OffsetSpan(700, 720)
    assert len(span_since_failover(700, LogRange(710, 720))) == 10


def build_report(*partitions: PartitionFailback, names_kept: bool = True) -> FailbackReport:
    return FailbackReport("north", "south", names_kept, partitions, ordered=("accounts",))


SOME_STRANDED = StrandedRecords(50, 5_000, 1_000, 2_000, (950, 951, 952))


def test_without_stranded_records_there_is_nothing_to_decide() -> None:
    report = build_report(
        PartitionFailback("accounts", 0, OffsetSpan(950, 1000), NO_STRANDED_RECORDS, OffsetSpan(700, 700))
    )
    assert report.stranded == 0
    assert [step.split(" ", 1)[0] for step in report.steps] == ["stop", "stop", "write", "move"]


def test_stranded_records_come_first_and_ordered_topics_need_a_manual_decision() -> None:
    orders = PartitionFailback("orders", 0, OffsetSpan(950, 1000), SOME_STRANDED, OffsetSpan(700, 720))
    steps = build_report(orders).steps
    assert steps[0] == "run the mirror north to south until no record is stranded: 50 records"
    assert "mirror south to north from the offsets above: 20 new records" in steps
    both = build_report(
        orders, PartitionFailback("accounts", 0, OffsetSpan(0, 10), SOME_STRANDED, None)
    ).steps
    assert both[0].startswith("decide manually about accounts: ")


def test_records_that_were_not_compared_count_as_stranded() -> None:
    assert (
        build_report(PartitionFailback("orders", 0, OffsetSpan(0, 300_000), None, None)).stranded == 300_000
    )


def test_opposite_mirrors_with_kept_names_never_run_at_once() -> None:
    none = PartitionFailback("orders", 0, OffsetSpan(10, 10), NO_STRANDED_RECORDS, None)
    assert any("in a loop" in step for step in build_report(none).steps)
    assert not any("in a loop" in step for step in build_report(none, names_kept=False).steps)
