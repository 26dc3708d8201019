"""The message value of a probe: its agent, home broker, leg and sequence, padded to a fixed size."""

import struct
from typing import NamedTuple
from uuid import UUID

from fleetgauge_core.contract import Leg

_LAYOUT = struct.Struct(">16sBiQ")
#: The size of a small business event.
PAYLOAD_BYTES = 128
_CODE_BY_LEG = {Leg.CLIENT: 1, Leg.LEADER: 2, None: 0}
_LEG_BY_CODE = {code: leg for leg, code in _CODE_BY_LEG.items()}


class ProbeKey(NamedTuple):
    """Identifies one probe of an agent; ``leg`` is None for a warm-up message, which is never counted."""

    broker_id: int
    leg: Leg | None
    sequence: int


def encode_payload(probe_id: UUID, key: ProbeKey) -> bytes:
    """Return the message value of a probe sent by the cluster probe ``probe_id``."""
    return _LAYOUT.pack(probe_id.bytes, _CODE_BY_LEG[key.leg], key.broker_id, key.sequence).ljust(
        PAYLOAD_BYTES, b"\0"
    )


def decode_payload(probe_id: UUID, payload: bytes) -> ProbeKey | None:
    """Return the key of a probe that ``probe_id`` sent; None for any other message."""
    if len(payload) != PAYLOAD_BYTES or payload[:16] != probe_id.bytes:
        return None
    _, code, broker_id, sequence = _LAYOUT.unpack_from(payload)
    return ProbeKey(broker_id, _LEG_BY_CODE.get(code), sequence)
