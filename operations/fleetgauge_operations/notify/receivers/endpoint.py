"""Send a POST to a receiver and interpret its response."""

import re
from dataclasses import dataclass
from enum import StrEnum

from fleetgauge_core.fleet import SecretError
from fleetgauge_core.http import HttpFailureError, HttpResponse, ReceiverEndpoint, describe_status

#: Status codes for a body that will never be accepted: malformed, too large, unprocessable. Every other
#: error may be temporary: a wrong key or URL, a proxy, a rate limit.
_REJECTED = (400, 413, 422)
_ABOUT_THE_KEY = re.compile(rb"routing[ _]key", re.IGNORECASE)


class PostResult(StrEnum):
    """The result of a POST."""

    ACCEPTED = "accepted"
    REJECTED = "rejected"
    """The receiver will never accept this body."""
    UNAVAILABLE = "unavailable"
    """The receiver is unreachable, or responds with an error that may be temporary."""


@dataclass(frozen=True, slots=True)
class PostAnswer:
    """The result of a POST, with what came back in one line; ``status`` is None if there was no response."""

    result: PostResult
    description: str
    status: int | None = None


def post(endpoint: ReceiverEndpoint, path: str, body: object) -> PostAnswer:
    """POST a body once."""
    try:
        response = endpoint.post(path, body)
    except (HttpFailureError, SecretError) as error:
        return PostAnswer(PostResult.UNAVAILABLE, f"not delivered: {error}")
    return interpret_response(response)


def interpret_response(response: HttpResponse) -> PostAnswer:
    """Return whether a receiver has accepted a body, and if not, whether it ever will."""
    status = response.status
    if 200 <= status < 300:
        return PostAnswer(PostResult.ACCEPTED, f"accepted with status {status}", status)
    # PagerDuty also returns 400 for an unknown routing key, which can be corrected.
    concerns_key = bool(_ABOUT_THE_KEY.search(response.body))
    if status == 400 and concerns_key:
        hint: str | None = "the routing key is unknown: check `routing_key`"
    else:
        hint = describe_status(status, response.may_be_of_proxy)
    description = f"refused with status {status}" + (f": {hint}" if hint else "")
    rejected = status in _REJECTED and not concerns_key
    return PostAnswer(PostResult.REJECTED if rejected else PostResult.UNAVAILABLE, description, status)
