import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fleetgauge_core.fleet import (
    ClusterAccess,
    FleetFileError,
    Secret,
    SecretError,
    Security,
    load_fleet,
)

SECRET = "hunter2"
SASL = {"mechanism": "PLAIN", "username": "us", "password": {"env": "X"}}
OAUTH = {"token_url": "https://login.example/token", "client_id": "us", "client_secret": {"env": "X"}}


def fleet_file(folder: Path, security: object) -> Path:
    path = folder / "fleet.yaml"
    document = {"clusters": [{"id": "a", "bootstrap": "a:1", "security": security}]}
    path.write_text(json.dumps(document), encoding="utf-8")
    return path


@pytest.mark.parametrize(
    ("security", "protocol"),
    [
        ({}, "PLAINTEXT"),
        ({"tls": {}}, "SSL"),
        ({"sasl": SASL}, "SASL_PLAINTEXT"),
        ({"oauth": OAUTH}, "SASL_PLAINTEXT"),
        ({"tls": {}, "sasl": SASL}, "SASL_SSL"),
        ({"tls": {}, "oauth": OAUTH}, "SASL_SSL"),
    ],
)
def test_the_security_protocol_follows_from_the_settings(security: dict[str, Any], protocol: str) -> None:
    assert Security.model_validate(security).protocol == protocol


@pytest.mark.parametrize(
    ("security", "key", "message"),
    [
        ({"sasl": SASL | {"password": SECRET}}, "sasl.password", "never the secret itself"),
        ({"oauth": OAUTH | {"client_secret": SECRET}}, "oauth.client_secret", "never the secret itself"),
        ({"sasl": SASL | {"password": {"env": "X", "file": "y"}}}, "sasl.password", "either env or file"),
        ({"sasl": SASL | {"password": {}}}, "sasl.password", "either env or file"),
        ({"sasl": SASL, "oauth": OAUTH}, "", "either sasl or oauth"),
        ({"tls": {"certificate": "c.pem"}}, "tls", "certificate and key together"),
        ({"tls": {"key": "c.key"}}, "tls", "certificate and key together"),
        ({"tls": {"key_password": {"env": "X"}}}, "tls", "key_password requires key"),
        ({"sasl": SASL | {"mechanism": "GSSAPI"}}, "sasl.mechanism", "PLAIN"),
        ({"oauth": OAUTH | {"token_url": "login.example"}}, "oauth.token_url", "http://"),
    ],
)
def test_an_invalid_combination_is_rejected_without_showing_the_secret(
    tmp_path: Path, security: dict[str, Any], key: str, message: str
) -> None:
    with pytest.raises(FleetFileError) as caught:
        load_fleet(fleet_file(tmp_path, security))
    assert f"clusters.0.security{'.' if key else ''}{key}: " in str(caught.value)
    assert message in str(caught.value)
    assert SECRET not in str(caught.value)


def test_files_are_relative_to_the_fleet_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    tls = {"ca": "tls/ca.pem", "certificate": "/etc/c.pem", "key": "c.key", "key_password": {"file": "../p"}}
    folder = tmp_path / "config"
    folder.mkdir()
    fleet_file(folder, {"tls": tls, "sasl": SASL | {"password": {"file": "secret"}}})
    monkeypatch.chdir(tmp_path)
    (cluster,) = load_fleet(Path("config/fleet.yaml")).clusters
    assert set(cluster.access.security.files) == {
        folder / "tls/ca.pem",
        Path("/etc/c.pem"),
        folder / "c.key",
        folder / "../p",
        folder / "secret",
    }


@given(
    secret=st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\r\n")).filter(str.strip),
    end=st.sampled_from(["", "\n", "\r\n"]),
)
def test_a_secret_file_may_end_with_a_line_break(
    tmp_path_factory: pytest.TempPathFactory, secret: str, end: str
) -> None:
    file = tmp_path_factory.mktemp("secret") / "secret"
    file.write_bytes((secret + end).encode())
    assert Secret(file=file).read() == secret


def test_a_secret_is_read_from_an_environment_variable(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TEST_SECRET", SECRET)
    assert Secret(env="TEST_SECRET").read() == SECRET


@pytest.mark.parametrize(
    "content", [None, b"", b"\n", b"\xff\xfe"], ids=["absent", "empty", "blank", "bytes"]
)
def test_an_error_about_a_secret_file_names_its_path(tmp_path: Path, content: bytes | None) -> None:
    file = tmp_path / "secret"
    if content is not None:
        file.write_bytes(content)
    with pytest.raises(SecretError, match=str(file)) as caught:
        Secret(file=file).read()
    assert "\n" not in str(caught.value)


def test_an_error_about_a_missing_variable_names_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("TEST_SECRET", raising=False)
    with pytest.raises(SecretError, match="TEST_SECRET"):
        Secret(env="TEST_SECRET").read()


def test_a_replaced_file_has_a_new_version_and_a_missing_file_none(tmp_path: Path) -> None:
    file = tmp_path / "password"
    file.write_text("one", encoding="utf-8")
    security = Security.model_validate({"sasl": SASL | {"password": {"file": str(file)}}})
    access = ClusterAccess("a:1", security)
    before = access.file_versions()
    assert access.file_versions() == before
    replacement = tmp_path / "replacement"
    replacement.write_text("two", encoding="utf-8")
    replacement.replace(file)
    assert access.file_versions() != before
    file.unlink()
    assert access.file_versions() == (None,)
    assert ClusterAccess("a:1").file_versions() == ()
