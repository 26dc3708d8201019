"""Settings of notifiers: what is refused, in words that say how to mend it and contain no secret."""

from pathlib import Path

import pytest

from fleetgauge_core.fleet import FleetFileError, Notifier, load_fleet

HOOK = "kind: webhook, url: 'https://hooks.example/sre'"


def load_notifiers(folder: Path, *entries: str) -> tuple[Notifier, ...]:
    path = folder / "fleet.yaml"
    notifiers = ", ".join(f"{{{entry}}}" for entry in entries)
    path.write_text(f"clusters: [{{id: orders, bootstrap: 'orders:9092'}}]\nnotifiers: [{notifiers}]\n")
    return load_fleet(path).notifiers


@pytest.mark.parametrize(
    ("entry", "message"),
    [
        (
            "kind: alertmanager, url: 'http://ops:hunter2@a:9093'",
            "notifiers.0.url: a login does not belong in a URL: give basic_auth",
        ),
        ("kind: webhook, url: 'https://hunter2@hooks.example/x'", "give basic_auth"),
        ("kind: webhook, url: 'https://ops:hunter2@[::1]:8080'", "give basic_auth"),
        (f"{HOOK}, proxy: 'http://ops:hunter2@proxy:3128'", "proxy: a login does not belong in the fleet"),
        (f"{HOOK}, proxy: 'proxy:3128'", "proxy: give http://HOST:PORT, https://HOST:PORT or none"),
        (f"{HOOK}, proxy: 'socks5://proxy:1080'", "proxy: give http://HOST:PORT"),
        (f"{HOOK}, proxy: false", r"proxy: give text, \{env: NAME\} or \{file: PATH\}"),
        (f"{HOOK}, proxy: {{environment: X}}", "proxy.environment: Extra inputs"),
        (f"{HOOK}, bearer: hunter2", r"bearer: give \{env: NAME\} or \{file: PATH\}, never the secret"),
        (f"{HOOK}, basic_auth: {{username: a, password: hunter2}}", "password: give .* never the secret"),
        (f"{HOOK}, basic_auth: {{username: 'a:b', password: {{env: X}}}}", "a user name has no colon"),
        (f"{HOOK}, basic_auth: {{password: {{env: X}}}}", "basic_auth.username: Field required"),
        (
            f"{HOOK}, bearer: {{env: X}}, basic_auth: {{username: a, password: {{env: X}}}}",
            "give only one of basic_auth and bearer",
        ),
        (
            f"{HOOK}, bearer: {{env: X}}, headers: {{authorization: {{env: X}}}}",
            "give only one of bearer and the header Authorization",
        ),
        (f"{HOOK}, headers: {{Authorization: GenieKey hunter2}}", "headers: Authorization: give {env"),
        (f"{HOOK}, headers: {{'X Key': a}}", "'X Key' is not a header name"),
        (f'{HOOK}, headers: {{"X\\nKey": a}}', "is not a header name"),
        (f'{HOOK}, headers: {{X: "a\\r\\nY: b"}}', "headers: X: the value has a line break"),
        (f"{HOOK}, headers: {{X-A: '1', x-a: '2'}}", "headers: X-A is given twice"),
        (f"{HOOK}, headers: {{X-A: 3}}", "headers.X-A: give text"),
        (f"{HOOK}, headers: {{X-A: {{env: a, file: b}}}}", "headers.X-A: give either env or file"),
        (f"{HOOK}, headers: {{Content-Length: '3'}}", "Content-Length cannot be set"),
        (f"{HOOK}, headers: {{Proxy-Authorization: {{env: X}}}}", "give the login in the URL"),
        (f"{HOOK}, certificate: a.pem", "give certificate and key together"),
        (f"{HOOK}, key: a.pem", "give certificate and key together"),
        (f"{HOOK}, key_password: {{env: X}}", "key_password requires key"),
        (f"{HOOK}, name: 'on call'", "name: expected 1 to 128 letters"),
    ],
)
def test_a_mistake_is_named_in_one_line_without_the_secret(tmp_path: Path, entry: str, message: str) -> None:
    with pytest.raises(FleetFileError, match=message) as caught:
        load_notifiers(tmp_path, entry)
    assert "hunter2" not in str(caught.value)
    assert "\n" not in str(caught.value)


def test_names_are_unique(tmp_path: Path) -> None:
    with pytest.raises(FleetFileError, match="notifiers: name 'oncall' is given twice"):
        load_notifiers(tmp_path, f"{HOOK}, name: oncall", f"{HOOK}, name: oncall")
    load_notifiers(tmp_path, HOOK, HOOK)


def test_paths_are_relative_to_the_fleet_file(tmp_path: Path) -> None:
    (notifier,) = load_notifiers(
        tmp_path,
        f"{HOOK}, ca: tls/ca.pem, certificate: c.pem, key: k.pem, headers: {{X-A: {{file: a.txt}}}}, "
        "proxy: {file: proxy.txt}, bearer: {file: token.txt}",
    )
    (tmp_path / "token.txt").write_text("token\n")
    assert notifier.tls.files == (tmp_path / "tls/ca.pem", tmp_path / "c.pem", tmp_path / "k.pem")
    assert notifier.bearer
    assert notifier.bearer.read() == "token"
    assert notifier.model_dump(mode="json")["headers"] == {
        "X-A": {"env": None, "file": str(tmp_path / "a.txt")}
    }
