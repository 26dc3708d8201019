"""Translation of a cluster's security settings into each client's settings.

Secrets are read whenever a client is created, so that a new client uses rotated secrets.
"""

import ssl
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any
from urllib.parse import urlencode

import urllib3
from kafka.net.sasl.oauth import AbstractTokenProvider

from fleetgauge_core.fleet import (
    ClusterAccess,
    OAuth,
    Sasl,
    SecretError,
    Security,
    Tls,
    explain_tls_error,
    load_tls_context,
)
from fleetgauge_core.kafka.errors import CredentialsUnreadableError
from fleetgauge_core.kafka.own_resources import find_error_reason

_TOKEN_TIMEOUT_S = 4.0
_FORM_HEADERS = {"Content-Type": "application/x-www-form-urlencoded"}


def build_librdkafka_settings(access: ClusterAccess) -> dict[str, Any]:
    """Return settings of librdkafka's clients.

    Raises: CredentialsUnreadableError if a secret or a certificate cannot be read.
    """
    with _translate_errors(access):
        # What librdkafka says of a key or a certificate that it cannot load helps nobody to mend it.
        _create_context(access.security.tls)
        settings = {
            "bootstrap.servers": access.bootstrap,
            "security.protocol": access.security.protocol,
            **_librdkafka_tls(access.security.tls),
            **_librdkafka_identity(access.security),
        }
        return {key: value for key, value in settings.items() if value is not None}


def build_kafka_python_arguments(access: ClusterAccess) -> dict[str, Any]:
    """Return the security arguments of kafka-python's clients, without the bootstrap servers.

    Raises: CredentialsUnreadableError if a secret or a certificate cannot be read.
    """
    with _translate_errors(access):
        return {
            "security_protocol": access.security.protocol,
            "ssl_context": _create_context(access.security.tls),
            **_kafka_python_identity(access.security),
        }


def create_tls_context(access: ClusterAccess) -> ssl.SSLContext | None:
    """Return a context for connections without a Kafka client; None without TLS.

    Raises: CredentialsUnreadableError if a certificate or its password cannot be read.
    """
    with _translate_errors(access):
        return _create_context(access.security.tls)


def ensure_credentials_readable(access: ClusterAccess) -> None:
    """Read all secrets and certificates. Raises: CredentialsUnreadableError if one cannot be read."""
    build_librdkafka_settings(access)


@contextmanager
def _translate_errors(access: ClusterAccess) -> Iterator[None]:
    try:
        yield
    except SecretError as error:
        reason = find_error_reason(error.__cause__)
        raise CredentialsUnreadableError(f"{access.bootstrap}: {error}", reason) from error
    except OSError as error:
        if access.security.tls is None:
            raise
        message = f"TLS cannot be set up: {explain_tls_error(access.security.tls, error)}"
        reason = find_error_reason(error)
        raise CredentialsUnreadableError(f"{access.bootstrap}: {message}", reason) from error


def _librdkafka_tls(tls: Tls | None) -> dict[str, Any]:
    if tls is None:
        return {}
    paths = {"ssl.ca": tls.ca, "ssl.certificate": tls.certificate, "ssl.key": tls.key}
    return {f"{key}.location": str(path) for key, path in paths.items() if path} | {
        "ssl.key.password": tls.key_password and tls.key_password.read()
    }


def _librdkafka_identity(security: Security) -> dict[str, Any]:
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


def _kafka_python_identity(security: Security) -> dict[str, Any]:
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
                "sasl_oauth_token_provider": _TokenProvider(oauth, oauth.client_secret.read()),
            }
        case _:
            return {}


def _create_context(tls: Tls | None) -> ssl.SSLContext | None:
    return None if tls is None else load_tls_context(tls)


class _TokenProvider(AbstractTokenProvider):  # type: ignore[misc]  # kafka-python is not typed
    """Requests a token for every connection, also when it is opened again."""

    def __init__(self, oauth: OAuth, client_secret: str) -> None:
        super().__init__()
        self._oauth = oauth
        self._client_secret = client_secret

    def token(self) -> str:
        """Request a token with the client credentials grant (RFC 6749, section 4.4). Raises: OSError."""
        fields = {"grant_type": "client_credentials"} | (
            {"scope": self._oauth.scope} if self._oauth.scope else {}
        )
        client_credentials = f"{self._oauth.client_id}:{self._client_secret}"
        try:
            response = urllib3.request(
                "POST",
                self._oauth.token_url,
                body=urlencode(fields),
                headers=urllib3.util.make_headers(basic_auth=client_credentials) | _FORM_HEADERS,
                timeout=_TOKEN_TIMEOUT_S,
                retries=False,
            )
            if response.status != 200:
                raise OSError(f"{self._oauth.token_url} gives no token: HTTP {response.status}")
            return str(response.json()["access_token"])
        except (urllib3.exceptions.HTTPError, ValueError, KeyError, TypeError) as error:
            raise OSError(f"{self._oauth.token_url} gives no token: {type(error).__name__}") from error
