"""Build the context of charts over a time range: its findings, corrections, actions and changes."""

from fleetgauge_dashboards.figures.time_series import ChartContext
from fleetgauge_dashboards.links import BrokerView, Span, href
from fleetgauge_dashboards.pages.page import PageContext
from fleetgauge_dashboards.reader.table import Row
from fleetgauge_dashboards.views.alerts import HealthAlert
from fleetgauge_dashboards.views.bands import (
    action_bands,
    change_bands,
    correction_bands,
    excluded_spans,
    finding_bands,
)
from fleetgauge_dashboards.views.cluster import MinutesView


def build_chart_context(view: MinutesView, span: Span, context: PageContext) -> ChartContext:
    """Return the time range with what happened in it, to the view's cluster or broker."""
    lake, zone, now = context.lake, context.fleet.week_zone, context.clock()
    broker_id = view.broker_id if isinstance(view, BrokerView) else None
    segments = context.fleet.segments.get(view.cluster_id, frozenset())

    def concerns_broker(alert: HealthAlert) -> bool:
        return broker_id is None or alert.broker_id == broker_id

    def select_of_broker(rows: list[Row]) -> list[Row]:
        return [row for row in rows if broker_id is None or row["broker_id"] in (None, broker_id)]

    bands = (
        *finding_bands(
            list(filter(concerns_broker, context.read_alerts() or ())), view.cluster_id, span, now
        ),
        *correction_bands(select_of_broker(lake.corrections()), view.cluster_id, segments, zone, span),
        *action_bands(select_of_broker(lake.actions()), view.cluster_id, span, now),
        *change_bands(select_of_broker(lake.changes()), view.cluster_id, segments, span, now),
    )
    return ChartContext(span, context.time_format(view), bands, href(view))


def list_excluded_spans(cluster_id: str, span: Span, context: PageContext) -> tuple[Span, ...]:
    """Return the parts of the time range that corrections exclude for all brokers of the cluster."""
    segments = context.fleet.segments.get(cluster_id, frozenset())
    return excluded_spans(context.lake.corrections(), cluster_id, segments, context.fleet.week_zone, span)
