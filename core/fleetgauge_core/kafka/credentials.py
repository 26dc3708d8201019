"""An access in the words of each client. Secrets are read when a client is made: it has the latest."""

import ssl
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any
from urllib.parse import urlencode

import urllib3
from kafka.net.sasl.oauth import AbstractTokenProvider

from fleetgauge_core.fleet import (
    Access,
    OAuth,
    Sasl,
    SecretError,
    Security,
    Tls,
)
from fleetgauge_core.kafka.errors import KafkaUnavailableError

_TOKEN_TIMEOUT_S = 4.0
_FORM = {"Content-Type": "application/x-www-form-urlencoded"}


def for_librdkafka(access: Access) -> dict[str, Any]:
    """Settings of confluent-kafka's clients. Raises KafkaUnavailableError."""
    with _explained(access):
        settings = {
            "bootstrap.servers": access.bootstrap,
            "security.protocol": access.security.protocol,
            **_tls_for_librdkafka(access.security.tls),
            **_identity_for_librdkafka(access.security),
        }
        return {key: value for key, value in settings.items() if value is not None}


def for_kafka_python(access: Access) -> dict[str, Any]:
    """Arguments of kafka-python's clients, but for the addresses. Raises KafkaUnavailableError."""
    with _explained(access):
        return {
            "security_protocol": access.security.protocol,
            "ssl_context": _context(access.security.tls),
            **_identity_for_kafka_python(access.security),
        }


def tls_context(access: Access) -> ssl.SSLContext | None:
    """For connections of our own; None where there is no TLS. Raises KafkaUnavailableError."""
    with _explained(access):
        return _context(access.security.tls)


def ensure_usable(access: Access) -> None:
    """Raises KafkaUnavailableError where a secret or a certificate cannot be read."""
    for_librdkafka(access)
    tls_context(access)


@contextmanager
def _explained(access: Access) -> Iterator[None]:
    try:
        yield
    except SecretError as error:
        raise KafkaUnavailableError(f"{access.bootstrap}: {error}") from error
    except OSError as error:
        # Of ssl: a file that is not there, or does not hold what it should. It does not say which.
        files = ", ".join(map(str, access.security.tls.files if access.security.tls else ()))
        reason = getattr(error, "reason", None) or error.strerror or error
        raise KafkaUnavailableError(
            f"{access.bootstrap}: TLS cannot be set up from {files}: {reason}"
        ) from error


def _tls_for_librdkafka(tls: Tls | None) -> dict[str, Any]:
    if tls is None:
        return {}
    paths = {"ssl.ca": tls.ca, "ssl.certificate": tls.certificate, "ssl.key": tls.key}
    return {f"{key}.location": str(path) for key, path in paths.items() if path} | {
        "ssl.key.password": tls.key_password and tls.key_password.read()
    }


def _identity_for_librdkafka(security: Security) -> dict[str, Any]:
    match security:
        case Security(sasl=Sasl() as sasl):
            return {
                "sasl.mechanism": sasl.mechanism,
                "sasl.username": sasl.username,
                "sasl.password": sasl.password.read(),
            }
        case Security(oauth=OAuth() as oauth):
            return {
                "sasl.mechanism": "OAUTHBEARER",
                "sasl.oauthbearer.method": "oidc",
                "sasl.oauthbearer.token.endpoint.url": oauth.token_url,
                "sasl.oauthbearer.client.id": oauth.client_id,
                "sasl.oauthbearer.client.secret": oauth.client_secret.read(),
                "sasl.oauthbearer.scope": oauth.scope,
            }
        case _:
            return {}


def _identity_for_kafka_python(security: Security) -> dict[str, Any]:
    match security:
        case Security(sasl=Sasl() as sasl):
            return {
                "sasl_mechanism": sasl.mechanism,
                "sasl_plain_username": sasl.username,
                "sasl_plain_password": sasl.password.read(),
            }
        case Security(oauth=OAuth() as oauth):
            return {
                "sasl_mechanism": "OAUTHBEARER",
                "sasl_oauth_token_provider": _Tokens(oauth, oauth.client_secret.read()),
            }
        case _:
            return {}


def _context(tls: Tls | None) -> ssl.SSLContext | None:
    if tls is None:
        return None
    context = ssl.create_default_context(cafile=tls.ca)
    if tls.certificate:
        # With a password of its own: OpenSSL would ask the terminal for one that is missing.
        password = tls.key_password.read() if tls.key_password else ""
        context.load_cert_chain(tls.certificate, tls.key, lambda: password)
    return context


class _Tokens(AbstractTokenProvider):  # type: ignore[misc]  # kafka-python is not typed
    """A token for every connection: kafka-python's clients live for a few questions."""

    def __init__(self, oauth: OAuth, client_secret: str) -> None:
        super().__init__()
        self._oauth = oauth
        self._client_secret = client_secret

    def token(self) -> str:
        """By RFC 6749, section 4.4. Raises OSError."""
        fields = {"grant_type": "client_credentials"} | (
            {"scope": self._oauth.scope} if self._oauth.scope else {}
        )
        name = f"{self._oauth.client_id}:{self._client_secret}"
        try:
            answer = urllib3.request(
                "POST",
                self._oauth.token_url,
                body=urlencode(fields),
                headers=urllib3.util.make_headers(basic_auth=name) | _FORM,
                timeout=_TOKEN_TIMEOUT_S,
                retries=False,
            )
            if answer.status != 200:
                raise OSError(f"{self._oauth.token_url} gives no token: HTTP {answer.status}")
            return str(answer.json()["access_token"])
        except (urllib3.exceptions.HTTPError, ValueError, KeyError, TypeError) as error:
            raise OSError(f"{self._oauth.token_url} gives no token: {type(error).__name__}") from error
