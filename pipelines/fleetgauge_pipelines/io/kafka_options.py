"""An access in the words of Kafka's own client, which Spark brings along."""

import json

from cryptography.hazmat.primitives.serialization import (
    Encoding,
    NoEncryption,
    PrivateFormat,
    load_pem_private_key,
)

from fleetgauge_core.fleet import (
    Access,
    OAuth,
    Sasl,
    Security,
    Tls,
)
from fleetgauge_core.kafka import ensure_usable

_MODULES = "org.apache.kafka.common.security"
_MODULE_BY_MECHANISM = {
    "PLAIN": f"{_MODULES}.plain.PlainLoginModule",
    "SCRAM-SHA-256": f"{_MODULES}.scram.ScramLoginModule",
    "SCRAM-SHA-512": f"{_MODULES}.scram.ScramLoginModule",
}


def kafka_options(access: Access) -> dict[str, str]:
    """Options of Spark's Kafka source. Raises KafkaUnavailableError where secrets cannot be read."""
    ensure_usable(access)
    found = {
        "bootstrap.servers": access.bootstrap,
        "security.protocol": access.security.protocol,
        **_tls(access.security.tls),
        **_identity(access.security),
    }
    return {f"kafka.{key}": value for key, value in found.items()}


def _tls(tls: Tls | None) -> dict[str, str]:
    """PEM as it is (KIP-651)."""
    found: dict[str, str] = {}
    if tls and tls.ca:
        found |= {"ssl.truststore.type": "PEM", "ssl.truststore.location": str(tls.ca)}
    if tls and tls.certificate and tls.key:
        found |= {
            "ssl.keystore.type": "PEM",
            "ssl.keystore.certificate.chain": tls.certificate.read_text(encoding="utf-8"),
            "ssl.keystore.key": _key(tls),
        }
    return found


def _key(tls: Tls) -> str:
    """Unlocked, and as PKCS #8: Java 17 opens no key that today's tools have encrypted (PBES2)."""
    assert tls.key is not None
    password = tls.key_password.read().encode() if tls.key_password else None
    key = load_pem_private_key(tls.key.read_bytes(), password)
    return key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()).decode()


def _identity(security: Security) -> dict[str, str]:
    match security:
        case Security(sasl=Sasl() as sasl):
            words = {"username": sasl.username, "password": sasl.password.read()}
            module = _MODULE_BY_MECHANISM[sasl.mechanism]
            return {"sasl.mechanism": sasl.mechanism, "sasl.jaas.config": _jaas(module, words)}
        case Security(oauth=OAuth() as oauth):
            words = {"clientId": oauth.client_id, "clientSecret": oauth.client_secret.read()}
            words |= {"scope": oauth.scope} if oauth.scope else {}
            return {
                "sasl.mechanism": "OAUTHBEARER",
                "sasl.jaas.config": _jaas(f"{_MODULES}.oauthbearer.OAuthBearerLoginModule", words),
                "sasl.oauthbearer.token.endpoint.url": oauth.token_url,
                "sasl.login.callback.handler.class": (
                    f"{_MODULES}.oauthbearer.OAuthBearerLoginCallbackHandler"
                ),
            }
        case _:
            return {}


def _jaas(module: str, words: dict[str, str]) -> str:
    """JAAS escapes in a quoted value what JSON does."""
    said = " ".join(f"{key}={json.dumps(value, ensure_ascii=False)}" for key, value in words.items())
    return f"{module} required {said};"
