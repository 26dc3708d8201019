import pytest

from fleetgauge_operations.recovery.offsets.checkpoint import Log
from fleetgauge_operations.recovery.plan.failback import (
    NONE_STRANDED,
    Failback,
    Returning,
    Span,
    Stranded,
    at_risk,
    new_since,
)


@pytest.mark.parametrize(
    ("replicated", "log", "span"),
    [
        (949, Log(0, 1000), Span(950, 1000)),
        (999, Log(0, 1000), Span(1000, 1000)),
        (None, Log(40, 1000), Span(40, 1000)),
        (10, Log(40, 1000), Span(40, 1000)),
        (2000, Log(0, 1000), Span(1000, 1000)),
    ],
)
def test_what_has_not_left_the_primary_is_at_risk(replicated: int | None, log: Log, span: Span) -> None:
    assert at_risk(replicated, log) == span


def test_so_many_are_at_risk() -> None:
    assert len(at_risk(949, Log(0, 1000))) == 50


def test_what_the_secondary_took_since_is_to_be_carried_back() -> None:
    assert new_since(700, Log(0, 720)) == Span(700, 720)
    assert len(new_since(700, Log(710, 720))) == 10


def failback(*partitions: Returning, names_kept: bool = True) -> Failback:
    return Failback("north", "south", names_kept, partitions, ordered=("accounts",))


SOME_LEFT = Stranded(50, 5_000, 1_000, 2_000, (950, 951, 952))


def test_where_nothing_is_stranded_nothing_is_to_be_decided() -> None:
    found = failback(Returning("accounts", 0, Span(950, 1000), NONE_STRANDED, Span(700, 700)))
    assert found.stranded == 0
    assert [step.split(" ", 1)[0] for step in found.steps] == ["stop", "stop", "write", "move"]


def test_what_is_stranded_goes_first_and_a_person_decides_where_order_counts() -> None:
    orders = Returning("orders", 0, Span(950, 1000), SOME_LEFT, Span(700, 720))
    steps = failback(orders).steps
    assert steps[0] == "let the mirror north to south run until nothing is stranded: 50 records"
    assert "mirror south to north what is new there: 20 records, from the offsets above" in steps
    both = failback(orders, Returning("accounts", 0, Span(0, 10), SOME_LEFT, None)).steps
    assert both[0].startswith("decide by hand of accounts: ")


def test_what_nobody_has_compared_counts_as_stranded() -> None:
    assert failback(Returning("orders", 0, Span(0, 300_000), None, None)).stranded == 300_000


def test_both_ways_under_the_same_names_never_run_at_once() -> None:
    none = Returning("orders", 0, Span(10, 10), NONE_STRANDED, None)
    assert any("for ever" in step for step in failback(none).steps)
    assert not any("for ever" in step for step in failback(none, names_kept=False).steps)
