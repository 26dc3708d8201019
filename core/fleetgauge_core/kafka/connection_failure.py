"""Why an address gives no answer: what stands in the way, told from the error that it makes."""

import socket
import ssl
from enum import Enum


class Silence(Enum):
    """A reason of its own for whatever is mended in another place."""

    NO_NAME = "no such name"
    REFUSED = "connection refused"
    TIMED_OUT = "no connection in time"
    NO_WAY = "no way there"
    MUTE = "takes connections, but does not answer"
    NOT_KAFKA = "does not speak Kafka's protocol"
    WANTS_TLS = "speaks TLS alone"
    NO_TLS = "does not speak TLS"
    CERTIFICATE_EXPIRED = "its certificate has expired"
    CERTIFICATE_OF_ANOTHER_NAME = "its certificate is for another name"
    CERTIFICATE_UNTRUSTED = "its certificate is not of an authority that we trust"
    OUR_CERTIFICATE_REFUSED = "does not take our certificate"

    @property
    def of_security(self) -> bool:
        """Whether it listens and lives, but every client that comes as we do is turned away."""
        return self in _OF_SECURITY


_OF_SECURITY = frozenset(
    {
        Silence.WANTS_TLS,
        Silence.NO_TLS,
        Silence.CERTIFICATE_EXPIRED,
        Silence.CERTIFICATE_OF_ANOTHER_NAME,
        Silence.CERTIFICATE_UNTRUSTED,
        Silence.OUR_CERTIFICATE_REFUSED,
    }
)
#: OpenSSL's X509_V_ERR_*; the rest is about who has signed what.
_SILENCE_BY_VERIFY_CODE = {
    10: Silence.CERTIFICATE_EXPIRED,
    62: Silence.CERTIFICATE_OF_ANOTHER_NAME,
    64: Silence.CERTIFICATE_OF_ANOTHER_NAME,
}
#: How a TLS alert begins, which is what a TLS server says to a client that speaks plainly (RFC 8446, 5.1).
_ALERT = b"\x15\x03"


def on_the_way(error: Exception) -> Silence:
    """There was no connection."""
    match error:
        # A name that cannot even be asked for, with an empty label for instance, is a UnicodeError.
        case socket.gaierror() | UnicodeError():
            return Silence.NO_NAME
        case ConnectionRefusedError():
            return Silence.REFUSED
        case TimeoutError():
            return Silence.TIMED_OUT
        case _:
            return Silence.NO_WAY


def in_the_handshake(error: Exception) -> Silence:
    """There was a connection, but TLS could not be agreed on."""
    match error:
        case TimeoutError():
            return Silence.MUTE
        case ssl.SSLCertVerificationError():
            return _SILENCE_BY_VERIFY_CODE.get(error.verify_code, Silence.CERTIFICATE_UNTRUSTED)
        case ssl.SSLError() if _is_an_alert(error):
            return Silence.OUR_CERTIFICATE_REFUSED
        case _:
            return Silence.NO_TLS


def in_the_answer(error: Exception) -> Silence:
    """It was asked, and said something else, or nothing. TLS 1.3 asks for our certificate only here."""
    match error:
        case TimeoutError():
            return Silence.MUTE
        case ssl.SSLError() if _is_an_alert(error):
            return Silence.OUR_CERTIFICATE_REFUSED
        case _:
            return Silence.NOT_KAFKA


def of_a_beginning(said: bytes) -> Silence | None:
    """What an answer's first bytes give away."""
    return Silence.WANTS_TLS if said.startswith(_ALERT) else None


def _is_an_alert(error: ssl.SSLError) -> bool:
    """Whether the other side has said what it dislikes."""
    return "ALERT" in (error.reason or "")
