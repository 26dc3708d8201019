"""Tracers are read from the headers of a record."""

import pytest

from fleetgauge_operations.recovery.tracers.plan.tracer import ORIGIN_HEADER, Tracer

TRACER = Tracer("north", "fleetgauge.tracers", 0, "run-1", 7, 1_764_000_000_123)


def test_a_tracer_is_decoded_from_its_header() -> None:
    assert Tracer.from_headers([("trace-id", b"x"), *TRACER.headers.items()]) == TRACER


@pytest.mark.parametrize(
    "header",
    [None, b"", b"{}", b"[]", b"\xff", b'{"cluster": "north"}', b'{"sequence": "seven"}', b"null"],
)
def test_an_invalid_header_is_not_a_tracer(header: bytes | None) -> None:
    assert Tracer.from_headers([(ORIGIN_HEADER, header)]) is None


def test_a_record_without_headers_is_not_a_tracer() -> None:
    assert Tracer.from_headers([]) is None
