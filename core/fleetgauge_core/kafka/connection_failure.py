"""Causes of failed connections to brokers, classified by the exception and the step that raised it."""

import errno
import os
import socket
import ssl
import struct
from collections.abc import Mapping
from enum import Enum
from itertools import chain


class ConnectionFailure(Enum):
    """The cause of a failed connection; every cause has its own remedy.

    The value is the code that is stored in records and metrics.
    """

    HOST_NOT_FOUND = "no_name"
    CONNECTION_REFUSED = "refused"
    CONNECTION_TIMED_OUT = "timed_out"
    HOST_UNREACHABLE = "no_way"
    NO_RESPONSE = "mute"
    NOT_KAFKA = "not_kafka"
    TLS_REQUIRED = "wants_tls"
    TLS_NOT_SUPPORTED = "no_tls"
    CERTIFICATE_EXPIRED = "certificate_expired"
    CERTIFICATE_NOT_YET_VALID = "certificate_not_yet_valid"
    CERTIFICATE_HOSTNAME_MISMATCH = "certificate_of_another_name"
    CERTIFICATE_UNTRUSTED = "certificate_untrusted"
    CLIENT_CERTIFICATE_REJECTED = "our_certificate_refused"
    TLS_REFUSED = "tls_refused"
    """The broker ends the TLS handshake for a reason other than a client's certificate."""
    OWN_RESOURCES = "own_resources"
    """This host cannot open a connection to any broker; it says nothing about the broker."""

    @property
    def description(self) -> str:
        """The cause in words, for logs and reports."""
        return _DESCRIPTIONS[self]

    @property
    def is_security_failure(self) -> bool:
        """Whether the listener works, but rejects every client with these TLS settings."""
        return self in _SECURITY_FAILURES


_DESCRIPTIONS = {
    ConnectionFailure.HOST_NOT_FOUND: "no such name",
    ConnectionFailure.CONNECTION_REFUSED: "connection refused",
    ConnectionFailure.CONNECTION_TIMED_OUT: "no connection in time",
    ConnectionFailure.HOST_UNREACHABLE: "no way there",
    ConnectionFailure.NO_RESPONSE: "takes connections, but does not answer",
    ConnectionFailure.NOT_KAFKA: "does not speak Kafka's protocol",
    ConnectionFailure.TLS_REQUIRED: "speaks TLS alone",
    ConnectionFailure.TLS_NOT_SUPPORTED: "does not speak TLS",
    ConnectionFailure.CERTIFICATE_EXPIRED: "its certificate has expired",
    ConnectionFailure.CERTIFICATE_NOT_YET_VALID: "its certificate is not valid yet",
    ConnectionFailure.CERTIFICATE_HOSTNAME_MISMATCH: "its certificate is for another name",
    ConnectionFailure.CERTIFICATE_UNTRUSTED: "its certificate is not of an authority that we trust",
    ConnectionFailure.CLIENT_CERTIFICATE_REJECTED: "does not take our certificate",
    ConnectionFailure.TLS_REFUSED: "refuses the TLS handshake",
    ConnectionFailure.OWN_RESOURCES: "this host is out of open files, memory or local ports",
}
_SECURITY_FAILURES = frozenset(
    {
        ConnectionFailure.TLS_REQUIRED,
        ConnectionFailure.TLS_NOT_SUPPORTED,
        ConnectionFailure.CERTIFICATE_EXPIRED,
        ConnectionFailure.CERTIFICATE_NOT_YET_VALID,
        ConnectionFailure.CERTIFICATE_HOSTNAME_MISMATCH,
        ConnectionFailure.CERTIFICATE_UNTRUSTED,
        ConnectionFailure.CLIENT_CERTIFICATE_REJECTED,
        ConnectionFailure.TLS_REFUSED,
    }
)
#: OpenSSL's X509_V_ERR_* codes; all other codes concern the chain of trust.
_FAILURE_BY_VERIFY_CODE = {
    9: ConnectionFailure.CERTIFICATE_NOT_YET_VALID,
    10: ConnectionFailure.CERTIFICATE_EXPIRED,
    62: ConnectionFailure.CERTIFICATE_HOSTNAME_MISMATCH,
    64: ConnectionFailure.CERTIFICATE_HOSTNAME_MISMATCH,
}
#: Errors of a system call for which this host is the cause.
_OWN_ERRORS = frozenset(
    {
        *(errno.EMFILE, errno.ENFILE, errno.ENOMEM, errno.ENOBUFS, errno.ENOSPC, errno.EADDRNOTAVAIL),
        *(errno.EAGAIN, socket.EAI_MEMORY),
    }
)
#: The alerts that concern a client's certificate (RFC 8446, section 6.2), as the ends of OpenSSL's names. A
#: broker whose own key, cipher suites or versions are wrong sends others.
_CERTIFICATE_ALERTS = (
    *("BAD_CERTIFICATE", "UNSUPPORTED_CERTIFICATE", "CERTIFICATE_REVOKED", "CERTIFICATE_EXPIRED"),
    *("CERTIFICATE_UNKNOWN", "UNKNOWN_CA", "ACCESS_DENIED", "CERTIFICATE_REQUIRED"),
)
#: The first bytes of a TLS alert, which a TLS listener sends to a plaintext client (RFC 8446, section 5.1).
_TLS_ALERT = b"\x15\x03"
#: A larger response is not an ApiVersions response.
_MAX_RESPONSE_BYTES = 1 << 20


def is_own_resource_error(error: BaseException) -> bool:
    """Return whether this host is out of open files, memory, threads or local ports.

    A host name cannot be looked up without a file either, but that error does not say so: it is tried
    whether a file can be opened.
    """
    if isinstance(error, MemoryError) or getattr(error, "errno", None) in _OWN_ERRORS:
        return True
    if isinstance(error, RuntimeError):
        # The only thing that tells it from other errors of this class.
        return "can't start new thread" in str(error)
    is_definite = isinstance(error, ConnectionError | TimeoutError | ssl.SSLError)
    return isinstance(error, OSError) and not is_definite and not _can_open_files()


def _can_open_files() -> bool:
    try:
        os.close(os.open(os.devnull, os.O_RDONLY))
    except OSError:
        return False
    return True


def choose_connect_error(errors: Mapping[str, OSError]) -> OSError:
    """Return the most telling of the errors by which connections to the IP addresses of one host failed.

    That is what the host itself shows: that it refuses, or does not answer. What this host lacks comes next,
    and last what says nothing of either, as an address of a family that this host does not use.
    """
    definite = (error for error in errors.values() if isinstance(error, ConnectionError | TimeoutError))
    own = (
        error
        for address, error in errors.items()
        if is_own_resource_error(error) and not _is_without_source(address, error)
    )
    others = (
        OSError(errno.ENETUNREACH, str(error)) if _is_without_source(address, error) else error
        for address, error in reversed(tuple(errors.items()))
    )
    return next(chain(definite, own, others))


def _is_without_source(address: str, error: OSError) -> bool:
    """Return whether this host has no address of its own for a connection, instead of no free port.

    A datagram socket chooses its source address in the same way, from ports of its own, and sends nothing.
    """
    if error.errno != errno.EADDRNOTAVAIL:
        return False
    family = socket.AF_INET6 if ":" in address else socket.AF_INET
    try:
        with socket.socket(family, socket.SOCK_DGRAM) as datagrams:
            datagrams.connect((address, 1))
    except OSError:
        return True
    return False


def classify_connect_error(error: Exception) -> ConnectionFailure:
    """Return the cause of an error that was raised while resolving the host name or connecting."""
    match error:
        # A malformed host name, for example with an empty label, raises UnicodeError.
        case socket.gaierror() | UnicodeError():
            return ConnectionFailure.HOST_NOT_FOUND
        case ConnectionRefusedError():
            return ConnectionFailure.CONNECTION_REFUSED
        case TimeoutError():
            return ConnectionFailure.CONNECTION_TIMED_OUT
        case _:
            return ConnectionFailure.HOST_UNREACHABLE


def classify_handshake_error(error: Exception) -> ConnectionFailure:
    """Return the cause of an error that was raised during the TLS handshake of an open connection."""
    match error:
        case TimeoutError():
            return ConnectionFailure.NO_RESPONSE
        case ssl.SSLCertVerificationError():
            return _FAILURE_BY_VERIFY_CODE.get(error.verify_code, ConnectionFailure.CERTIFICATE_UNTRUSTED)
        case ssl.SSLError() if _is_alert(error):
            return _classify_alert(error)
        case _:
            return ConnectionFailure.TLS_NOT_SUPPORTED


def classify_response_error(error: Exception) -> ConnectionFailure:
    """Return the cause of an error that was raised while waiting for the ApiVersions response.

    TLS 1.3 rejects a client certificate only after the handshake, so that error appears here too.
    """
    match error:
        case TimeoutError():
            return ConnectionFailure.NO_RESPONSE
        case ssl.SSLError() if _is_alert(error):
            return _classify_alert(error)
        case _:
            return ConnectionFailure.NOT_KAFKA


def parse_response_size(prefix: bytes) -> int | ConnectionFailure:
    """Return the size in bytes that a response's first four bytes give, or why it is not ApiVersions.

    Raises: struct.error if there are not four bytes.
    """
    if prefix.startswith(_TLS_ALERT):
        return ConnectionFailure.TLS_REQUIRED
    (size,) = struct.unpack(">i", prefix)
    return size if 0 <= size <= _MAX_RESPONSE_BYTES else ConnectionFailure.NOT_KAFKA


def _is_alert(error: ssl.SSLError) -> bool:
    """Whether the error is an alert that the server sent, not a decision of this client."""
    return "ALERT" in (error.reason or "")


def _classify_alert(error: ssl.SSLError) -> ConnectionFailure:
    is_about_certificate = (error.reason or "").endswith(_CERTIFICATE_ALERTS)
    return (
        ConnectionFailure.CLIENT_CERTIFICATE_REJECTED
        if is_about_certificate
        else ConnectionFailure.TLS_REFUSED
    )
