"""Requests to the receivers of notifiers: proxies, logins, TLS, a bounded time, and failures in words."""

from fleetgauge_core.http.exchange import HttpFailureError, HttpResponse
from fleetgauge_core.http.failure import describe_status
from fleetgauge_core.http.receiver_endpoint import ReceiverEndpoint, encode_body, redirect_target
from fleetgauge_core.http.receiver_name import name_for_people, read_host

__all__ = [
    "HttpFailureError",
    "HttpResponse",
    "ReceiverEndpoint",
    "describe_status",
    "encode_body",
    "name_for_people",
    "read_host",
    "redirect_target",
]
