"""Failures of HTTP requests in words. They never contain a URL, a login or a header, which may be secret."""

import re
import socket
import ssl
from http import HTTPStatus
from http.client import HTTPException

from urllib3.exceptions import (
    ConnectTimeoutError,
    HTTPError,
    LocationValueError,
    NameResolutionError,
    NewConnectionError,
    ProtocolError,
    ProxyError,
    ReadTimeoutError,
    SSLError,
)

_REFUSED_TUNNEL = re.compile(r"Tunnel connection failed: ([0-9]{3})")
#: OpenSSL's X509_V_ERR_* codes; all other codes concern the chain of trust.
_CERTIFICATE_PROBLEMS = {
    10: "its certificate has expired",
    62: "its certificate is for another name",
    64: "its certificate is for another address",
}
_CLOSED = "the connection was closed without a response in HTTP"
#: With TLS 1.3 a client learns only after the handshake that its certificate is refused, and often not even
#: then, if the connection is reset while it sends.
_CLOSED_TLS = (
    "the TLS connection was closed: a client certificate may be required, by `certificate` and `key`"
)
_STATUS_HINTS: dict[int, str] = {
    HTTPStatus.UNAUTHORIZED: "the login is missing or refused: check `basic_auth`, `bearer` or `headers`",
    HTTPStatus.FORBIDDEN: "the login lacks a permission, or a proxy forbids the address",
    HTTPStatus.NOT_FOUND: "nothing is at this path: check the URL",
    HTTPStatus.METHOD_NOT_ALLOWED: "the URL accepts no POST: check it",
    HTTPStatus.PROXY_AUTHENTICATION_REQUIRED: (
        "the proxy demands a login or refuses it: check the URL that `proxy` or the environment gives"
    ),
    HTTPStatus.REQUEST_ENTITY_TOO_LARGE: "the request is too large",
    HTTPStatus.TOO_MANY_REQUESTS: "too many requests",
}


def describe_status(status: int, may_be_of_proxy: bool = False) -> str | None:
    """Return what a status other than 2xx probably means; None if nothing is known."""
    if hint := _STATUS_HINTS.get(status):
        return hint
    if 300 <= status < 400:
        return "redirected elsewhere, for example to a login page: check the URL"
    if status >= 500:
        return "an error of the receiver" + (" or of the proxy" if may_be_of_proxy else "")
    return None


def describe_failure(error: Exception, with_tls: bool = False) -> str:
    """Return why there was no response; ``with_tls`` says whether the receiver was connected to by TLS."""
    match error:
        case ProxyError():
            return f"proxy: {_describe_proxy_failure(error.original_error)}"
        case NameResolutionError() | socket.gaierror():
            return "the host name cannot be resolved"
        case NewConnectionError():
            return _describe_connection_failure(error.__cause__)
        case ConnectTimeoutError():
            return "no connection in time"
        case ReadTimeoutError() | TimeoutError():
            return "no response in time"
        case SSLError():
            return _describe_tls_failure(error.args[0] if error.args else error)
        case ssl.SSLError():
            return _describe_tls_failure(error)
        case LocationValueError() | UnicodeError():
            return "the URL is invalid"
        case ProtocolError() if with_tls:
            return _CLOSED_TLS
        case ProtocolError():
            return _CLOSED
        case HTTPError() | HTTPException() | OSError() | ValueError():
            return _describe_connection_failure(error)
        case _:
            return type(error).__name__


def _describe_proxy_failure(error: Exception) -> str:
    if refused := _REFUSED_TUNNEL.search(str(error)):
        status = int(refused[1])
        hint = describe_status(status, may_be_of_proxy=True)
        return f"refused with status {status}" + (f": {hint}" if hint else "")
    return describe_failure(error)


def _describe_connection_failure(error: BaseException | None) -> str:
    match error:
        case ConnectionRefusedError():
            return "connection refused"
        case ConnectionError():
            return _CLOSED
        case OSError(strerror=str() as reason):
            return reason.lower()
        case _:
            return type(error).__name__


def _describe_tls_failure(error: object) -> str:
    """Return the cause of a failed TLS handshake."""
    match error:
        case ssl.SSLCertVerificationError():
            untrusted = f"its certificate is not trusted ({error.verify_message}): check `ca`"
            return _CERTIFICATE_PROBLEMS.get(error.verify_code, untrusted)
        case ssl.SSLError(reason=str() as reason) if "ALERT" in reason:
            return "it refuses our client certificate or requires one: check `certificate` and `key`"
        case ssl.SSLError(reason=str() as reason) if reason in ("WRONG_VERSION_NUMBER", "HTTP_REQUEST"):
            return "it does not speak TLS: check the URL"
        case ssl.SSLEOFError() | ssl.SSLZeroReturnError():
            return _CLOSED_TLS
        case _:
            return "the TLS handshake failed"
