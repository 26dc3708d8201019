import pytest

from fleetgauge_core.kafka import Silence
from fleetgauge_probes.agent.failure_code import failure_code


@pytest.mark.parametrize(
    ("code", "silence", "unreachable", "found"),
    [
        ("MSG_TIMED_OUT", None, None, "MSG_TIMED_OUT"),
        ("MSG_TIMED_OUT", Silence.MUTE, None, "MSG_TIMED_OUT"),
        ("MSG_TIMED_OUT", Silence.CERTIFICATE_EXPIRED, None, "CERTIFICATE_EXPIRED"),
        (
            "MSG_TIMED_OUT",
            Silence.CERTIFICATE_UNTRUSTED,
            "authentication",
            "CERTIFICATE_UNTRUSTED",
        ),
        ("MSG_TIMED_OUT", None, "authentication", "AUTHENTICATION"),
        ("MSG_TIMED_OUT", None, "no_answer", "MSG_TIMED_OUT"),
        ("NOT_ENOUGH_REPLICAS", Silence.CERTIFICATE_EXPIRED, "authentication", "NOT_ENOUGH_REPLICAS"),
    ],
)
def test_a_time_out_is_named_by_what_turns_everybody_away(
    code: str, silence: Silence | None, unreachable: str | None, found: str
) -> None:
    assert failure_code(code, silence, unreachable, throttled=False) == found


def test_who_is_held_back_is_told_from_who_is_turned_away() -> None:
    assert failure_code("MSG_TIMED_OUT", None, None, throttled=True) == "THROTTLED"
    assert failure_code("NOT_ENOUGH_REPLICAS", None, None, throttled=True) == "NOT_ENOUGH_REPLICAS"
    assert failure_code("MSG_TIMED_OUT", Silence.NO_TLS, None, throttled=True) == "NO_TLS"
    assert failure_code("MSG_TIMED_OUT", None, "authentication", throttled=True) == "AUTHENTICATION"
