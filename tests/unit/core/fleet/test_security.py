import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fleetgauge_core.fleet import (
    Access,
    FleetFileError,
    Secret,
    SecretError,
    Security,
    load,
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
def test_the_protocol_follows_from_what_is_asked_for(security: dict[str, Any], protocol: str) -> None:
    assert Security.model_validate(security).protocol == protocol


@pytest.mark.parametrize(
    ("security", "key", "words"),
    [
        ({"sasl": SASL | {"password": SECRET}}, "sasl.password", "never the secret itself"),
        ({"oauth": OAUTH | {"client_secret": SECRET}}, "oauth.client_secret", "never the secret itself"),
        ({"sasl": SASL | {"password": {"env": "X", "file": "y"}}}, "sasl.password", "one of env and file"),
        ({"sasl": SASL | {"password": {}}}, "sasl.password", "one of env and file"),
        ({"sasl": SASL, "oauth": OAUTH}, "", "one of sasl and oauth"),
        ({"tls": {"certificate": "c.pem"}}, "tls", "certificate and key go together"),
        ({"tls": {"key": "c.key"}}, "tls", "certificate and key go together"),
        ({"tls": {"key_password": {"env": "X"}}}, "tls", "key_password is of no use without key"),
        ({"sasl": SASL | {"mechanism": "GSSAPI"}}, "sasl.mechanism", "PLAIN"),
        ({"oauth": OAUTH | {"token_url": "login.example"}}, "oauth.token_url", "http://"),
    ],
)
def test_what_does_not_fit_together_is_refused_without_the_secret(
    tmp_path: Path, security: dict[str, Any], key: str, words: str
) -> None:
    with pytest.raises(FleetFileError) as refused:
        load(fleet_file(tmp_path, security))
    assert f"clusters.0.security{'.' if key else ''}{key}: " in str(refused.value)
    assert words in str(refused.value)
    assert SECRET not in str(refused.value)


def test_files_lie_beside_the_fleet_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    tls = {"ca": "tls/ca.pem", "certificate": "/etc/c.pem", "key": "c.key", "key_password": {"file": "../p"}}
    folder = tmp_path / "config"
    folder.mkdir()
    fleet_file(folder, {"tls": tls, "sasl": SASL | {"password": {"file": "secret"}}})
    monkeypatch.chdir(tmp_path)
    (cluster,) = load(Path("config/fleet.yaml")).clusters
    assert set(cluster.access.security.files) == {
        folder / "tls/ca.pem",
        Path("/etc/c.pem"),
        folder / "c.key",
        folder / "../p",
        folder / "secret",
    }


@given(
    secret=st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\r\n"), min_size=1),
    end=st.sampled_from(["", "\n", "\r\n"]),
)
def test_a_file_holds_the_secret_and_perhaps_a_line_break(
    tmp_path_factory: pytest.TempPathFactory, secret: str, end: str
) -> None:
    file = tmp_path_factory.mktemp("secret") / "it"
    file.write_bytes((secret + end).encode())
    assert Secret(file=file).read() == secret


def test_a_variable_holds_a_secret(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OF_THIS_TEST", SECRET)
    assert Secret(env="OF_THIS_TEST").read() == SECRET


@pytest.mark.parametrize(
    "content", [None, b"", b"\n", b"\xff\xfe"], ids=["absent", "empty", "blank", "bytes"]
)
def test_a_secret_that_cannot_be_read_is_named_by_its_place(tmp_path: Path, content: bytes | None) -> None:
    file = tmp_path / "it"
    if content is not None:
        file.write_bytes(content)
    with pytest.raises(SecretError, match=str(file)) as refused:
        Secret(file=file).read()
    assert "\n" not in str(refused.value)


def test_a_variable_that_is_not_set_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("OF_THIS_TEST", raising=False)
    with pytest.raises(SecretError, match="OF_THIS_TEST"):
        Secret(env="OF_THIS_TEST").read()


def test_another_content_has_another_stamp_and_a_file_that_is_gone_none(tmp_path: Path) -> None:
    file = tmp_path / "password"
    file.write_text("one", encoding="utf-8")
    security = Security.model_validate({"sasl": SASL | {"password": {"file": str(file)}}})
    access = Access("a:1", security)
    before = access.stamps()
    assert access.stamps() == before
    another = tmp_path / "another"
    another.write_text("two", encoding="utf-8")
    another.replace(file)
    assert access.stamps() != before
    file.unlink()
    assert access.stamps() == (None,)
    assert Access("a:1").stamps() == ()
