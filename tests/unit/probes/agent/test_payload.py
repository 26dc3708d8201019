from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fleetgauge_core.contract import Leg
from fleetgauge_probes.agent.payload import PAYLOAD_BYTES, ProbeKey, decode_payload, encode_payload

PROBE_ID = UUID(int=0x1234)
KEYS = st.builds(
    ProbeKey,
    st.integers(-(2**31), 2**31 - 1),
    st.none() | st.sampled_from(Leg),
    st.integers(0, 2**64 - 1),
)


@given(st.uuids(), KEYS)
def test_a_payload_is_decoded_to_its_key(probe_id: UUID, key: ProbeKey) -> None:
    assert decode_payload(probe_id, encode_payload(probe_id, key)) == key


@given(st.uuids(), st.uuids(), KEYS)
def test_a_payload_of_another_cluster_probe_is_ignored(probe_id: UUID, other_id: UUID, key: ProbeKey) -> None:
    assert (decode_payload(other_id, encode_payload(probe_id, key)) is None) == (probe_id != other_id)


@given(st.binary(max_size=300))
def test_any_other_message_is_ignored(payload: bytes) -> None:
    assert decode_payload(PROBE_ID, payload) is None


@given(KEYS, st.integers(0, PAYLOAD_BYTES - 1))
def test_a_truncated_payload_is_ignored(key: ProbeKey, size: int) -> None:
    assert decode_payload(PROBE_ID, encode_payload(PROBE_ID, key)[:size]) is None


@pytest.mark.parametrize("leg", [Leg.CLIENT, Leg.LEADER, None])
def test_every_payload_has_the_same_size(leg: Leg | None) -> None:
    assert len(encode_payload(PROBE_ID, ProbeKey(1, leg, 2**40))) == PAYLOAD_BYTES == 128
