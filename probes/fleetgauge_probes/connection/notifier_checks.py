"""Checks of the connections to the receivers of notifications. They notify nobody."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial

from fleetgauge_core.fleet import Notifier, SecretError
from fleetgauge_core.http import (
    HttpFailureError,
    HttpResponse,
    ReceiverEndpoint,
    describe_status,
    name_for_people,
)
from fleetgauge_core.runtime.deadline import run_until_deadline
from fleetgauge_probes.connection.check import ConnectionCheck, build_unknown_check

#: Of Alertmanager's API v2; needs the login, and changes nothing.
_STATUS_PATH = "/api/v2/status"
#: A check sends a single request, whose time is bounded too.
_DEADLINE_S = 15.0
_CHECK = "reachable"
_MEND = "correct the notifier's settings, then try `fleetgauge notify test`"


@dataclass(frozen=True, slots=True)
class NotifierChecks:
    """The checks of one notifier, which is named as by `fleetgauge notify test`."""

    notifier: str
    kind: str
    checks: tuple[ConnectionCheck, ...]


def check_notifiers(notifiers: Sequence[Notifier]) -> tuple[NotifierChecks, ...]:
    """Return the checks of each notifier in the fleet file's order."""
    checks: dict[int, ConnectionCheck] = {}

    def check(position: int, notifier: Notifier) -> None:
        checks[position] = check_notifier(notifier)

    run_until_deadline(
        [partial(check, position, notifier) for position, notifier in enumerate(notifiers)], _DEADLINE_S
    )
    late = ConnectionCheck(_CHECK, False, f"no result within {_DEADLINE_S:.0f} s", _MEND)
    return tuple(
        NotifierChecks(name, notifier.kind, (checks.get(position, late),))
        for position, (name, notifier) in enumerate(zip(name_for_people(notifiers), notifiers, strict=True))
    )


def check_notifier(notifier: Notifier) -> ConnectionCheck:
    """Return whether the receiver answers, through its proxy and with TLS.

    Alertmanager is asked for its status with the login. Of the others only the root of the host is requested,
    because any request to the URL itself may notify somebody.
    """
    endpoint = ReceiverEndpoint(notifier)
    try:
        if notifier.kind == "alertmanager":
            return evaluate_status(endpoint.get(_STATUS_PATH))
        return evaluate_probe(endpoint.probe())
    except (HttpFailureError, SecretError) as error:
        return ConnectionCheck(_CHECK, False, str(error), _MEND)


def evaluate_status(response: HttpResponse) -> ConnectionCheck:
    """Return the check by the response to a request for Alertmanager's status."""
    if response.status == 200:
        return ConnectionCheck(_CHECK, True, "answers, and accepts the login if there is any")
    return ConnectionCheck(_CHECK, False, _describe(response), _MEND)


def evaluate_probe(response: HttpResponse) -> ConnectionCheck:
    """Return the check by the response to a request for the root of a receiver's host.

    Every status shows that the host answers, except those by which a proxy says that it cannot reach it.
    """
    if response.status == 407 or (response.may_be_of_proxy and response.status in (500, 502, 503, 504)):
        return ConnectionCheck(_CHECK, False, _describe(response), _MEND)
    if response.may_be_of_proxy and response.status == 403:
        return build_unknown_check(_CHECK, "the proxy or the receiver answers with status 403")
    return ConnectionCheck(
        _CHECK, True, "its host answers; `fleetgauge notify test` shows whether it accepts"
    )


def _describe(response: HttpResponse) -> str:
    hint = describe_status(response.status, response.may_be_of_proxy)
    return f"answers with status {response.status}" + (f": {hint}" if hint else "")
