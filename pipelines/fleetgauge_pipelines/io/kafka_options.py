"""Settings of Kafka's Java client, which Spark uses, for the access that a fleet file describes."""

import json

from cryptography.hazmat.primitives.serialization import (
    Encoding,
    NoEncryption,
    PrivateFormat,
    load_pem_private_key,
)

from fleetgauge_core.fleet import (
    ClusterAccess,
    OAuth,
    Sasl,
    Security,
    Tls,
)
from fleetgauge_core.kafka import ensure_credentials_readable

_MODULES = "org.apache.kafka.common.security"
_MODULE_BY_MECHANISM = {
    "PLAIN": f"{_MODULES}.plain.PlainLoginModule",
    "SCRAM-SHA-256": f"{_MODULES}.scram.ScramLoginModule",
    "SCRAM-SHA-512": f"{_MODULES}.scram.ScramLoginModule",
}


def build_kafka_options(access: ClusterAccess) -> dict[str, str]:
    """Return the options of Spark's Kafka source.

    Raises: KafkaUnavailableError when a secret cannot be read.
    """
    ensure_credentials_readable(access)
    settings = {
        "bootstrap.servers": access.bootstrap,
        "security.protocol": access.security.protocol,
        # A consumer's request for metadata would create a deleted topic with the cluster's defaults.
        "allow.auto.create.topics": "false",
        **_tls_settings(access.security.tls),
        **_sasl_settings(access.security),
    }
    return {f"kafka.{key}": value for key, value in settings.items()}


def _tls_settings(tls: Tls | None) -> dict[str, str]:
    """Return the TLS settings with keys and certificates in PEM (KIP-651)."""
    settings: dict[str, str] = {}
    if tls and tls.ca:
        settings |= {"ssl.truststore.type": "PEM", "ssl.truststore.location": str(tls.ca)}
    if tls and tls.certificate and tls.key:
        settings |= {
            "ssl.keystore.type": "PEM",
            "ssl.keystore.certificate.chain": tls.certificate.read_text(encoding="utf-8"),
            "ssl.keystore.key": _decrypt_key(tls),
        }
    return settings


def _decrypt_key(tls: Tls) -> str:
    """Return the private key in PKCS #8 without encryption: Java 17 cannot read PBES2, which openssl uses."""
    assert tls.key is not None
    password = tls.key_password.read().encode() if tls.key_password else None
    key = load_pem_private_key(tls.key.read_bytes(), password)
    return key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()).decode()


def _sasl_settings(security: Security) -> dict[str, str]:
    match security:
        case Security(sasl=Sasl() as sasl):
            credentials = {"username": sasl.username, "password": sasl.password.read()}
            module = _MODULE_BY_MECHANISM[sasl.mechanism]
            return {"sasl.mechanism": sasl.mechanism, "sasl.jaas.config": _jaas(module, credentials)}
        case Security(oauth=OAuth() as oauth):
            credentials = {"clientId": oauth.client_id, "clientSecret": oauth.client_secret.read()}
            credentials |= {"scope": oauth.scope} if oauth.scope else {}
            return {
                "sasl.mechanism": "OAUTHBEARER",
                "sasl.jaas.config": _jaas(f"{_MODULES}.oauthbearer.OAuthBearerLoginModule", credentials),
                "sasl.oauthbearer.token.endpoint.url": oauth.token_url,
                "sasl.login.callback.handler.class": (
                    f"{_MODULES}.oauthbearer.OAuthBearerLoginCallbackHandler"
                ),
            }
        case _:
            return {}


def _jaas(module: str, credentials: dict[str, str]) -> str:
    # JAAS escapes quoted values as JSON does.
    options = " ".join(f"{key}={json.dumps(value, ensure_ascii=False)}" for key, value in credentials.items())
    return f"{module} required {options};"
