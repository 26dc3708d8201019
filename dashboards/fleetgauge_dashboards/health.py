"""Liveness and readiness, for whatever runs the server."""

from collections.abc import Mapping
from typing import Any

from flask import Flask, jsonify

from fleetgauge_dashboards.reader import Lake


def add(server: Flask, lakes: Mapping[str, Lake]) -> None:
    """/livez: the process answers. /readyz: and says which tables of which fleet it can read.

    An empty or broken lake does not make the server unready: its pages say so
    better than a load balancer that has nowhere to go.
    """

    def livez() -> Any:
        return jsonify(status="ok")

    def readyz() -> Any:
        fleets = {name: _tables(lake) for name, lake in lakes.items()}
        return jsonify(status="ok", tables=next(iter(fleets.values())), fleets=fleets)

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
