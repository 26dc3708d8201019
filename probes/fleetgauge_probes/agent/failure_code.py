"""Why a probe failed, in one code."""

from fleetgauge_core.kafka import AUTHENTICATION, Silence

#: All that a producer knows of a probe whose broker it could not even talk to.
_TIMED_OUT = "MSG_TIMED_OUT"


def failure_code(code: str, silence: Silence | None, unreachable: str | None, throttled: bool) -> str:
    """The producer's own, or what turned every client away from the broker, or held us back, at that time.

    ``silence`` is what the last cold question to the broker met, ``unreachable`` why the cluster did not
    say when it was last asked who its brokers are.
    """
    if code != _TIMED_OUT:
        return code
    if silence and silence.of_security:
        return silence.name
    if unreachable == AUTHENTICATION:
        return AUTHENTICATION.upper()
    return "THROTTLED" if throttled else code
