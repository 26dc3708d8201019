"""A broker with a listener for each authentication mechanism, and valid and invalid certificates."""

import base64
import json
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from random import Random
from typing import Any
from urllib.parse import parse_qs

import trustme
from confluent_kafka.admin import (
    AdminClient,
    ScramCredentialInfo,
    ScramMechanism,
    UserScramCredentialUpsertion,
)
from cryptography.hazmat.primitives.serialization import (
    BestAvailableEncryption,
    Encoding,
    NoEncryption,
    PrivateFormat,
    load_pem_private_key,
)

from fleetgauge_local.fleet import LocalFleet
from fleetgauge_local.layout import HOST, ClusterSpec
from fleetgauge_local.ports import find_free_ports
from tests.listeners import Listener, add_listeners
from tests.ports import free_port

#: By listener: its security protocol, and the name of its certificate.
LISTENERS = {
    "TLS": ("SSL", "broker"),
    "MTLS": ("SSL", "broker"),
    "SASL": ("SASL_PLAINTEXT", None),
    "SASLTLS": ("SASL_SSL", "broker"),
    "EXPIRED": ("SSL", "expired"),
    "OTHERNAME": ("SSL", "other-name"),
    "STRANGER": ("SSL", "stranger"),
}
USER, PASSWORD = "fleetgauge", 'a "good" pass\\word'
KEY_PASSWORD = "of-the-key"
_SCRAM = (ScramMechanism.SCRAM_SHA_256, ScramMechanism.SCRAM_SHA_512)
_MODULES = "org.apache.kafka.common.security"


@dataclass
class TokenServer:
    """The state of an OAuth token server that accepts one client and issues unsigned tokens."""

    url: str
    secret: str = "of-the-client"
    lifetime_s: int = 300
    issued: int = 0
    requests: list[Mapping[str, list[str]]] = field(default_factory=list)

    def respond(self, authorization: str, fields: Mapping[str, list[str]]) -> tuple[int, dict[str, Any]]:
        credentials = base64.b64encode(f"{USER}:{self.secret}".encode()).decode()
        if authorization != f"Basic {credentials}" or fields.get("grant_type") != ["client_credentials"]:
            return 401, {"error": "invalid_client"}
        self.issued += 1
        self.requests.append(fields)
        now_s = int(time.time())
        claims = {"sub": USER, "iat": now_s, "exp": now_s + self.lifetime_s, "scope": "kafka"}
        token = ".".join([_base64({"alg": "none", "typ": "JWT"}), _base64(claims), ""])
        return 200, {"access_token": token, "token_type": "Bearer", "expires_in": self.lifetime_s}


def _base64(value: Mapping[str, Any]) -> str:
    return base64.urlsafe_b64encode(json.dumps(value).encode()).rstrip(b"=").decode()


@contextmanager
def serve_tokens() -> Iterator[TokenServer]:
    """Serve tokens until the block is left."""

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"])).decode()
            status, value = token_server.respond(self.headers.get("Authorization", ""), parse_qs(body))
            content = json.dumps(value).encode()
            self.send_response(status)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)

        def log_message(self, *_: object) -> None:
            pass

    port = free_port()
    with ThreadingHTTPServer((HOST, port), Handler) as server:
        token_server = TokenServer(f"http://{HOST}:{port}/token")
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            yield token_server
        finally:
            server.shutdown()
            thread.join()


class Certificates:
    """Certificates as files: of a trusted authority, and one of an untrusted authority."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        folder.mkdir()
        self._trusted_authority, untrusted_authority = trustme.CA(), trustme.CA()
        self.authority = folder / "authority.pem"
        self._trusted_authority.cert_pem.write_to_path(self.authority)
        yesterday = datetime.now(UTC) - timedelta(days=1)
        self._write_keystore("broker", self._trusted_authority.issue_cert(HOST))
        self._write_keystore("expired", self._trusted_authority.issue_cert(HOST, not_after=yesterday))
        self._write_keystore("other-name", self._trusted_authority.issue_cert("elsewhere.example"))
        self._write_keystore("stranger", untrusted_authority.issue_cert(HOST))
        self.issue_client_certificate()

    def issue_client_certificate(self) -> None:
        """Issue a new client certificate with an encrypted key."""
        issued = self._trusted_authority.issue_cert(USER)
        self.certificate, self.key = self.folder / "client.pem", self.folder / "client.key"
        self.certificate.write_bytes(b"".join(pem.bytes() for pem in issued.cert_chain_pems))
        self.key.write_bytes(_pkcs8(issued, KEY_PASSWORD))

    def broker_keystore(self, name: str) -> Path:
        """Return the PEM file with the key and the certificates of a listener."""
        return self.folder / f"{name}.pem"

    def _write_keystore(self, name: str, issued: trustme.LeafCert) -> None:
        chain = b"".join(pem.bytes() for pem in issued.cert_chain_pems)
        self.broker_keystore(name).write_bytes(_pkcs8(issued) + chain)


def _pkcs8(issued: trustme.LeafCert, password: str | None = None) -> bytes:
    key = load_pem_private_key(issued.private_key_pem.bytes(), None)
    encryption = BestAvailableEncryption(password.encode()) if password else NoEncryption()
    return key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, encryption)


@dataclass(frozen=True)
class SecuredCluster:
    """The running cluster ``secured``, and the port of each listener."""

    fleet: LocalFleet
    ports: Mapping[str, int]
    certificates: Certificates
    token_server: TokenServer

    def bootstrap(self, listener: str) -> str:
        return f"{HOST}:{self.ports[listener]}"

    @property
    def plaintext_bootstrap(self) -> str:
        """The listener without authentication."""
        return self.fleet.bootstrap("secured")

    def set_scram_password(self, password: str) -> None:
        """Set the user's SCRAM credentials, which the cluster stores itself."""
        admin = AdminClient({"bootstrap.servers": self.plaintext_bootstrap})
        for mechanism in _SCRAM:
            # A request may change a user only once, so each mechanism needs its own request.
            upsertion = UserScramCredentialUpsertion(
                USER, ScramCredentialInfo(mechanism, 4096), password.encode()
            )
            admin.alter_user_scram_credentials([upsertion])[USER].result(10)


@contextmanager
def secured(folder: Path) -> Iterator[SecuredCluster]:
    """Run the broker until the block is left."""
    certificates = Certificates(folder / "certificates")
    ports = dict(zip(LISTENERS, find_free_ports(len(LISTENERS), Random()), strict=True))
    listeners = {name: Listener(ports[name], protocol) for name, (protocol, _) in LISTENERS.items()}
    with (
        add_listeners(
            lambda _, place: listeners if place.cluster == "secured" else {},
            _build_broker_settings(certificates),
        ),
        serve_tokens() as token_server,
        LocalFleet(folder / "fleet", (ClusterSpec("secured", brokers=1),)) as fleet,
    ):
        cluster = SecuredCluster(fleet, ports, certificates, token_server)
        cluster.set_scram_password(PASSWORD)
        yield cluster


def _build_broker_settings(certificates: Certificates) -> dict[str, str]:
    """Return broker settings: a certificate for each TLS listener, a login module for each mechanism."""
    quoted_password = json.dumps(PASSWORD)
    modules = {
        "plain": f"{_MODULES}.plain.PlainLoginModule required user_{USER}={quoted_password};",
        "scram-sha-256": f"{_MODULES}.scram.ScramLoginModule required;",
        "scram-sha-512": f"{_MODULES}.scram.ScramLoginModule required;",
        "oauthbearer": f"{_MODULES}.oauthbearer.OAuthBearerLoginModule required "
        'unsecuredLoginStringClaim_sub="broker";',
    }
    sasl = {
        f"listener.name.{listener}.{mechanism}.sasl.jaas.config": module
        for listener in ("sasl", "sasltls")
        for mechanism, module in modules.items()
    }
    stores = {
        f"listener.name.{name.lower()}.ssl.keystore.{key}": value
        for name, (_, certificate) in LISTENERS.items()
        if certificate
        for key, value in {"type": "PEM", "location": str(certificates.broker_keystore(certificate))}.items()
    }
    return {
        "sasl.enabled.mechanisms": "PLAIN,SCRAM-SHA-256,SCRAM-SHA-512,OAUTHBEARER",
        "listener.name.mtls.ssl.client.auth": "required",
        "listener.name.mtls.ssl.truststore.type": "PEM",
        "listener.name.mtls.ssl.truststore.location": str(certificates.authority),
        **sasl,
        **stores,
    }


def write_secret_files(folder: Path) -> Path:
    """Create a folder with a file for each secret, and one file with a wrong secret."""
    folder.mkdir()
    secrets = {"password": PASSWORD, "key": KEY_PASSWORD, "client": "of-the-client", "wrong": "hunter2"}
    for name, secret in secrets.items():
        (folder / name).write_text(secret + "\n", encoding="utf-8")
    return folder


def accepted_credentials(secured: SecuredCluster, secrets: Path) -> dict[str, tuple[str, dict[str, Any]]]:
    """Return the listener and the security settings of each mechanism, with valid credentials."""
    tls = {"ca": str(secured.certificates.authority)}
    password = {"file": str(secrets / "password")}
    client_certificate = {
        "certificate": str(secured.certificates.certificate),
        "key": str(secured.certificates.key),
        "key_password": {"file": str(secrets / "key")},
    }

    def sasl(mechanism: str) -> dict[str, Any]:
        return {"mechanism": mechanism, "username": USER, "password": password}

    oauth = {
        "token_url": secured.token_server.url,
        "client_id": USER,
        "client_secret": {"file": str(secrets / "client")},
        "scope": "kafka",
    }
    return {
        "tls": ("TLS", {"tls": tls}),
        "mtls": ("MTLS", {"tls": tls | client_certificate}),
        "plain": ("SASLTLS", {"tls": tls, "sasl": sasl("PLAIN")}),
        "scram-256": ("SASL", {"sasl": sasl("SCRAM-SHA-256")}),
        "scram-512": ("SASLTLS", {"tls": tls, "sasl": sasl("SCRAM-SHA-512")}),
        "oauth": ("SASLTLS", {"tls": tls, "oauth": oauth}),
    }
