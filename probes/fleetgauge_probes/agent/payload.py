"""What a probe carries: who sent it and which one it is."""

import struct
from typing import NamedTuple
from uuid import UUID

from fleetgauge_core.contract import Leg

_LAYOUT = struct.Struct(">16sBiQ")
#: Padded to the size of a small business event.
SIZE_BYTES = 128
_LEGS = {Leg.CLIENT: 1, Leg.LEADER: 2, None: 0}
_BY_CODE = {code: leg for leg, code in _LEGS.items()}


class ProbeName(NamedTuple):
    """One probe; ``leg`` is None for a warm-up, which is never counted."""

    broker_id: int
    leg: Leg | None
    sequence: int


def pack(probe_id: UUID, name: ProbeName) -> bytes:
    return _LAYOUT.pack(probe_id.bytes, _LEGS[name.leg], name.broker_id, name.sequence).ljust(
        SIZE_BYTES, b"\0"
    )


def unpack(probe_id: UUID, payload: bytes) -> ProbeName | None:
    """The probe, or None for anything that somebody else sent."""
    if len(payload) != SIZE_BYTES or payload[:16] != probe_id.bytes:
        return None
    _, code, broker_id, sequence = _LAYOUT.unpack_from(payload)
    return ProbeName(broker_id, _BY_CODE.get(code), sequence)
