"""Mistakes with certificates and keys: each has its own line, with the file and the remedy."""

import re
from pathlib import Path

import pytest
import trustme
from cryptography.hazmat.primitives.serialization import (
    BestAvailableEncryption,
    Encoding,
    NoEncryption,
    PrivateFormat,
    load_pem_private_key,
)

from fleetgauge_core.fleet import ClusterAccess, Secret, Security, Tls
from fleetgauge_core.kafka import KafkaUnavailableError, ensure_credentials_readable

PASSWORD = "secret"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Certificates and keys, and files with mistakes."""
    folder = tmp_path_factory.mktemp("tls")
    authority = trustme.CA()
    for name in ("client", "other"):
        issued = authority.issue_cert(f"{name}.example")
        (folder / f"{name}.crt").write_bytes(issued.cert_chain_pems[0].bytes())
        (folder / f"{name}.key").write_bytes(issued.private_key_pem.bytes())
    rsa = trustme.CA(key_type=trustme.KeyType.RSA).issue_cert("rsa.example")
    (folder / "rsa.key").write_bytes(rsa.private_key_pem.bytes())
    (folder / "authority.crt").write_bytes(authority.cert_pem.bytes())
    key = load_pem_private_key((folder / "client.key").read_bytes(), None)
    encryption = BestAvailableEncryption(PASSWORD.encode())
    for name, form in (("pkcs8", PrivateFormat.PKCS8), ("openssl", PrivateFormat.TraditionalOpenSSL)):
        (folder / f"{name}.key").write_bytes(key.private_bytes(Encoding.PEM, form, encryption))
    (folder / "der.key").write_bytes(key.private_bytes(Encoding.DER, PrivateFormat.PKCS8, NoEncryption()))
    (folder / "empty.key").touch()
    damaged = (folder / "authority.crt").read_text().replace("MII", "QII", 1)
    (folder / "damaged.crt").write_text(damaged)
    (folder / "right.txt").write_text(f"{PASSWORD}\n")
    (folder / "wrong.txt").write_text("wrong")
    (folder / "marked.txt").write_bytes(b"\xef\xbb\xbf" + PASSWORD.encode() + b"\r\n")
    return folder


def connect_settings(
    folder: Path, ca: str, certificate: str, key: str, password: str | None
) -> ClusterAccess:
    tls = Tls(
        ca=folder / ca,
        certificate=folder / certificate,
        key=folder / key,
        key_password=Secret(file=folder / password) if password else None,
    )
    return ClusterAccess("orders:9092", Security(tls=tls))


@pytest.mark.parametrize(
    ("key", "password"),
    [("client.key", None)]
    + [(key, password) for key in ("pkcs8.key", "openssl.key") for password in ("right.txt", "marked.txt")],
)
def test_keys_in_use_are_accepted(folder: Path, key: str, password: str | None) -> None:
    ensure_credentials_readable(connect_settings(folder, "authority.crt", "client.crt", key, password))


@pytest.mark.parametrize(
    ("files", "password", "reason"),
    [
        (("authority.crt", "client.crt", "pkcs8.key"), "wrong.txt", "the password of {}/pkcs8.key is wrong"),
        (
            ("authority.crt", "client.crt", "openssl.key"),
            "wrong.txt",
            "the password of {}/openssl.key is wrong",
        ),
        (("authority.crt", "client.crt", "pkcs8.key"), None, "{}/pkcs8.key is encrypted: give key_password"),
        (
            ("authority.crt", "client.crt", "openssl.key"),
            None,
            "{}/openssl.key is encrypted: give key_password",
        ),
        (("authority.crt", "client.crt", "client.crt"), None, "{}/client.crt holds no private key"),
        (("authority.crt", "client.key", "client.key"), None, "{}/client.key holds no certificate"),
        (("client.key", "client.crt", "client.key"), None, "{}/client.key holds no certificate"),
        (("authority.crt", "client.crt", "other.key"), None, "{}/other.key is not the key of {}/client.crt"),
        (("authority.crt", "client.crt", "rsa.key"), None, "{}/rsa.key is not the key of {}/client.crt"),
        (("authority.crt", "client.crt", "der.key"), None, "{}/der.key holds no private key in PEM format"),
        (
            ("authority.crt", "client.crt", "empty.key"),
            None,
            "{}/empty.key holds no private key in PEM format: it is empty",
        ),
        (
            ("none.crt", "client.crt", "client.key"),
            None,
            "{}/none.crt cannot be read: No such file or directory",
        ),
    ],
)
def test_a_mistake_is_named_with_its_file(
    folder: Path, files: tuple[str, str, str], password: str | None, reason: str
) -> None:
    line = f"orders:9092: TLS cannot be set up: {reason.replace('{}', str(folder))}"
    with pytest.raises(KafkaUnavailableError, match=f"^{re.escape(line)}$"):
        ensure_credentials_readable(connect_settings(folder, *files, password))


@pytest.mark.parametrize("files", [("damaged.crt", "client.crt"), ("authority.crt", "damaged.crt")])
def test_a_damaged_certificate_is_not_taken_for_a_wrong_password(
    folder: Path, files: tuple[str, str]
) -> None:
    with pytest.raises(KafkaUnavailableError, match=r"damaged\.crt holds a certificate that cannot be read"):
        ensure_credentials_readable(connect_settings(folder, *files, "pkcs8.key", "right.txt"))
