from dataclasses import FrozenInstanceError, asdict, replace
from datetime import UTC, datetime, timedelta, timezone

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fleetgauge_core.contract import (
    EARLIER_PROBE_PULSES,
    HEALTH_EVENT,
    PROBE_MINUTE,
    PROBE_PULSE,
    BrokerPulse,
    HealthEvent,
    Leg,
    LegPulse,
    ProbeMinute,
    ProbePulse,
    RecordDecodeError,
)
from tests.probe_minutes import CLIENT

NOON = datetime(2026, 3, 2, 12, tzinfo=UTC)
_COUNTS = st.integers(0, 2**31 - 1)
_IDS = st.integers(-(2**31), 2**31 - 1)
_NAMES = st.text(st.characters(exclude_categories=["Cs"]), max_size=20)
_TIMES = st.integers(0, 4 * 10**12).map(
    lambda ms: datetime(1970, 1, 1, tzinfo=UTC) + timedelta(milliseconds=ms)
)
_ASCENDING = st.lists(_COUNTS, max_size=20).map(lambda us: tuple(sorted(us)))
_CODES = st.dictionaries(_NAMES, _COUNTS, max_size=4)
_INTS = st.lists(_IDS, max_size=5).map(tuple)

LEGS = st.builds(
    LegPulse,
    st.sampled_from(Leg),
    *[_COUNTS] * 4,
    *[st.none() | _COUNTS] * 4,
)
BROKERS = st.builds(
    BrokerPulse,
    _IDS,
    *[st.booleans()] * 3,
    *[st.none() | _COUNTS] * 2,
    st.lists(LEGS, max_size=2).map(tuple),
    *[st.none() | _COUNTS] * 3,
    st.none() | _NAMES,
    *[st.none() | _COUNTS] * 3,
)
PULSES = st.builds(
    ProbePulse,
    *[_NAMES] * 4,
    st.integers(0, 2**62),
    _TIMES,
    _COUNTS,
    st.lists(BROKERS, max_size=4).map(tuple),
    *[st.none() | _COUNTS] * 2,
    st.none() | _NAMES,
)
EVENTS = st.builds(
    HealthEvent, _NAMES, _NAMES, _NAMES, st.none() | _IDS, _TIMES, _NAMES, _NAMES, _NAMES, _NAMES
)
MINUTES = st.builds(
    ProbeMinute,
    agent_id=_NAMES,
    agent_version=_NAMES,
    run_id=_NAMES,
    sequence=st.integers(0, 2**62),
    vantage=_NAMES,
    cluster_id=_NAMES,
    kafka_cluster_uuid=_NAMES,
    broker_id=_IDS,
    rack=st.none() | _NAMES,
    leg=st.sampled_from(Leg),
    minute=_TIMES,
    expected_brokers=_INTS,
    attempted=_COUNTS,
    acknowledged=_COUNTS,
    received=_COUNTS,
    ack_us=_ASCENDING,
    e2e_us=_ASCENDING,
    produce_failures=_CODES,
    consume_failures=_CODES,
    lost=_COUNTS,
    duplicated=_COUNTS,
    out_of_order=_COUNTS,
    schedule_lag_p95_us=_COUNTS,
    schedule_lag_max_us=_COUNTS,
    led_by=_INTS,
    leader_epoch=st.none() | _IDS,
    emitted_at=_TIMES,
)
PULSE = ProbePulse(
    agent_id="host",
    run_id="run",
    vantage="zone-a",
    cluster_id="orders",
    sequence=1,
    emitted_at=NOON,
    window_ms=15_000,
    brokers=(),
)
EVENT = HealthEvent("id", "same", "orders", None, NOON, "HEALTHY", "SUSPECT", "BROKER_DOWN", "{}")


@given(PULSES)
def test_a_decoded_pulse_equals_the_encoded_pulse(pulse: ProbePulse) -> None:
    assert ProbePulse.decode(pulse.encode()) == pulse


@given(PULSES)
def test_fields_that_an_earlier_pulse_version_lacks_are_none(pulse: ProbePulse) -> None:
    version_3, version_2, version_1 = (
        ProbePulse.decode(schema.encode(asdict(pulse))) for schema in EARLIER_PROBE_PULSES
    )
    legs_without_faults = [
        tuple(replace(leg, agent_fault=None) for leg in broker.legs) for broker in pulse.brokers
    ]
    pulse = replace(
        pulse,
        brokers=tuple(
            replace(broker, legs=legs, connection_fault=None)
            for broker, legs in zip(pulse.brokers, legs_without_faults, strict=True)
        ),
    )
    assert version_3 == pulse
    missing = {"requests_waiting": None, "stalled_ms": None, "offline_dirs": None}
    assert version_2 == replace(pulse, brokers=tuple(replace(broker, **missing) for broker in pulse.brokers))
    missing |= {"dns_us": None, "connect_us": None, "tls_us": None, "silence": None}
    assert version_1 == replace(
        pulse,
        brokers=tuple(replace(broker, **missing) for broker in pulse.brokers),
        bootstrap_age_ms=None,
        bootstrap_us=None,
        bootstrap_failure=None,
    )


@given(EVENTS)
def test_a_decoded_event_equals_the_encoded_event(event: HealthEvent) -> None:
    assert HealthEvent.decode(event.encode()) == event


@given(MINUTES)
def test_a_decoded_minute_equals_the_encoded_minute(minute: ProbeMinute) -> None:
    assert ProbeMinute.decode(minute.encode()) == minute


def test_a_time_in_another_zone_is_decoded_as_the_same_time_in_utc() -> None:
    event = HealthEvent.decode(
        HealthEvent(**asdict(EVENT) | {"at": NOON.astimezone(timezone(timedelta(hours=5)))}).encode()
    )
    assert event.at == NOON
    assert event.at.utcoffset() == timedelta()


@pytest.mark.parametrize("value", [b"", b"junk", EVENT.encode(), PULSE.encode()[:-1], PULSE.encode() + b"x"])
def test_decoding_a_pulse_rejects_any_other_value(value: bytes) -> None:
    with pytest.raises(RecordDecodeError):
        ProbePulse.decode(value)


@pytest.mark.parametrize(
    "value",
    [b"", b"junk", PULSE.encode(), CLIENT.encode()[:-1], PROBE_MINUTE.encode(asdict(CLIENT) | {"leg": "x"})],
)
def test_decoding_a_minute_rejects_any_other_value(value: bytes) -> None:
    with pytest.raises(RecordDecodeError):
        ProbeMinute.decode(value)


@pytest.mark.parametrize("value", [b"", b"junk", PULSE.encode(), EVENT.encode()[:-1], EVENT.encode() + b"x"])
def test_decoding_an_event_rejects_any_other_value(value: bytes) -> None:
    with pytest.raises(RecordDecodeError):
        HealthEvent.decode(value)


def test_a_broker_pulse_returns_the_pulse_of_a_leg_or_none() -> None:
    client = LegPulse(Leg.CLIENT, 1, 1, 0, 0, None, 5, 7, 7)
    broker = BrokerPulse(1, True, True, False, 5, 900, (client,))
    assert broker.leg_pulse(Leg.CLIENT) == client
    assert broker.leg_pulse(Leg.LEADER) is None


def test_leg_values_are_those_of_the_records() -> None:
    assert [str(leg) for leg in Leg] == ["client", "leader"]


def test_records_are_immutable() -> None:
    with pytest.raises(FrozenInstanceError):
        PULSE.sequence = 2  # type: ignore[misc]


def test_each_record_is_encoded_with_its_own_schema() -> None:
    assert PULSE.encode().startswith(PROBE_PULSE.header)
    assert EVENT.encode().startswith(HEALTH_EVENT.header)
