import json
import socket
import subprocess
import sys
from dataclasses import dataclass
from http.client import HTTPConnection, HTTPResponse
from pathlib import Path
from typing import Any

import pytest
from prometheus_client import Counter

from fleetgauge_core import __version__
from fleetgauge_core.runtime.cli import Address, InputError
from fleetgauge_core.runtime.health_server import Vitals, serving
from tests.exposition import samples

ANYWHERE = Address("127.0.0.1", 0)


@dataclass
class Clock:
    """Seconds that pass when they are told to."""

    now_s: float = 1000

    def __call__(self) -> float:
        return self.now_s


def _get(at: Address, path: str, method: str = "GET") -> tuple[HTTPResponse, bytes]:
    connection = HTTPConnection(at.host, at.port, timeout=5)
    connection.request(method, path)
    answer = connection.getresponse()
    body = answer.read()
    connection.close()
    return answer, body


def _said(at: Address, path: str) -> tuple[int, dict[str, Any]]:
    answer, body = _get(at, path)
    assert answer.headers["Content-Type"] == "application/json"
    return answer.status, json.loads(body)


def test_a_process_lives_while_its_loop_goes_round_and_again_when_it_does() -> None:
    clock = Clock()
    vitals = Vitals("probe", 60, clock)
    with vitals.served(ANYWHERE) as at:
        clock.now_s += 60
        assert _said(at, "/livez") == (200, {"status": "ok", "loop_age_s": 60})
        clock.now_s += 0.5
        assert _said(at, "/livez") == (503, {"status": "stuck", "loop_age_s": 60.5})
        vitals.beat()
        assert _said(at, "/livez") == (200, {"status": "ok", "loop_age_s": 0})


def test_a_process_is_ready_once_it_said_so_and_stays_it() -> None:
    clock = Clock()
    vitals = Vitals("probe", 60, clock)
    with vitals.served(ANYWHERE) as at:
        vitals.beat()
        assert _said(at, "/readyz") == (503, {"status": "starting", "loop_age_s": 0})
        vitals.ready()
        clock.now_s += 3600
        assert _said(at, "/readyz") == (200, {"status": "ok", "loop_age_s": 3600})


def test_metrics_are_what_the_registry_holds_and_which_version_says_so() -> None:
    vitals = Vitals("watch", 60)
    Counter("fleetgauge_things_total", "Things.", ("name",), registry=vitals.registry).labels('a"\n\\').inc(3)
    with vitals.served(ANYWHERE) as at:
        answer, body = _get(at, "/metrics")
    assert answer.status == 200
    assert answer.headers["Content-Type"] == "text/plain; version=0.0.4; charset=utf-8"
    text = body.decode()
    assert samples(text, "fleetgauge_build_info") == {("watch", __version__): 1}
    assert samples(text, "fleetgauge_things_total") == {('a"\n\\',): 3}
    assert "_created" not in text


@pytest.mark.parametrize(("method", "path", "status"), [("GET", "/", 404), ("POST", "/livez", 501)])
def test_nothing_else_is_answered(method: str, path: str, status: int) -> None:
    with Vitals("probe", 60).served(ANYWHERE) as at:
        assert _get(at, path, method)[0].status == status


def test_a_query_does_not_change_the_way() -> None:
    with Vitals("probe", 60).served(ANYWHERE) as at:
        assert _get(at, "/livez?verbose=1")[0].status == 200


def test_clients_that_say_nothing_go_away_or_ask_nonsense_hold_up_nobody_and_leave_no_line(
    capfd: pytest.CaptureFixture[str],
) -> None:
    with Vitals("probe", 60).served(ANYWHERE) as at, socket.create_connection((at.host, at.port)):
        for nonsense in (
            b"",
            b"\x00\n\n",
            b"GET /livez HTTP/9.9\r\n\r\n",
            b"GET /metrics HTTP/1.1\r\nAccept: text/plain;version=x\r\n\r\n",
        ):
            with socket.create_connection((at.host, at.port)) as client:
                client.sendall(nonsense)
        assert _said(at, "/livez")[0] == 200
    assert capfd.readouterr() == ("", "")


def test_the_port_is_free_again_when_the_block_is_left() -> None:
    with Vitals("probe", 60).served(ANYWHERE) as at:
        pass
    with Vitals("probe", 60).served(at) as again:
        assert again == at


def _has_ipv6() -> bool:
    try:
        socket.create_server(("::1", 0), family=socket.AF_INET6).close()
    except OSError:
        return False
    return True


@pytest.mark.skipif(not _has_ipv6(), reason="this machine has no IPv6")
def test_an_ipv6_address_can_be_listened_on() -> None:
    with Vitals("probe", 60).served(Address("::1", 0)) as at:
        assert str(at).startswith("[::1]:")
        assert _get(at, "/livez")[0].status == 200


def test_without_the_option_nothing_is_served_or_said(capfd: pytest.CaptureFixture[str]) -> None:
    with serving(Vitals("probe", 60), None):
        pass
    assert capfd.readouterr() == ("", "")


def test_a_free_port_that_was_taken_is_told_on_stderr(capfd: pytest.CaptureFixture[str]) -> None:
    with serving(Vitals("probe", 60), ANYWHERE):
        said = capfd.readouterr()
        assert said.out == ""
        host, _, port = said.err.strip().rpartition("http://")[2].partition(":")
        assert _get(Address(host, int(port)), "/livez")[0].status == 200


@pytest.mark.parametrize("host", ["a..b", "203.0.113.1"])
def test_where_nobody_can_listen_is_wrong_input(host: str) -> None:
    with (
        pytest.raises(InputError, match=f"cannot listen on {host}:1: .*; choose another"),
        serving(Vitals("probe", 60), Address(host, 1)),
    ):
        pass


def test_an_error_of_the_command_itself_is_no_error_of_listening() -> None:
    with pytest.raises(OSError, match="disk"), serving(Vitals("probe", 60), ANYWHERE):
        raise OSError("disk")


FLEET = "telemetry: {bootstrap: '127.0.0.1:1'}\nclusters: [{id: orders, bootstrap: '127.0.0.1:1'}]\n"


@pytest.mark.parametrize("command", ["probe", "watch", "stream"])
def test_a_taken_port_is_one_line_and_exit_2_before_any_work(command: str, tmp_path: Path) -> None:
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
