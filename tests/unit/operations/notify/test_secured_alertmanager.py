"""A real Alertmanager with a certificate of a private authority, a login and client certificates."""

import json
import ssl
from base64 import b64encode
from pathlib import Path
from typing import Any

import pytest
import trustme
import yaml
from click.testing import CliRunner

from fleetgauge_core.fleet import load_fleet
from fleetgauge_operations.notify.cli import notify
from fleetgauge_probes.connection.notifier_checks import check_notifiers
from tests.alertmanager import RunningAlertmanager, WebAccess, find_program, messages
from tests.receiver import Receiver
from tests.tinyproxy import RunningProxy
from tests.waiting import wait_until

DEADLINE_S = 30
PASSWORD = "p@ss"
#: By bcrypt.
PASSWORD_HASH = "$2b$04$abcdefghijklmnopqrstuux1xldIMZ95v8jSLOpqCBZ5kZ5M/8v4G"


@pytest.fixture(scope="module")
def authority() -> trustme.CA:
    return trustme.CA()


@pytest.fixture
def folder(tmp_path: Path, authority: trustme.CA) -> Path:
    """A folder with the certificates and keys of server and client, and the password."""
    (tmp_path / "ca.pem").write_bytes(authority.cert_pem.bytes())
    for name in ("127.0.0.1", "client"):
        issued = authority.issue_cert(name)
        (tmp_path / f"{name}.pem").write_bytes(issued.cert_chain_pems[0].bytes())
        (tmp_path / f"{name}.key").write_bytes(issued.private_key_pem.bytes())
    (tmp_path / "password.txt").write_text(f"{PASSWORD}\n")
    return tmp_path


@pytest.fixture
def alertmanager(folder: Path, receiver: Receiver) -> RunningAlertmanager:
    context = ssl.create_default_context(cafile=folder / "ca.pem")
    context.load_cert_chain(folder / "client.pem", folder / "client.key")
    login = b64encode(f"fleetgauge:{PASSWORD}".encode()).decode()
    configuration = {
        "tls_server_config": {
            "cert_file": str(folder / "127.0.0.1.pem"),
            "key_file": str(folder / "127.0.0.1.key"),
            "client_auth_type": "RequireAndVerifyClientCert",
            "client_ca_file": str(folder / "ca.pem"),
        },
        "basic_auth_users": {"fleetgauge": PASSWORD_HASH},
    }
    web = WebAccess(configuration, context, {"Authorization": f"Basic {login}"})
    return RunningAlertmanager(find_program(), folder, receiver, web)


SETTINGS: dict[str, Any] = {
    "kind": "alertmanager",
    "ca": "ca.pem",
    "certificate": "client.pem",
    "key": "client.key",
    "basic_auth": {"username": "fleetgauge", "password": {"file": "password.txt"}},
}


def write_fleet(folder: Path, *notifiers: dict[str, Any]) -> Path:
    path = folder / "fleet.yaml"
    document = {"clusters": [{"id": "orders", "bootstrap": "orders:9092"}], "notifiers": list(notifiers)}
    path.write_text(yaml.safe_dump(document))
    return path


def test_an_alert_reaches_an_alertmanager_that_demands_login_and_certificate(
    folder: Path, alertmanager: RunningAlertmanager, receiver: Receiver
) -> None:
    wrong_login = {"username": "nobody", "password": {"file": "password.txt"}}
    with alertmanager.running(), RunningProxy(folder, demands_login=True).running() as proxy:
        (folder / "proxy.txt").write_text(proxy.url_with_login)
        settings = {**SETTINGS, "url": alertmanager.url}
        path = write_fleet(
            folder,
            {**settings, "name": "direct"},
            {**settings, "name": "by-proxy", "proxy": {"file": "proxy.txt"}},
            {**settings, "name": "wrong-login", "basic_auth": wrong_login},
            {**settings, "name": "no-certificate", "certificate": None, "key": None},
            {**settings, "name": "no-authority", "ca": None},
        )
        results = [
            CliRunner().invoke(notify, ["test", "--config", str(path), "--json"], catch_exceptions=False)
        ]
        checks = {entry.notifier: entry.checks[0] for entry in check_notifiers(load_fleet(path).notifiers)}
        wait_until(lambda: bool(messages(receiver)), DEADLINE_S, "the notification of the test")
        (alert,) = alertmanager.alerts()
    assert results[0].exit_code == 1
    answers = {answer["name"]: answer for answer in json.loads(results[0].stdout)}
    assert [name for name, answer in answers.items() if answer["accepted"]] == ["direct", "by-proxy"]
    assert [name for name, check in checks.items() if check.ok] == ["direct", "by-proxy"]
    assert answers["wrong-login"]["status"] == 401
    assert "the login is missing or refused" in answers["wrong-login"]["detail"]
    assert "the login is missing or refused" in checks["wrong-login"].found
    assert "client certificate" in answers["no-certificate"]["detail"]
    assert "its certificate is not trusted" in answers["no-authority"]["detail"]
    assert any(request.startswith("CONNECT") for request in proxy.requests)
    assert alert["labels"] == {
        "alertname": "FleetgaugeTest",
        "cluster": "fleetgauge-test",
        "fleetgauge_test": "true",
        "severity": "info",
    }
    assert PASSWORD not in results[0].output
