"""Liveness, readiness and metrics, for whatever runs the server."""

from collections.abc import Callable
from typing import Any

from flask import Flask, Response, jsonify, request
from prometheus_client import CONTENT_TYPE_PLAIN_0_0_4

from fleetgauge_dashboards.pages.page import Context, Contexts
from fleetgauge_dashboards.reader import Lake, LakeError
from fleetgauge_dashboards.single_flight import Patience, SlowError
from fleetgauge_dashboards.views.freshness import Age

#: States of data that are not ready, the worst first. What has ended is history, and whole.
_NOT_READY = (Age.STALE, Age.NONE)


def add(server: Flask, contexts: Contexts, patience: Patience, metrics: Callable[[], bytes]) -> None:
    """/livez: the process answers. /readyz: and says what it can read of each fleet, and how old that is.

    An empty, stale, slow or broken lake does not make the server unready: its pages say so better than a load
    balancer that has nowhere to go. With ``?strict`` it does (503), for whoever watches the data.
    """

    def livez() -> Any:
        return jsonify(status="ok")

    def looked() -> tuple[dict[str, dict[str, Any]], dict[str, dict[str, Any]]]:
        known = {one.fleet.name: one for one in contexts.values()}
        return (
            {name: _tables(one.lake) for name, one in known.items()},
            {name: _age(one) for name, one in known.items()},
        )

    def readyz() -> Any:
        try:
            fleets, ages = patience.ask("readyz", looked)
        except SlowError as error:
            answer = jsonify(status="slow", tables={}, fleets={}, data={}, for_s=round(error.for_s))
            return answer, 503 if "strict" in request.args else 200
        broken = any(table["error"] for tables in fleets.values() for table in tables.values())
        states = {age["state"] for age in ages.values()}
        status = "unreadable" if broken else next((s for s in _NOT_READY if s in states), "ok")
        first = next(iter(fleets.values()))
        answer = jsonify(status=status, tables=first, fleets=fleets, data=ages)
        return answer, 503 if "strict" in request.args and status != "ok" else 200

    server.add_url_rule(
        "/metrics", "metrics", lambda: Response(metrics(), content_type=CONTENT_TYPE_PLAIN_0_0_4)
    )
    server.add_url_rule("/livez", "livez", livez)
    server.add_url_rule("/readyz", "readyz", readyz)


def _age(context: Context) -> dict[str, Any]:
    try:
        fresh = context.fresh()
    except LakeError:
        return {"state": Age.NONE, "age_s": None}
    return {"state": fresh.state, "age_s": None if fresh.age is None else fresh.age.total_seconds()}


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
