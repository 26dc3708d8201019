import pytest

from fleetgauge_operations.recovery.checkpoint import Log
from fleetgauge_operations.recovery.failback import Span, at_risk, new_since


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
