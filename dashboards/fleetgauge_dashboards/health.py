"""Liveness and readiness, for whatever runs the server."""

from typing import Any

from flask import Flask, jsonify

from fleetgauge_dashboards.reader import Lake


def add(server: Flask, lake: Lake) -> None:
    """/livez: the process answers. /readyz: and says which tables it can read.

    An empty or broken lake does not make the server unready: its pages say so
    better than a load balancer that has nowhere to go.
    """

    def livez() -> Any:
        return jsonify(status="ok")

    def readyz() -> Any:
        tables = {
            table.path: {
                "version": table.version,
                "state": _state(table.version, table.error),
                "error": table.error,
            }
            for table in lake.readable()
        }
        return jsonify(status="ok", tables=tables)

    server.add_url_rule("/livez", "livez", livez)
    server.add_url_rule("/readyz", "readyz", readyz)


def _state(version: int | None, error: str | None) -> str:
    if error is not None:
        return "unreadable"
    return "absent" if version is None else "readable"
