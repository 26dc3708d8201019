"""Requests through a real proxy, by the settings of a notifier and by the environment's variables."""

import ssl
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import trustme

from fleetgauge_core.fleet import Notifier
from fleetgauge_core.http import HttpFailureError, ReceiverEndpoint
from tests.ports import free_port
from tests.receiver import Receiver
from tests.tinyproxy import RunningProxy, tls_in_front_of


@pytest.fixture(scope="module")
def authority() -> trustme.CA:
    return trustme.CA()


@pytest.fixture(scope="module")
def open_proxy(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningProxy]:
    with RunningProxy(tmp_path_factory.mktemp("open")).running() as proxy:
        yield proxy


@pytest.fixture(scope="module")
def closed_proxy(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningProxy]:
    """A proxy that demands a login."""
    with RunningProxy(tmp_path_factory.mktemp("closed"), demands_login=True).running() as proxy:
        yield proxy


@pytest.fixture(params=["http", "https"])
def receiver(request: pytest.FixtureRequest, authority: trustme.CA) -> Iterator[Receiver]:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    authority.issue_cert("127.0.0.1", "127.1").configure_cert(context)
    with Receiver(context if request.param == "https" else None).listening() as listening:
        yield listening


@pytest.fixture
def ca(tmp_path: Path, authority: trustme.CA) -> Path:
    (tmp_path / "ca.pem").write_bytes(authority.cert_pem.bytes())
    return tmp_path / "ca.pem"


def post(url: str, ca: Path, environment: dict[str, str] | None = None, **settings: Any) -> int:
    notifier = Notifier.model_validate({"kind": "webhook", "url": url, "ca": ca, **settings})
    return ReceiverEndpoint(notifier, environment or {}).post("", {"id": 1}).status


def test_a_notifier_has_its_own_proxy(open_proxy: RunningProxy, receiver: Receiver, ca: Path) -> None:
    before = len(open_proxy.requests)
    assert post(receiver.url, ca, proxy=open_proxy.url) == 200
    assert receiver.bodies == [{"id": 1}]
    (request,) = open_proxy.requests[before:]
    assert f"127.0.0.1:{receiver.port}" in request
    assert request.startswith("CONNECT" if receiver.url.startswith("https") else "POST")


def test_a_login_is_given_by_reference_and_goes_to_the_proxy_alone(
    closed_proxy: RunningProxy, receiver: Receiver, ca: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PROXY_URL", closed_proxy.url_with_login)
    assert post(receiver.url, ca, proxy={"env": "PROXY_URL"}) == 200
    assert {"authorization", "proxy-authorization"}.isdisjoint(receiver.posts[-1].headers)


def test_the_login_of_a_secret_url_is_not_part_of_what_a_proxy_sees_as_the_address(
    open_proxy: RunningProxy, receiver: Receiver, ca: Path, tmp_path: Path
) -> None:
    (tmp_path / "url").write_text(receiver.url.replace("//", "//ops:hunter2@"))
    settings = {"url_from": {"file": tmp_path / "url"}, "proxy": open_proxy.url, "ca": ca}
    notifier = Notifier.model_validate({"kind": "webhook", **settings})
    assert ReceiverEndpoint(notifier, {}).post("", {}).status == 200
    assert receiver.posts[-1].headers["authorization"].startswith("Basic ")
    assert "hunter2" not in open_proxy.requests[-1]


def test_a_refused_login_is_described(closed_proxy: RunningProxy, receiver: Receiver, ca: Path) -> None:
    if receiver.url.startswith("http:"):
        assert post(receiver.url, ca, proxy=closed_proxy.url) == 407
    else:
        with pytest.raises(HttpFailureError, match=r"^proxy: refused with status 407: the proxy demands"):
            post(receiver.url, ca, proxy=closed_proxy.url)
    assert receiver.posts == []


def test_a_proxy_that_is_away_is_described_without_its_login(
    receiver: Receiver, ca: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for url, words in (
        (f"http://ops:hunter2@127.0.0.1:{free_port()}", "^proxy: connection refused$"),
        ("http://ops:hunter2@hunter2.invalid:3128", "^proxy: the host name cannot be resolved$"),
        ("socks5://ops:hunter2@proxy:1080", "^proxy: its URL is not http://HOST:PORT or https://HOST:PORT$"),
        ("http://[hunter2", "^proxy: its URL is not http://HOST:PORT"),
    ):
        monkeypatch.setenv("PROXY_URL", url)
        with pytest.raises(HttpFailureError, match=words) as caught:
            post(receiver.url, ca, proxy={"env": "PROXY_URL"})
        assert "hunter2" not in str(caught.value)


def test_a_proxy_may_be_connected_to_by_tls(
    closed_proxy: RunningProxy,
    receiver: Receiver,
    authority: trustme.CA,
    ca: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    authority.issue_cert("127.0.0.1").configure_cert(context)
    with tls_in_front_of(closed_proxy, context) as port:
        url = closed_proxy.url_with_login.replace("http:", "https:").replace(
            str(closed_proxy.port), str(port)
        )
        monkeypatch.setenv("PROXY_URL", url)
        assert post(receiver.url, ca, proxy={"env": "PROXY_URL"}) == 200
        other = ca.with_name("other.pem")
        other.write_bytes(trustme.CA().cert_pem.bytes())
        with pytest.raises(HttpFailureError, match=r"^proxy: its certificate is not trusted"):
            post(receiver.url, other, proxy={"env": "PROXY_URL"})
    assert len(receiver.posts) == 1


def test_the_environment_is_honoured_unless_the_notifier_says_otherwise(
    closed_proxy: RunningProxy, receiver: Receiver, ca: Path
) -> None:
    # A loopback address in a spelling that is not recognized as one.
    url = receiver.url.replace("127.0.0.1", "127.1")
    variable = "HTTPS_PROXY" if url.startswith("https") else "HTTP_PROXY"
    environment = {variable: closed_proxy.url_with_login}
    for settings, no_proxy, uses_proxy in (
        ({}, "", True),
        ({}, f"other.example, 127.1:{receiver.port}", False),
        ({}, "127.1:1", True),
        ({"proxy": "none"}, "", False),
    ):
        before = len(closed_proxy.requests)
        assert post(url, ca, {**environment, "NO_PROXY": no_proxy}, **settings) == 200
        assert (len(closed_proxy.requests) > before) == uses_proxy, (settings, no_proxy)
