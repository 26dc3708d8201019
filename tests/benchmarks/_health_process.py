"""Serves the health endpoints of a process with a thousand series, and prints their port."""

import sys

from prometheus_client import Counter

from fleetgauge_core.runtime.cli import ListenAddress
from fleetgauge_core.runtime.health_server import ProcessHealth

_SERIES = 1_000

if __name__ == "__main__":
    health = ProcessHealth("probe", 3_600)
    counter = Counter("fleetgauge_bench_total", "Series.", ("broker",), registry=health.registry)
    for number in range(_SERIES):
        counter.labels(str(number)).inc(number)
    with health.serve(ListenAddress("127.0.0.1", 0)) as address:
        print(address.port, flush=True)
        sys.stdin.read()
