import errno
import socket
import ssl
from collections.abc import Callable

import pytest

from fleetgauge_core.kafka import ConnectionFailure
from fleetgauge_core.kafka.connection_failure import (
    choose_connect_error,
    classify_handshake_error,
    classify_response_error,
    is_own_resource_error,
)
from tests.unit.core.kafka.exhausted_host import no_file_left


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
        "certificate_not_yet_valid",
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
        RuntimeError("can't start new thread"),
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
        RuntimeError("dictionary changed size during iteration"),
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


REFUSED = ConnectionRefusedError(errno.ECONNREFUSED, "Connection refused")
NO_ADDRESS = OSError(errno.EADDRNOTAVAIL, "Cannot assign requested address")
NO_FILE = OSError(errno.EMFILE, "Too many open files")
NO_ROUTE = OSError(errno.ENETUNREACH, "Network is unreachable")
#: No host has a route to an address of this kind (RFC 6666), or an interface of that index.
UNUSED = "fe80::1%4000000000"


@pytest.mark.parametrize("is_reversed", [False, True])
@pytest.mark.parametrize(
    ("errors", "expected"),
    [
        ({"127.0.0.1": REFUSED, UNUSED: NO_ADDRESS}, REFUSED),
        ({"127.0.0.1": REFUSED, "127.0.0.2": NO_FILE}, REFUSED),
        ({"127.0.0.1": TimeoutError(), UNUSED: NO_ROUTE}, TimeoutError()),
        ({"127.0.0.1": NO_FILE, UNUSED: NO_ROUTE}, NO_FILE),
        ({"127.0.0.1": NO_ADDRESS, UNUSED: NO_ADDRESS}, NO_ADDRESS),
        ({"127.0.0.1": NO_ROUTE}, NO_ROUTE),
    ],
)
def test_the_error_that_tells_most_of_the_broker_decides(
    errors: dict[str, OSError], expected: OSError, *, is_reversed: bool
) -> None:
    ordered = dict(reversed(errors.items())) if is_reversed else errors
    chosen = choose_connect_error(ordered)
    assert (type(chosen), chosen.errno) == (type(expected), expected.errno)


def test_an_address_family_that_this_host_does_not_use_is_no_lack_of_ports() -> None:
    assert is_own_resource_error(choose_connect_error({"127.0.0.1": NO_ADDRESS}))
    assert not is_own_resource_error(choose_connect_error({UNUSED: NO_ADDRESS}))
