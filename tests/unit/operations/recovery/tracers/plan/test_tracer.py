import pytest

from fleetgauge_operations.recovery.tracers.plan.tracer import ORIGIN, Tracer

ONE = Tracer("north", "fleetgauge.tracers", 0, "run-1", 7, 1_764_000_000_123)


def test_a_tracer_is_what_its_header_says() -> None:
    assert Tracer.of([("trace-id", b"x"), *ONE.headers.items()]) == ONE


@pytest.mark.parametrize(
    "said",
    [None, b"", b"{}", b"[]", b"\xff", b'{"cluster": "north"}', b'{"sequence": "seven"}', b"null"],
)
def test_whatever_else_is_under_its_header_is_no_tracer(said: bytes | None) -> None:
    assert Tracer.of([(ORIGIN, said)]) is None


def test_a_record_without_headers_is_none() -> None:
    assert Tracer.of([]) is None
