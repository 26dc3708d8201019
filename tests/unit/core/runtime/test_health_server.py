import json
import re
import socket
import subprocess
import sys
import threading
from contextlib import ExitStack
from dataclasses import dataclass
from http.client import HTTPConnection, HTTPResponse, RemoteDisconnected
from pathlib import Path
from typing import Any

import pytest
from prometheus_client import Counter, Gauge

from fleetgauge_core import __version__
from fleetgauge_core.runtime.cli import InputError, ListenAddress
from fleetgauge_core.runtime.health_server import _MAX_REQUEST_BYTES, ProcessHealth, serve_health
from tests.exposition import samples

FREE_PORT = ListenAddress("127.0.0.1", 0)


@dataclass
class Clock:
    """A clock that the test sets."""

    now_s: float = 1000

    def __call__(self) -> float:
        return self.now_s


def _get(at: ListenAddress, path: str, method: str = "GET") -> tuple[HTTPResponse, bytes]:
    connection = HTTPConnection(at.host, at.port, timeout=5)
    connection.request(method, path)
    response = connection.getresponse()
    body = response.read()
    connection.close()
    return response, body


def _get_json(at: ListenAddress, path: str) -> tuple[int, dict[str, Any]]:
    response, body = _get(at, path)
    assert response.headers["Content-Type"] == "application/json"
    return response.status, json.loads(body)


def test_a_process_is_stuck_while_its_heartbeats_are_missing() -> None:
    clock = Clock()
    health = ProcessHealth("probe", 60, clock)
    with health.serve(FREE_PORT) as at:
        clock.now_s += 60
        assert _get_json(at, "/livez") == (200, {"status": "ok", "loop_age_s": 60})
        clock.now_s += 0.5
        assert _get_json(at, "/livez") == (503, {"status": "stuck", "loop_age_s": 60.5})
        health.record_heartbeat()
        assert _get_json(at, "/livez") == (200, {"status": "ok", "loop_age_s": 0})


def test_a_process_stays_ready_once_it_is_marked_ready() -> None:
    clock = Clock()
    health = ProcessHealth("probe", 60, clock)
    with health.serve(FREE_PORT) as at:
        health.record_heartbeat()
        assert _get_json(at, "/readyz") == (503, {"status": "starting", "loop_age_s": 0})
        health.mark_ready()
        clock.now_s += 3600
        assert _get_json(at, "/readyz") == (200, {"status": "ok", "loop_age_s": 3600})


def test_metrics_are_those_of_the_registry_and_the_build_version() -> None:
    health = ProcessHealth("watch", 60)
    Counter("fleetgauge_things_total", "Things.", ("name",), registry=health.registry).labels('a"\n\\').inc(3)
    with health.serve(FREE_PORT) as at:
        response, body = _get(at, "/metrics")
    assert response.status == 200
    assert response.headers["Content-Type"] == "text/plain; version=0.0.4; charset=utf-8"
    text = body.decode()
    assert samples(text, "fleetgauge_build_info") == {("watch", __version__): 1}
    assert samples(text, "fleetgauge_things_total") == {('a"\n\\',): 3}
    assert "_created" not in text


@pytest.mark.parametrize("path", ["/", "/livez/", "/metrics/x", "/health"])
def test_other_paths_are_not_found(path: str) -> None:
    with ProcessHealth("probe", 60).serve(FREE_PORT) as at:
        assert _get(at, path)[0].status == 404


@pytest.mark.parametrize("path", ["/livez", "/readyz", "/metrics"])
def test_head_is_answered_like_get_and_other_methods_with_405(path: str) -> None:
    with ProcessHealth("probe", 60, Clock()).serve(FREE_PORT) as at:
        got, body = _get(at, path)
        head, nothing = _get(at, path, "HEAD")
        assert (head.status, nothing) == (got.status, b"")
        assert int(got.headers["Content-Length"]) == len(body)
        # The process's own figures may have more digits in the second response.
        assert abs(int(head.headers["Content-Length"]) - len(body)) < 50
        assert head.headers["Content-Type"] == got.headers["Content-Type"]
        for method in ("POST", "PUT", "DELETE", "PATCH", "OPTIONS", "TRACE", "PURGE"):
            response, _ = _get(at, path, method)
            assert (response.status, response.headers["Allow"]) == (405, "GET, HEAD")


def test_a_query_string_is_ignored() -> None:
    with ProcessHealth("probe", 60).serve(FREE_PORT) as at:
        assert _get(at, "/livez?verbose=1")[0].status == 200


def test_silent_disconnecting_and_malformed_clients_delay_nobody_and_log_nothing(
    capfd: pytest.CaptureFixture[str],
) -> None:
    with ProcessHealth("probe", 60).serve(FREE_PORT) as at, socket.create_connection((at.host, at.port)):
        for request in (
            b"",
            b"\x00\n\n",
            b"GET /livez HTTP/9.9\r\n\r\n",
            b"GET /metrics HTTP/1.1\r\nAccept: text/plain;version=x\r\n\r\n",
        ):
            with socket.create_connection((at.host, at.port)) as client:
                client.sendall(request)
        assert _get_json(at, "/livez")[0] == 200
    assert capfd.readouterr() == ("", "")


def test_a_metric_that_cannot_be_read_is_logged_and_keeps_nobody_waiting(
    caplog: pytest.LogCaptureFixture,
) -> None:
    def fail() -> float:
        raise RuntimeError("no such counter")

    health = ProcessHealth("probe", 60)
    Gauge("broken", "A gauge that cannot be read.", registry=health.registry).set_function(fail)
    with health.serve(FREE_PORT) as at:
        with pytest.raises(RemoteDisconnected):
            _get(at, "/metrics")
        assert _get_json(at, "/livez")[0] == 200
    assert "a health request failed" in caplog.text


def test_silent_connections_take_no_thread() -> None:
    with ExitStack() as stack:
        at = stack.enter_context(ProcessHealth("probe", 60).serve(FREE_PORT))
        _get(at, "/livez")
        threads = threading.active_count()
        for _ in range(300):
            client = stack.enter_context(socket.create_connection((at.host, at.port)))
            client.sendall(b"GET /livez HTT")
        assert _get(at, "/metrics")[0].status == 200
        assert threading.active_count() == threads
        client.sendall(b"P/1.1\r\n\r\n")
        assert client.recv(1_000).startswith(b"HTTP/1.0 200 OK\r\n")


#: Serves with two hundred files at most until its stdin is closed.
FEW_FILES = """
import resource, sys
from fleetgauge_core.runtime.cli import ListenAddress
from fleetgauge_core.runtime.health_server import ProcessHealth
resource.setrlimit(resource.RLIMIT_NOFILE, (200, 200))
with ProcessHealth("probe", 60).serve(ListenAddress("127.0.0.1", 0)) as at:
    print(at.port, flush=True)
    sys.stdin.read()
"""


def test_more_connections_than_the_process_may_open_files_delay_nobody() -> None:
    command = [sys.executable, "-c", FEW_FILES]
    with (
        subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE
        ) as process,
        ExitStack() as stack,
    ):
        assert process.stdout is not None
        at = ListenAddress("127.0.0.1", int(process.stdout.readline()))
        for _ in range(300):
            stack.enter_context(socket.create_connection((at.host, at.port)))
        assert _get(at, "/livez")[0].status == 200
        assert process.communicate(timeout=60) == (b"", b"")


def test_an_endless_request_is_refused() -> None:
    with (
        ProcessHealth("probe", 60).serve(FREE_PORT) as at,
        socket.create_connection((at.host, at.port)) as client,
    ):
        client.sendall(b"GET /" + (_MAX_REQUEST_BYTES - 4) * b"a")
        assert client.recv(100).startswith(b"HTTP/1.0 414 ")


def test_the_port_is_released_at_the_end_of_the_block() -> None:
    with ProcessHealth("probe", 60).serve(FREE_PORT) as at:
        pass
    with ProcessHealth("probe", 60).serve(at) as again:
        assert again == at


def _has_ipv6() -> bool:
    try:
        socket.create_server(("::1", 0), family=socket.AF_INET6).close()
    except OSError:
        return False
    return True


@pytest.mark.skipif(not _has_ipv6(), reason="this machine has no IPv6")
def test_it_listens_on_an_ipv6_address() -> None:
    with ProcessHealth("probe", 60).serve(ListenAddress("::1", 0)) as at:
        assert str(at).startswith("[::1]:")
        assert _get(at, "/livez")[0].status == 200


def test_without_the_option_nothing_is_served_or_printed(capfd: pytest.CaptureFixture[str]) -> None:
    with serve_health(ProcessHealth("probe", 60), None):
        pass
    assert capfd.readouterr() == ("", "")


def test_the_address_with_the_actual_port_is_printed_to_stderr(capfd: pytest.CaptureFixture[str]) -> None:
    with serve_health(ProcessHealth("probe", 60), FREE_PORT):
        output = capfd.readouterr()
        assert output.out == ""
        # Clients of other tests may print to the same stderr.
        (address,) = re.findall(r"http://(\S+)", output.err)
        host, _, port = address.partition(":")
        assert _get(ListenAddress(host, int(port)), "/livez")[0].status == 200


@pytest.mark.parametrize("host", ["a..b", "203.0.113.1"])
def test_an_address_that_cannot_be_listened_on_is_wrong_input(host: str) -> None:
    with (
        pytest.raises(InputError, match=f"cannot listen on {host}:1: .*; choose another address"),
        serve_health(ProcessHealth("probe", 60), ListenAddress(host, 1)),
    ):
        pass


def test_an_os_error_inside_the_block_is_not_reported_as_a_listen_error() -> None:
    with pytest.raises(OSError, match="disk"), serve_health(ProcessHealth("probe", 60), FREE_PORT):
        raise OSError("disk")


FLEET = "telemetry: {bootstrap: '127.0.0.1:1'}\nclusters: [{id: orders, bootstrap: '127.0.0.1:1'}]\n"


@pytest.mark.parametrize("command", ["probe", "watch", "stream"])
def test_a_port_in_use_ends_the_command_with_one_line_and_exit_code_2(command: str, tmp_path: Path) -> None:
    (tmp_path / "fleet.yaml").write_text(FLEET)
    with socket.create_server(("127.0.0.1", 0)) as taken:
        listen = f"127.0.0.1:{taken.getsockname()[1]}"
        done = subprocess.run(
            [sys.executable, "-m", "fleetgauge_core", command, "--listen", listen],
            cwd=tmp_path,
            capture_output=True,
            text=True,
            timeout=60,
        )
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith(f"fleetgauge: cannot listen on {listen}: Address already in use; ")
    assert done.stderr.count("\n") == 1
