"""Requests to receivers, which are real HTTP servers: logins, headers, TLS, redirects, time."""

import socket
import ssl
import threading
from base64 import b64decode
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
import trustme

from fleetgauge_core.errors import OperationalError
from fleetgauge_core.fleet import Notifier
from fleetgauge_core.http import HttpFailureError, ReceiverEndpoint
from fleetgauge_core.http.exchange import HttpRequest, exchange
from tests.ports import free_port
from tests.receiver import Answer, Receiver

DEADLINE_S = 30


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    with Receiver().listening() as listening:
        yield listening


@pytest.fixture(scope="module")
def authority() -> trustme.CA:
    return trustme.CA()


@pytest.fixture
def folder(tmp_path: Path, authority: trustme.CA) -> Path:
    """A folder with the authority's certificate, and a client's certificate and key."""
    (tmp_path / "ca.pem").write_bytes(authority.cert_pem.bytes())
    write_client(tmp_path, authority)
    return tmp_path


def write_client(folder: Path, authority: trustme.CA) -> None:
    client = authority.issue_cert("client.example")
    (folder / "client.pem").write_bytes(client.cert_chain_pems[0].bytes())
    (folder / "client.key").write_bytes(client.private_key_pem.bytes())


@contextmanager
def secure_receiver(
    authority: trustme.CA, name: str = "127.0.0.1", wants_client: bool = False
) -> Iterator[Receiver]:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    authority.issue_cert(name).configure_cert(context)
    if wants_client:
        authority.configure_trust(context)
        context.verify_mode = ssl.CERT_REQUIRED
    with Receiver(context).listening() as listening:
        yield listening


def build_endpoint(url: str, **settings: Any) -> ReceiverEndpoint:
    notifier = Notifier.model_validate({"kind": "webhook", "url": url, **settings})
    return ReceiverEndpoint(notifier, environment={})


def decode_login(receiver: Receiver) -> str:
    scheme, _, credentials = receiver.posts[-1].headers["authorization"].partition(" ")
    assert scheme == "Basic"
    return b64decode(credentials).decode()


def test_a_login_is_sent_in_utf_8(receiver: Receiver, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PASSWORD", "p@ß:wörd")
    login = {"username": "öps", "password": {"env": "PASSWORD"}}
    assert build_endpoint(receiver.url, basic_auth=login).post("", {}).status == 200
    assert decode_login(receiver) == "öps:p@ß:wörd"


@pytest.mark.parametrize(
    ("userinfo", "login"),
    [("ops:p%40ss", "ops:p@ss"), ("ops:p%C3%9F%3A", "ops:pß:"), ("token", "token:"), ("a:b:c", "a:b:c")],
)
def test_the_login_of_a_secret_url_is_sent_and_not_part_of_the_address(
    receiver: Receiver, tmp_path: Path, userinfo: str, login: str
) -> None:
    file = tmp_path / "url"
    file.write_text(receiver.url.replace("//", f"//{userinfo}@") + "\n")
    notifier = Notifier.model_validate({"kind": "webhook", "url_from": {"file": file}})
    assert ReceiverEndpoint(notifier, environment={}).post("", {}).status == 200
    assert (decode_login(receiver), receiver.posts[-1].path) == (login, "/hook")


def test_a_login_in_two_places_is_refused(receiver: Receiver, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("URL", receiver.url.replace("//", "//ops:hunter2@"))
    notifier = Notifier.model_validate(
        {"kind": "webhook", "url_from": {"env": "URL"}, "bearer": {"env": "URL"}}
    )
    with pytest.raises(HttpFailureError, match="the URL has a login, but bearer is given too") as caught:
        ReceiverEndpoint(notifier).post("", {})
    assert "hunter2" not in str(caught.value)


def test_a_renewed_token_is_read_and_headers_are_sent(receiver: Receiver, tmp_path: Path) -> None:
    token = tmp_path / "token"
    endpoint = build_endpoint(
        receiver.url, bearer={"file": token}, headers={"X-Scope": "größe", "X-Key": {"file": token}}
    )
    for value in ("first", "second"):
        token.write_text(f"{value}\r\n")
        endpoint.post("", {})
        headers = receiver.posts[-1].headers
        assert headers["authorization"] == f"Bearer {value}"
        # The server of the tests decodes headers as Latin-1.
        assert (headers["x-scope"].encode("latin-1").decode(), headers["x-key"]) == ("größe", value)


@pytest.mark.parametrize("content", ["two\nlines", "line\n\n", "a\r\nX-Injected: b", "nul\x00"])
@pytest.mark.parametrize("key", ["bearer", "basic_auth", "headers", "proxy"])
def test_a_secret_that_is_not_one_line_is_refused(
    receiver: Receiver, tmp_path: Path, key: str, content: str
) -> None:
    file = tmp_path / "secret"
    file.write_text(content)
    reference = {"file": file}
    setting = {"basic_auth": {"username": "a", "password": reference}, "headers": {"X": reference}}
    with pytest.raises(OperationalError, match="must be one line") as caught:
        build_endpoint(receiver.url, **{key: setting.get(key, reference)}).post("", {})
    assert str(file) in str(caught.value)
    assert content not in str(caught.value)
    assert receiver.posts == []


def test_the_login_follows_a_redirect_within_the_host_alone(
    receiver: Receiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TOKEN", "token")
    endpoint = build_endpoint(receiver.url, bearer={"env": "TOKEN"})
    receiver.answers = [Answer(308, location="/moved")]
    assert endpoint.post("", {}).status == 200
    assert [(post.path, post.headers["authorization"]) for post in receiver.posts] == [
        ("/hook", "Bearer token"),
        ("/moved", "Bearer token"),
    ]
    with Receiver().listening() as other:
        receiver.answers = [Answer(307, location=f"http://localhost:{other.port}/hook")]
        assert endpoint.post("", {}).status == 307
        assert other.posts == []


def test_netrc_is_not_read(receiver: Receiver, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    netrc = tmp_path / ".netrc"
    netrc.write_text("machine 127.0.0.1 login ops password hunter2\n")
    netrc.chmod(0o600)
    monkeypatch.setenv("NETRC", str(netrc))
    monkeypatch.setenv("HOME", str(tmp_path))
    build_endpoint(receiver.url).post("", {})
    assert "authorization" not in receiver.posts[-1].headers


def test_a_private_authority_is_trusted_and_a_renewed_certificate_is_used(
    folder: Path, authority: trustme.CA
) -> None:
    client = {"certificate": folder / "client.pem", "key": folder / "client.key"}
    with secure_receiver(authority, wants_client=True) as receiver:
        endpoint = build_endpoint(receiver.url, ca=folder / "ca.pem", **client)
        (folder / "client.pem").unlink()
        with pytest.raises(HttpFailureError, match=r"TLS cannot be set up: .*client\.pem cannot be read"):
            endpoint.post("", {})
        write_client(folder, authority)
        assert endpoint.post("", {}).status == 200
        with pytest.raises(HttpFailureError, match="client certificate"):
            build_endpoint(receiver.url, ca=folder / "ca.pem").post("", {})
        with pytest.raises(HttpFailureError, match=r"its certificate is not trusted \(.*\): check `ca`"):
            build_endpoint(receiver.url, **client).post("", {})
        assert len(receiver.posts) == 1


def test_a_certificate_for_another_name_is_named(folder: Path, authority: trustme.CA) -> None:
    with (
        secure_receiver(authority, "other.example") as receiver,
        pytest.raises(HttpFailureError, match="its certificate is for another"),
    ):
        build_endpoint(receiver.url, ca=folder / "ca.pem").post("", {})


@pytest.mark.parametrize(
    ("address", "words"),
    [
        (lambda port, _: f"http://127.0.0.1:{port}/hunter2", "^connection refused$"),
        (lambda *_: "http://hunter2.invalid/", "^the host name cannot be resolved$"),
        (
            lambda _, receiver: receiver.url.replace("http:", "https:"),
            "^it does not speak TLS: check the URL$",
        ),
        (lambda *_: "http://[hunter2", "^the URL is invalid$"),
        (lambda *_: "http://", "^the URL is not http://HOST... or https://HOST...$"),
        (lambda *_: f"http://{'hunter2' * 10}.example/", "the (URL is invalid|host name cannot be resolved)"),
    ],
    ids=["refused", "no name", "no TLS", "no address", "no host", "long label"],
)
def test_failures_are_described_in_words(
    receiver: Receiver, address: Callable[[int, Receiver], str], words: str
) -> None:
    with pytest.raises(HttpFailureError, match=words) as caught:
        build_endpoint(address(free_port(), receiver)).post("", {})
    assert "hunter2" not in str(caught.value)


@contextmanager
def dripping_server(response: bytes) -> Iterator[tuple[int, threading.Event]]:
    """A server that repeats bytes until its client has left, which sets the event."""
    has_left, stopping = threading.Event(), threading.Event()
    with socket.create_server(("127.0.0.1", 0)) as server:

        def serve() -> None:
            connection, _ = server.accept()
            with connection:
                connection.recv(65536)
                try:
                    connection.sendall(response)
                    while not stopping.wait(0.05):
                        connection.sendall(b"a")
                except OSError:
                    has_left.set()

        thread = threading.Thread(target=serve)
        thread.start()
        try:
            yield server.getsockname()[1], has_left
        finally:
            stopping.set()
            thread.join(DEADLINE_S)


@pytest.mark.parametrize(
    "response",
    [b"HTTP/1.1 200 OK\r\nX-Slow: ", b"HTTP/1.1 400 Refused\r\nContent-Length: 99999\r\n\r\n"],
    ids=["headers", "body"],
)
def test_a_dripping_server_does_not_hold_the_sender(response: bytes) -> None:
    with dripping_server(response) as (port, has_left):
        request = HttpRequest("POST", f"http://127.0.0.1:{port}/", {}, b"{}")
        with pytest.raises(HttpFailureError, match="no complete response within"):
            exchange(request, timeout_s=0.5)
        assert has_left.wait(DEADLINE_S)


def test_a_status_is_told_even_if_its_body_is_incomplete() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:

        def serve() -> None:
            connection, _ = server.accept()
            with connection:
                connection.recv(65536)
                connection.sendall(b"HTTP/1.1 400 Refused\r\nContent-Length: 99\r\n\r\nshort")

        thread = threading.Thread(target=serve)
        thread.start()
        assert build_endpoint(f"http://127.0.0.1:{server.getsockname()[1]}/").post("", {}).status == 400
        thread.join(DEADLINE_S)
