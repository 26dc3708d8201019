"""HTTP endpoints for liveness, readiness and metrics."""

from collections.abc import Callable
from typing import Any

from flask import Flask, Response, jsonify, request
from prometheus_client import CONTENT_TYPE_PLAIN_0_0_4

from fleetgauge_dashboards.pages.page import FleetContexts, PageContext
from fleetgauge_dashboards.reader import LakeError, LakeReader
from fleetgauge_dashboards.single_flight import ResultPendingError, SingleFlight
from fleetgauge_dashboards.views.freshness import DataAge

#: Data states that count as not ready, worst first. ENDED does not: a fleet that has ended is complete.
_NOT_READY = (DataAge.STALE, DataAge.NONE)


def register_endpoints(
    server: Flask, contexts: FleetContexts, single_flight: SingleFlight, render_metrics: Callable[[], bytes]
) -> None:
    """Register /livez, /readyz and /metrics.

    /livez returns 200 while the process serves requests. /readyz also returns which tables of each fleet are
    readable and how old their data is. Its status code stays 200 for an empty, stale, slow or unreadable
    lake, because the pages explain these states better than a load balancer's error page. With ``?strict``
    it is 503, for monitoring of the data itself.
    """

    def livez() -> Any:
        return jsonify(status="ok")

    def inspect_lakes() -> tuple[dict[str, dict[str, Any]], dict[str, dict[str, Any]]]:
        contexts_by_name = {context.fleet.name: context for context in contexts.values()}
        return (
            {name: _describe_tables(context.lake) for name, context in contexts_by_name.items()},
            {name: _describe_age(context) for name, context in contexts_by_name.items()},
        )

    def readyz() -> Any:
        try:
            fleets, ages = single_flight.run("readyz", inspect_lakes)
        except ResultPendingError as error:
            response = jsonify(status="slow", tables={}, fleets={}, data={}, for_s=round(error.pending_s))
            return response, 503 if "strict" in request.args else 200
        is_unreadable = any(table["error"] for tables in fleets.values() for table in tables.values())
        states = {age["state"] for age in ages.values()}
        status = (
            "unreadable" if is_unreadable else next((state for state in _NOT_READY if state in states), "ok")
        )
        first_fleet = next(iter(fleets.values()))
        response = jsonify(status=status, tables=first_fleet, fleets=fleets, data=ages)
        return response, 503 if "strict" in request.args and status != "ok" else 200

    server.add_url_rule(
        "/metrics", "metrics", lambda: Response(render_metrics(), content_type=CONTENT_TYPE_PLAIN_0_0_4)
    )
    server.add_url_rule("/livez", "livez", livez)
    server.add_url_rule("/readyz", "readyz", readyz)


def _describe_age(context: PageContext) -> dict[str, Any]:
    try:
        freshness = context.assess_freshness()
    except LakeError:
        return {"state": DataAge.NONE, "age_s": None}
    return {
        "state": freshness.state,
        "age_s": None if freshness.age is None else freshness.age.total_seconds(),
    }


def _describe_tables(lake: LakeReader) -> dict[str, dict[str, Any]]:
    return {
        table.path: {
            "version": table.version,
            "state": _classify_table(table.version, table.error),
            "error": table.error,
        }
        for table in lake.table_statuses()
    }


def _classify_table(version: int | None, error: str | None) -> str:
    if error is not None:
        return "unreadable"
    return "absent" if version is None else "readable"
