import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import parse_qs, urlsplit

import pytest
import urllib3
from hypothesis import given
from hypothesis import strategies as st

from fleetgauge_probes.agent.broker_progress import Counters
from fleetgauge_probes.agent.jmx_exporters import counters_in, scrape

HTTP = urllib3.PoolManager(retries=False)

TEXT = """\
# TYPE kafka_log_logmanager_offlinelogdirectorycount gauge
kafka_log_logmanager_offlinelogdirectorycount 1.0
# TYPE kafka_network_requestchannel_requestqueuesize gauge
kafka_network_requestchannel_requestqueuesize 7.0
# TYPE kafka_network_requestmetrics_requests_total counter
kafka_network_requestmetrics_requests_total{request="Produce",version="12"} 40.0
kafka_network_requestmetrics_requests_total{request="Produce",version="11"} 2.0
kafka_network_requestmetrics_requests_total{request="FetchConsumer",version="17"} 100.0
kafka_network_requestmetrics_requests_total{request="BrokerHeartbeat",version="1"} 900.0
# TYPE kafka_server_brokertopicmetrics_replicationbytesin_total counter
kafka_server_brokertopicmetrics_replicationbytesin_total 1.5E7
"""


def test_of_all_that_an_exporter_says_four_things_count() -> None:
    assert counters_in(TEXT) == Counters(waiting=7, completed=142, copied=15_000_000, offline_dirs=1)


def test_what_has_never_happened_is_none_and_what_is_missing_says_nothing() -> None:
    lines = TEXT.splitlines(keepends=True)
    quiet = "".join(one for one in lines if "total" not in one)
    assert counters_in(quiet) == Counters(waiting=7, completed=0, copied=0, offline_dirs=1)
    assert counters_in("".join(one for one in lines if "queue" not in one)) is None
    assert counters_in("kafka_network_requestchannel_requestqueuesize seven\n") is None
    for strange in ("NaN", "+Inf", "1e400"):
        assert counters_in(TEXT.replace("7.0", strange)) is None
    assert counters_in("<html>") is None
    assert counters_in("") is None


@given(st.text() | st.text(alphabet=sorted(set(TEXT))) | st.builds("".join, st.permutations(list(TEXT))))
def test_whatever_it_says_nothing_breaks(text: str) -> None:
    found = counters_in(text)
    assert found is None or isinstance(found, Counters)


@contextmanager
def exporter(status: int) -> Iterator[tuple[str, list[str]]]:
    """One that answers so, its address, and what it was asked for."""
    asked: list[str] = []

    class Answer(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            asked.extend(parse_qs(urlsplit(self.path).query)["name[]"])
            self.send_response(status)
            self.end_headers()
            self.wfile.write(TEXT.encode())

        def log_message(self, *_: object) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Answer) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_port}/metrics", asked
        finally:
            server.shutdown()
            thread.join()


def test_an_exporter_is_asked_for_no_more_than_that() -> None:
    with exporter(200) as (url, asked):
        assert scrape(HTTP, url) == counters_in(TEXT)
    assert len(asked) == 4


@pytest.mark.parametrize("status", [404, 503])
def test_one_that_does_not_tell_is_one_that_is_silent(status: int) -> None:
    with exporter(status) as (url, _):
        assert scrape(HTTP, url) is None
    assert scrape(HTTP, url) is None
    assert scrape(HTTP, "http://nobody.invalid:1/metrics") is None
