"""TLS contexts from the files of TLS settings.

OpenSSL names neither the file that it cannot use nor the remedy, so both are found here.
"""

import ssl
from pathlib import Path

from fleetgauge_core.fleet.security import Tls

_CERTIFICATE = b"CERTIFICATE-----"
_PRIVATE_KEY = b"PRIVATE KEY-----"
#: Of PKCS #8, and of the older format of OpenSSL.
_ENCRYPTED = (b"BEGIN ENCRYPTED PRIVATE KEY", b"Proc-Type: 4,ENCRYPTED")
#: OpenSSL's reasons for a key of another certificate: of the same algorithm, and of another one.
_MISMATCHES = ("KEY_VALUES_MISMATCH", "NO_CERTIFICATE_ASSIGNED", "KEY_TYPE_MISMATCH")


def load_tls_context(tls: Tls) -> ssl.SSLContext:
    """Return a context of a client, with the files as they are now.

    Raises: SecretError if the key's password cannot be read; OSError, which ``explain_tls_error`` explains.
    """
    context = ssl.create_default_context(cafile=tls.ca)
    if tls.certificate:
        # Without a password callback, OpenSSL would prompt in the terminal for a missing password.
        password = tls.key_password.read() if tls.key_password else ""
        context.load_cert_chain(tls.certificate, tls.key, lambda: password)
    return context


def explain_tls_error(tls: Tls, error: OSError) -> str:
    """Return one line with the file that is to be mended, and how.

    ``error`` is what ``ssl`` raised when it loaded the files. Secrets are not part of the line.
    """
    for file, content, what in (
        (tls.ca, _CERTIFICATE, "certificate"),
        (tls.certificate, _CERTIFICATE, "certificate"),
        (tls.key, _PRIVATE_KEY, "private key"),
    ):
        if file and (problem := _find_problem(file, content, what)):
            return problem
    reason = getattr(error, "reason", None) or error.strerror or str(error)
    if tls.key:
        if reason in _MISMATCHES:
            return f"{tls.key} is not the key of {tls.certificate}"
        if any(mark in tls.key.read_bytes() for mark in _ENCRYPTED):
            if tls.key_password is None:
                return f"{tls.key} is encrypted: give key_password"
            return f"the password of {tls.key} is wrong"
    files = ", ".join(map(str, tls.files))
    return f"OpenSSL cannot use {files}: {reason}"


def _find_problem(file: Path, content: bytes, what: str) -> str | None:
    """Return what is wrong with a file alone, if anything."""
    try:
        data = file.read_bytes()
    except OSError as error:
        return f"{file} cannot be read: {error.strerror}"
    if content in data:
        return _find_damage(file) if content == _CERTIFICATE else None
    if b"-----BEGIN" in data:
        return f"{file} holds no {what}"
    return f"{file} holds no {what} in PEM format" + (": it is empty" if not data.strip() else "")


def _find_damage(file: Path) -> str | None:
    """Return why OpenSSL cannot read the certificates of a file, if it cannot."""
    try:
        ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT).load_verify_locations(file)
    except ssl.SSLError as error:
        return f"{file} holds a certificate that cannot be read: {error.reason or error}"
    return None
