import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import parse_qs, urlsplit

import pytest
import urllib3
from hypothesis import given
from hypothesis import strategies as st

from fleetgauge_probes.agent.broker_progress import BrokerCounters
from fleetgauge_probes.agent.jmx_exporters import parse_counters, scrape_counters

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


def test_counters_are_read_from_four_metrics_with_client_requests_only() -> None:
    assert parse_counters(TEXT) == BrokerCounters(
        queued_requests=7, completed_requests=142, replicated_bytes=15_000_000, offline_log_dirs=1
    )


def test_absent_event_counters_are_zero_and_an_absent_gauge_invalidates_the_reading() -> None:
    lines = TEXT.splitlines(keepends=True)
    idle = "".join(line for line in lines if "total" not in line)
    assert parse_counters(idle) == BrokerCounters(
        queued_requests=7, completed_requests=0, replicated_bytes=0, offline_log_dirs=1
    )
    assert parse_counters("".join(line for line in lines if "queue" not in line)) is None
    assert parse_counters("kafka_network_requestchannel_requestqueuesize seven\n") is None
    for not_finite in ("NaN", "+Inf", "1e400"):
        assert parse_counters(TEXT.replace("7.0", not_finite)) is None
    assert parse_counters("<html>") is None
    assert parse_counters("") is None


@given(st.text() | st.text(alphabet=sorted(set(TEXT))) | st.builds("".join, st.permutations(list(TEXT))))
def test_any_text_is_read_without_an_exception(text: str) -> None:
    counters = parse_counters(text)
    assert counters is None or isinstance(counters, BrokerCounters)


@contextmanager
def run_exporter(status: int) -> Iterator[tuple[str, list[str]]]:
    """Run an exporter that responds with a status; yield its URL and the metric names requested from it."""
    requested: list[str] = []

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            requested.extend(parse_qs(urlsplit(self.path).query)["name[]"])
            self.send_response(status)
            self.end_headers()
            self.wfile.write(TEXT.encode())

        def log_message(self, *_: object) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_port}/metrics", requested
        finally:
            server.shutdown()
            thread.join()


def test_only_the_four_metrics_are_requested() -> None:
    with run_exporter(200) as (url, requested):
        assert scrape_counters(HTTP, url) == parse_counters(TEXT)
    assert len(requested) == 4


@pytest.mark.parametrize("status", [404, 503])
def test_an_exporter_that_fails_or_is_unreachable_has_no_counters(status: int) -> None:
    with run_exporter(status) as (url, _):
        assert scrape_counters(HTTP, url) is None
    assert scrape_counters(HTTP, url) is None
    assert scrape_counters(HTTP, "http://host.invalid:1/metrics") is None
