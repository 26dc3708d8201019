"""One broker with a listener for every way to ask a client who it is, and certificates good and bad."""

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
from fleetgauge_local.ports import free_ports
from tests.listeners import Listener, more_listeners
from tests.ports import free_port

#: Listener, what it speaks, and whose certificate it shows.
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
class Tokens:
    """A server of tokens that says yes to one client with one secret. They are not signed."""

    url: str
    secret: str = "of-the-client"
    lives_s: int = 300
    given: int = 0
    asked_for: list[Mapping[str, list[str]]] = field(default_factory=list)

    def answer(self, authorization: str, fields: Mapping[str, list[str]]) -> tuple[int, dict[str, Any]]:
        name = base64.b64encode(f"{USER}:{self.secret}".encode()).decode()
        if authorization != f"Basic {name}" or fields.get("grant_type") != ["client_credentials"]:
            return 401, {"error": "invalid_client"}
        self.given += 1
        self.asked_for.append(fields)
        now = int(time.time())
        claims = {"sub": USER, "iat": now, "exp": now + self.lives_s, "scope": "kafka"}
        token = ".".join([_base64({"alg": "none", "typ": "JWT"}), _base64(claims), ""])
        return 200, {"access_token": token, "token_type": "Bearer", "expires_in": self.lives_s}


def _base64(value: Mapping[str, Any]) -> str:
    return base64.urlsafe_b64encode(json.dumps(value).encode()).rstrip(b"=").decode()


@contextmanager
def tokens() -> Iterator[Tokens]:
    """Serves until the block is left."""

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"])).decode()
            status, value = found.answer(self.headers.get("Authorization", ""), parse_qs(body))
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
        found = Tokens(f"http://{HOST}:{port}/token")
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            yield found
        finally:
            server.shutdown()
            thread.join()


class Certificates:
    """An authority, a stranger to it, and what they have signed, as files."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        folder.mkdir()
        self._ours, stranger = trustme.CA(), trustme.CA()
        self.authority = folder / "authority.pem"
        self._ours.cert_pem.write_to_path(self.authority)
        yesterday = datetime.now(UTC) - timedelta(days=1)
        self._server("broker", self._ours.issue_cert(HOST))
        self._server("expired", self._ours.issue_cert(HOST, not_after=yesterday))
        self._server("other-name", self._ours.issue_cert("elsewhere.example"))
        self._server("stranger", stranger.issue_cert(HOST))
        self.give_client()

    def give_client(self) -> None:
        """Our own certificate and its encrypted key, anew."""
        issued = self._ours.issue_cert(USER)
        self.certificate, self.key = self.folder / "client.pem", self.folder / "client.key"
        self.certificate.write_bytes(b"".join(pem.bytes() for pem in issued.cert_chain_pems))
        self.key.write_bytes(_pkcs8(issued, KEY_PASSWORD))

    def of_broker(self, name: str) -> Path:
        """Key and certificates in one file, as Java wants them."""
        return self.folder / f"{name}.pem"

    def _server(self, name: str, issued: trustme.LeafCert) -> None:
        chain = b"".join(pem.bytes() for pem in issued.cert_chain_pems)
        self.of_broker(name).write_bytes(_pkcs8(issued) + chain)


def _pkcs8(issued: trustme.LeafCert, password: str | None = None) -> bytes:
    key = load_pem_private_key(issued.private_key_pem.bytes(), None)
    hidden = BestAvailableEncryption(password.encode()) if password else NoEncryption()
    return key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, hidden)


@dataclass(frozen=True)
class Secured:
    """The cluster ``secured``, and where each listener is."""

    fleet: LocalFleet
    ports: Mapping[str, int]
    certificates: Certificates
    tokens: Tokens

    def at(self, listener: str) -> str:
        return f"{HOST}:{self.ports[listener]}"

    @property
    def plain(self) -> str:
        """Where nobody asks."""
        return self.fleet.bootstrap("secured")

    def set_password(self, password: str) -> None:
        """For SCRAM, which the cluster keeps itself."""
        admin = AdminClient({"bootstrap.servers": self.plain})
        for mechanism in _SCRAM:
            # One at a time: a request may change a user once.
            change = UserScramCredentialUpsertion(
                USER, ScramCredentialInfo(mechanism, 4096), password.encode()
            )
            admin.alter_user_scram_credentials([change])[USER].result(10)


@contextmanager
def secured(folder: Path) -> Iterator[Secured]:
    """From the broker's start to its end."""
    certificates = Certificates(folder / "certificates")
    ports = dict(zip(LISTENERS, free_ports(len(LISTENERS), Random()), strict=True))
    listeners = {name: Listener(ports[name], protocol) for name, (protocol, _) in LISTENERS.items()}
    with (
        more_listeners(
            lambda _, place: listeners if place.cluster == "secured" else {}, _identities(certificates)
        ),
        tokens() as server,
        LocalFleet(folder / "fleet", (ClusterSpec("secured", brokers=1),)) as fleet,
    ):
        found = Secured(fleet, ports, certificates, server)
        found.set_password(PASSWORD)
        yield found


def _identities(certificates: Certificates) -> dict[str, str]:
    """How the broker shows who it is, and finds out who a client is."""
    said = json.dumps(PASSWORD)
    modules = {
        "plain": f"{_MODULES}.plain.PlainLoginModule required user_{USER}={said};",
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
        for key, value in {"type": "PEM", "location": str(certificates.of_broker(certificate))}.items()
    }
    return {
        "sasl.enabled.mechanisms": "PLAIN,SCRAM-SHA-256,SCRAM-SHA-512,OAUTHBEARER",
        "listener.name.mtls.ssl.client.auth": "required",
        "listener.name.mtls.ssl.truststore.type": "PEM",
        "listener.name.mtls.ssl.truststore.location": str(certificates.authority),
        **sasl,
        **stores,
    }


def secret_files(folder: Path) -> Path:
    """A new folder with a file for each secret, as a fleet file names them, and one of a wrong secret."""
    folder.mkdir()
    secrets = {"password": PASSWORD, "key": KEY_PASSWORD, "client": "of-the-client", "wrong": "hunter2"}
    for name, secret in secrets.items():
        (folder / name).write_text(secret + "\n", encoding="utf-8")
    return folder


def ways_in(secured: Secured, secrets: Path) -> dict[str, tuple[str, dict[str, Any]]]:
    """Listener and security of each way that is taken."""
    tls = {"ca": str(secured.certificates.authority)}
    password = {"file": str(secrets / "password")}
    ours = {
        "certificate": str(secured.certificates.certificate),
        "key": str(secured.certificates.key),
        "key_password": {"file": str(secrets / "key")},
    }

    def sasl(mechanism: str) -> dict[str, Any]:
        return {"mechanism": mechanism, "username": USER, "password": password}

    oauth = {
        "token_url": secured.tokens.url,
        "client_id": USER,
        "client_secret": {"file": str(secrets / "client")},
        "scope": "kafka",
    }
    return {
        "tls": ("TLS", {"tls": tls}),
        "mtls": ("MTLS", {"tls": tls | ours}),
        "plain": ("SASLTLS", {"tls": tls, "sasl": sasl("PLAIN")}),
        "scram-256": ("SASL", {"sasl": sasl("SCRAM-SHA-256")}),
        "scram-512": ("SASLTLS", {"tls": tls, "sasl": sasl("SCRAM-SHA-512")}),
        "oauth": ("SASLTLS", {"tls": tls, "oauth": oauth}),
    }
