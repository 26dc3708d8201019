"""`fleetgauge dash`: one-line errors for wrong input, a URL as text or JSON, a clean shutdown."""

import json
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from datetime import UTC, datetime
from pathlib import Path
from socket import gethostname
from urllib.error import HTTPError
from urllib.parse import urlsplit
from urllib.request import HTTPRedirectHandler, Request, build_opener, urlopen

import psutil
import pytest
from click.testing import CliRunner

from fleetgauge_core import __version__
from fleetgauge_dashboards.cli import dash
from fleetgauge_dashboards.command import _describe_site, _load_fleets
from fleetgauge_dashboards.operator_key import KEY_VARIABLE
from fleetgauge_dashboards.security_headers import TOKEN_COOKIE, TOKEN_HEADER
from fleetgauge_dashboards.served_fleets import ServedFleet
from fleetgauge_dashboards.single_flight import MAX_CONCURRENT_COMPUTATIONS
from fleetgauge_dashboards.site_address import TrustedProxies
from fleetgauge_dashboards.worker import THREADS
from tests.browser.lake import write
from tests.correction_callback import CALLBACK, build_body, build_headers
from tests.exposition import samples
from tests.waiting import wait_until

FLEET = "lake: ./lake\nclusters: [{id: orders-eu, bootstrap: 'orders-eu:9092'}]\n"


def test_the_help_contains_an_example() -> None:
    assert "fleetgauge dash --config fleet.yaml" in CliRunner().invoke(dash, ["--help"]).output


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([], "pass --lake DIR or --config fleet.yaml"),
        (["--config", "none.yaml"], "none.yaml: No such file or directory"),
        (["--lake", "x", "--port", "66000"], "66000"),
        (
            ["--lake", "x", "--config", "a.yaml", "--config", "b.yaml"],
            "--lake cannot be combined with several --config files",
        ),
        *(
            (["--lake", "x", "--proxy", proxy], f"--proxy {proxy}: not an IP address")
            for proxy in (
                "ingress.svc",
                "10.0.0.1/8",
                "10.0.0.0/33",
                "::ffff:10.0.0.0/104",
                "10.0.0.1:8080",
                "",
            )
        ),
        *(
            (["--lake", "x", "--allow-host", name], f"--allow-host {name}: not a host name")
            for name in ("https://ops.example", "ops.example:80", "ops.example/", "*.example", "")
        ),
        *(
            (["--lake", "x", "--path", path], f"--path {path}: not a path for the pages")
            for path in ("fleetgauge", "/a b", "//a", "/../a", "/alerts/", "https://ops.example/a")
        ),
    ],
)
def test_wrong_input_is_one_line_and_exit_code_2(arguments: list[str], message: str) -> None:
    result = CliRunner().invoke(dash, arguments, env={"COLUMNS": "200"})
    assert result.exit_code == 2
    assert message in result.output
    assert "Traceback" not in result.output


def test_dashs_own_variable_for_a_path_is_refused() -> None:
    variables = {"COLUMNS": "200", "DASH_URL_BASE_PATHNAME": "/a/"}
    result = CliRunner().invoke(dash, ["--lake", "x"], env=variables)
    assert result.exit_code == 2
    assert "DASH_URL_BASE_PATHNAME is set; unset it and use --path instead" in result.output


def test_regions_mirrors_and_pairs_come_from_the_fleet_file(tmp_path: Path) -> None:
    (tmp_path / "fleet.yaml").write_text(
        "clusters:\n"
        "  - {id: north, bootstrap: 'n:1', region: eu-north}\n"
        "  - {id: south, bootstrap: 's:1'}\n"
        "recovery:\n"
        "  mirrors: [{source: north, destination: south}]\n"
        "  groups:\n"
        "    - {groups: a, active: north, passive: south}\n"
        "    - {groups: b, active: north, passive: south}\n"
    )
    (fleet,) = _load_fleets(None, (tmp_path / "fleet.yaml",))
    assert fleet.regions == {"north": "eu-north"}
    assert fleet.mirrors == fleet.pairs == (("north", "south"),)


def test_the_servers_names_are_those_of_its_options_its_fleets_and_the_machine() -> None:
    fleets = [
        ServedFleet("a", "a", page_url=url)
        for url in (None, "https://Ops.example:8443/fleetgauge", "http://10.1.2.3/", "http://[")
    ]
    site = _describe_site(fleets, "pages.internal", ("10.0.0.9", "0:0::1"), ("Other.example.",), "/")
    assert site.names == {"ops.example", "pages.internal", "other.example", gethostname().lower()}
    assert site.proxies == TrustedProxies.parse(["10.0.0.9", "::1"])


def test_two_fleets_with_the_same_name_are_rejected(tmp_path: Path) -> None:
    for name in ("a.yaml", "b.yaml"):
        (tmp_path / name).write_text(f"name: same\n{FLEET}")
    arguments = [part for name in ("a.yaml", "b.yaml") for part in ("--config", str(tmp_path / name))]
    result = CliRunner().invoke(dash, arguments, env={"COLUMNS": "400"})
    assert result.exit_code == 2
    assert "two fleets are named 'same': give each fleet a unique name" in result.output


@contextmanager
def _serving(*arguments: str, **variables: str) -> Iterator[subprocess.Popen[str]]:
    command = [sys.executable, "-c", "from fleetgauge_dashboards.cli import dash; dash()", *arguments]
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=os.environ | variables
    ) as process:
        try:
            yield process
        finally:
            process.kill()


def test_it_prints_one_url_serves_it_and_stops_on_sigterm(tmp_path: Path) -> None:
    (tmp_path / "fleet.yaml").write_text(FLEET)
    with _serving("--config", str(tmp_path / "fleet.yaml"), "--port", "0", "--json") as process:
        assert process.stdout is not None
        url = json.loads(process.stdout.readline())["url"]
        with urlopen(f"{url}livez", timeout=60) as response:
            assert response.status == 200
        process.send_signal(signal.SIGTERM)
        out, stderr = process.communicate(timeout=60)
        assert (process.returncode, out) == (0, "")
        assert f"{tmp_path / 'lake'} at {url}" in stderr.replace("\n", "")


def test_two_workers_serve_and_merge_their_metrics(tmp_path: Path) -> None:
    write(tmp_path, datetime.now(UTC))
    path = ("--path", "/fleetgauge/")
    arguments = ("--lake", str(tmp_path), "--port", "0", "--workers", "2", "--json", *path)
    with _serving(*arguments) as process:
        assert process.stdout is not None
        url = json.loads(process.stdout.readline())["url"]
        assert url.endswith("/fleetgauge/")
        requests = 0

        def have_both_workers_responded() -> bool:
            nonlocal requests
            requests += _request_fleet_page(url)
            return (
                len({child.pid for child in psutil.Process(process.pid).children()}) == 2 and requests >= 12
            )

        wait_until(have_both_workers_responded, 120, "two workers", 0.01)
        with urlopen(f"{url}metrics", timeout=60) as response:
            text = response.read().decode()
        assert samples(text, "fleetgauge_dash_answer_duration_seconds_count") == {("fleet",): requests}
        assert samples(text, "fleetgauge_build_info") == {("dash", __version__): 1}
        process.send_signal(signal.SIGTERM)
        assert process.wait(60) == 0
        assert not psutil.pid_exists(process.pid)


class _NoRedirect(HTTPRedirectHandler):
    """Treats a redirection as an error."""

    def redirect_request(self, *_: object) -> None:
        return None


def _read_operator_cookie(operator_url: str) -> str:
    with pytest.raises(HTTPError, match="303") as redirection:
        build_opener(_NoRedirect).open(operator_url, timeout=60)
    return str(redirection.value.headers["Set-Cookie"]).partition(";")[0]


def _correct(url: str, *cookies: str) -> str:
    headers = build_headers(url.rstrip("/"), *cookies)
    request = Request(f"{url}{CALLBACK[1:]}", json.dumps(build_body()).encode(), headers)
    with urlopen(request, timeout=60) as response:
        return str(response.read().decode())


def test_all_workers_share_the_key_of_the_printed_link(tmp_path: Path) -> None:
    write(tmp_path, datetime.now(UTC))
    with _serving("--lake", str(tmp_path), "--port", "0", "--workers", "2", "--json") as process:
        assert process.stdout is not None
        printed = json.loads(process.stdout.readline())
        url, operator_url = printed["url"], printed["operator_url"]
        parent = psutil.Process(process.pid)
        wait_until(lambda: len(parent.children()) == 2, 120, "two workers", 0.01)
        cookie = _read_operator_cookie(operator_url)
        for suspended in parent.children():
            suspended.suspend()
            # It may have accepted a connection before, which then waits for it.
            assert _read_operator_cookie(operator_url) == cookie
            assert "the time range is not fixed" in _correct(url, cookie)
            assert "open the link for operators" in _correct(url)
            suspended.resume()


def _send(port: int, request: bytes) -> bytes:
    with socket.create_connection(("127.0.0.1", port), 60) as client:
        client.sendall(request)
        return client.recv(1_000)


def test_the_key_is_printed_in_its_line_only(tmp_path: Path) -> None:
    write(tmp_path, datetime.now(UTC))
    key = "key-of-operators-for-this-test"
    arguments = ("--lake", str(tmp_path), "--port", "0", "--json")
    with _serving(*arguments, **{KEY_VARIABLE: key}) as process:
        assert process.stdout is not None
        printed = json.loads(process.stdout.readline())
        url = printed["url"]
        assert printed == {"url": url, "operator_url": f"{url}operator?key={key}"}
        _read_operator_cookie(printed["operator_url"])
        query = f"?key={key}".encode()
        host = b" HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n"
        for request, status in (
            (b"GET /operator" + query + b"x" + host, b"403"),
            (b"POST /operator" + query + host, b"405"),
            (b"GET /operator" + query + host + b"no header\r\n", b"400"),
        ):
            response = _send(urlsplit(url).port or 0, request + b"\r\n")
            assert response.startswith(b"HTTP/1.1 " + status)
            assert key.encode() not in response
        # A malformed callback is an exception in the application, whose traceback is logged.
        headers = build_headers(url.rstrip("/"))
        with pytest.raises(HTTPError, match="500"):
            urlopen(Request(f"{url}{CALLBACK[1:]}?key={key}", b"{}", headers), timeout=60)
        process.send_signal(signal.SIGTERM)
        out, stderr = process.communicate(timeout=60)
        assert (process.returncode, out) == (0, "")
        assert "Traceback" in stderr
        assert stderr.count(key) == 1
        assert f"To acknowledge alerts and add corrections, open {printed['operator_url']}\n" in stderr


def test_with_a_login_by_a_proxy_no_link_is_printed(tmp_path: Path) -> None:
    arguments = ("--lake", str(tmp_path), "--port", "0", "--user-header", "X-User", "--json")
    with _serving(*arguments, **{KEY_VARIABLE: "unused"}) as process:
        assert process.stdout is not None
        assert json.loads(process.stdout.readline()).keys() == {"url"}
        process.send_signal(signal.SIGTERM)
        _, stderr = process.communicate(timeout=60)
        assert "operator" not in stderr


def test_silent_and_slow_connections_take_no_thread(tmp_path: Path) -> None:
    write(tmp_path, datetime.now(UTC))
    with _serving("--lake", str(tmp_path), "--port", "0", "--json") as process, ExitStack() as stack:
        assert process.stdout is not None
        url = json.loads(process.stdout.readline())["url"]
        assert _request_fleet_page(url) == 1
        (worker,) = psutil.Process(process.pid).children()
        threads = worker.num_threads()
        address = ("127.0.0.1", urlsplit(url).port)
        clients = [stack.enter_context(socket.create_connection(address)) for _ in range(300)]
        for client in clients[:50]:
            client.sendall(b"GET /livez HT")
        body = b"POST /_dash-update-component HTTP/1.1\r\nHost: localhost\r\nContent-Length: 50\r\n\r\n{"
        for client in clients[50:100]:
            client.sendall(body)
        for _ in range(12):
            assert _request_fleet_page(url) == 1
        # The pools of threads for requests and for reads may have grown to their sizes, but no further.
        assert worker.num_threads() <= threads + THREADS + MAX_CONCURRENT_COMPUTATIONS
        clients[0].sendall(b"TP/1.1\r\nHost: localhost\r\n\r\n")
        clients[0].settimeout(60)
        assert clients[0].recv(1_000).startswith(b"HTTP/1.1 200 OK\r\n")
        process.send_signal(signal.SIGTERM)
        assert process.wait(60) == 0


def _request_fleet_page(url: str) -> int:
    """Request the fleet page's content as a browser does, and return the number of successful responses."""
    cookie = f"{TOKEN_COOKIE}=token"
    headers = {"Content-Type": "application/json", "Cookie": cookie, TOKEN_HEADER: "token"}
    headers["Origin"] = "/".join(url.split("/")[:3])
    with urlopen(f"{url}_dash-dependencies", timeout=60) as response:
        page_output = next(
            callback["output"]
            for callback in json.load(response)
            if "fleet-grid.rowData" in callback["output"]
        )
    values = {"url.pathname": "/", "url.search": "", "tick.n_intervals": 1, "fleet-retry.n_intervals": None}
    values |= {"scheme.data": "light"}
    callback_body = {
        "output": page_output,
        "outputs": [_component_property(slot) for slot in page_output.strip(".").split("...")],
        "inputs": [_component_property(slot) | {"value": value} for slot, value in values.items()],
        "state": [_component_property("fleet-drawn.data") | {"value": None}],
        "changedPropIds": ["url.pathname"],
    }
    request = Request(f"{url}_dash-update-component", json.dumps(callback_body).encode(), headers)
    with urlopen(request, timeout=60) as response:
        return int(response.status == 200)


def _component_property(slot: str) -> dict[str, object]:
    component, _, name = slot.rpartition(".")
    return {"id": component, "property": name}


def test_a_port_in_use_is_a_one_line_error(tmp_path: Path) -> None:
    with _serving("--lake", str(tmp_path), "--port", "0", "--json") as first:
        assert first.stdout is not None
        port = json.loads(first.stdout.readline())["url"].rstrip("/").rpartition(":")[2]
        with _serving("--lake", str(tmp_path), "--port", port) as second:
            _, stderr = second.communicate(timeout=120)
            assert second.returncode == 2
            assert stderr.startswith(f"fleetgauge: cannot listen on 127.0.0.1 port {port}: ")


def test_the_pages_do_not_import_spark() -> None:
    code = "import sys, fleetgauge_dashboards.app; sys.exit({'pyspark', 'delta'} & set(sys.modules) != set())"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
