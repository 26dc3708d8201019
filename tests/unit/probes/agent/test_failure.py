import pytest

from fleetgauge_probes.agent.failure import failure_code
from fleetgauge_probes.kafka import Silence


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
    assert failure_code(code, silence, unreachable) == found
