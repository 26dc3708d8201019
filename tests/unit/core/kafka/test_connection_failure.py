import errno
import os
import resource
import socket
import ssl
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import pytest

from fleetgauge_core.kafka import ConnectionFailure
from fleetgauge_core.kafka.connection_failure import (
    classify_handshake_error,
    classify_response_error,
    is_own_resource_error,
)


@contextmanager
def no_file_left() -> Iterator[None]:
    """Let this process open no more files until the block is left."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    lowest_free = os.open(os.devnull, os.O_RDONLY)
    os.close(lowest_free)
    resource.setrlimit(resource.RLIMIT_NOFILE, (lowest_free, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


@pytest.mark.parametrize("failure", list(ConnectionFailure))
def test_every_failure_has_a_description(failure: ConnectionFailure) -> None:
    assert failure.description


def test_the_stored_codes_do_not_change() -> None:
    assert {failure.value for failure in ConnectionFailure} == {
        "no_name",
        "refused",
        "timed_out",
        "no_way",
        "mute",
        "not_kafka",
        "wants_tls",
        "no_tls",
        "certificate_expired",
        "certificate_of_another_name",
        "certificate_untrusted",
        "our_certificate_refused",
        "tls_refused",
        "own_resources",
    }


@pytest.mark.parametrize(
    "error",
    [
        OSError(errno.EMFILE, "Too many open files"),
        OSError(errno.ENFILE, "Too many open files in system"),
        OSError(errno.EADDRNOTAVAIL, "Cannot assign requested address"),
        OSError(errno.ENOBUFS, "No buffer space available"),
        OSError(errno.EAGAIN, "can't start new thread"),
        MemoryError(),
        socket.gaierror(socket.EAI_MEMORY, "Memory allocation failure"),
    ],
)
def test_a_host_without_resources_is_not_the_broker(error: BaseException) -> None:
    assert is_own_resource_error(error)


@pytest.mark.parametrize(
    "error",
    [
        ConnectionRefusedError(errno.ECONNREFUSED, "Connection refused"),
        ConnectionResetError(errno.ECONNRESET, "Connection reset by peer"),
        OSError(errno.EHOSTUNREACH, "No route to host"),
        OSError(errno.ENETUNREACH, "Network is unreachable"),
        TimeoutError(),
        socket.gaierror(socket.EAI_NONAME, "Name or service not known"),
        ssl.SSLError(1, "[SSL: WRONG_VERSION_NUMBER] wrong version number"),
        UnicodeError("label empty"),
    ],
)
def test_a_failed_connection_of_a_host_with_resources_is_not_the_hosts(error: BaseException) -> None:
    assert not is_own_resource_error(error)


def test_a_name_that_cannot_be_looked_up_without_a_file_is_the_hosts() -> None:
    with no_file_left():
        assert is_own_resource_error(OSError(errno.EBUSY, "Device or resource busy"))
        assert not is_own_resource_error(ConnectionRefusedError(errno.ECONNREFUSED, "Connection refused"))
    assert not is_own_resource_error(OSError(errno.EBUSY, "Device or resource busy"))


@pytest.mark.parametrize("classify", [classify_handshake_error, classify_response_error])
@pytest.mark.parametrize(
    ("reason", "failure"),
    [
        ("SSLV3_ALERT_HANDSHAKE_FAILURE", ConnectionFailure.TLS_REFUSED),
        ("TLSV1_ALERT_PROTOCOL_VERSION", ConnectionFailure.TLS_REFUSED),
        ("TLSV1_ALERT_INTERNAL_ERROR", ConnectionFailure.TLS_REFUSED),
        ("TLSV1_ALERT_INSUFFICIENT_SECURITY", ConnectionFailure.TLS_REFUSED),
        ("TLSV1_UNRECOGNIZED_NAME_ALERT", ConnectionFailure.TLS_REFUSED),
        ("SSLV3_ALERT_BAD_CERTIFICATE", ConnectionFailure.CLIENT_CERTIFICATE_REJECTED),
        ("SSLV3_ALERT_CERTIFICATE_EXPIRED", ConnectionFailure.CLIENT_CERTIFICATE_REJECTED),
        ("SSLV3_ALERT_CERTIFICATE_UNKNOWN", ConnectionFailure.CLIENT_CERTIFICATE_REJECTED),
        ("TLSV1_ALERT_UNKNOWN_CA", ConnectionFailure.CLIENT_CERTIFICATE_REJECTED),
        ("TLSV13_ALERT_CERTIFICATE_REQUIRED", ConnectionFailure.CLIENT_CERTIFICATE_REJECTED),
    ],
)
def test_only_alerts_about_certificates_concern_the_clients_certificate(
    classify: Callable[[Exception], ConnectionFailure], reason: str, failure: ConnectionFailure
) -> None:
    error = ssl.SSLError(1, f"[SSL: {reason}]")
    error.reason = reason
    assert classify(error) is failure
