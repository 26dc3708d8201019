from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fleetgauge_core.contract import Leg
from fleetgauge_probes.agent.payload import ProbeName, pack, unpack

RUN = UUID(int=0x1234)
NAMES = st.builds(
    ProbeName,
    st.integers(-(2**31), 2**31 - 1),
    st.none() | st.sampled_from(Leg),
    st.integers(0, 2**64 - 1),
)


@given(st.uuids(), NAMES)
def test_a_run_knows_its_own_probe_again(run: UUID, name: ProbeName) -> None:
    assert unpack(run, pack(run, name)) == name


@given(st.uuids(), st.uuids(), NAMES)
def test_a_probe_of_another_run_is_nobodys(run: UUID, other: UUID, name: ProbeName) -> None:
    assert (unpack(other, pack(run, name)) is None) == (run != other)


@given(st.binary(max_size=300))
def test_anything_else_is_nobodys_and_breaks_nothing(value: bytes) -> None:
    assert unpack(RUN, value) is None


@given(NAMES, st.integers(0, 127))
def test_a_truncated_probe_is_nobodys(name: ProbeName, size: int) -> None:
    assert unpack(RUN, pack(RUN, name)[:size]) is None


@pytest.mark.parametrize("leg", [Leg.CLIENT, Leg.LEADER, None])
def test_every_probe_has_the_same_size(leg: Leg | None) -> None:
    assert len(pack(RUN, ProbeName(1, leg, 2**40))) == 128
