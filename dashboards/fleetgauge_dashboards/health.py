"""Liveness, readiness and metrics, for whatever runs the server."""

from collections.abc import Mapping
from typing import Any

from flask import Flask, Response, jsonify
from prometheus_client import CONTENT_TYPE_PLAIN_0_0_4, CollectorRegistry, generate_latest

from fleetgauge_dashboards.reader import Lake


def add(server: Flask, lakes: Mapping[str, Lake], registry: CollectorRegistry) -> None:
    """/livez: the process answers. /readyz: and says which tables of which fleet it can read.

    An empty or broken lake does not make the server unready: its pages say so
    better than a load balancer that has nowhere to go.
    """

    def livez() -> Any:
        return jsonify(status="ok")

    def readyz() -> Any:
        fleets = {name: _tables(lake) for name, lake in lakes.items()}
        return jsonify(status="ok", tables=next(iter(fleets.values())), fleets=fleets)

    def metrics() -> Response:
        return Response(generate_latest(registry), content_type=CONTENT_TYPE_PLAIN_0_0_4)

    server.add_url_rule("/metrics", "metrics", metrics)
    server.add_url_rule("/livez", "livez", livez)
    server.add_url_rule("/readyz", "readyz", readyz)


def _tables(lake: Lake) -> dict[str, dict[str, Any]]:
    return {
        table.path: {
            "version": table.version,
            "state": _state(table.version, table.error),
            "error": table.error,
        }
        for table in lake.readable()
    }


def _state(version: int | None, error: str | None) -> str:
    if error is not None:
        return "unreadable"
    return "absent" if version is None else "readable"
