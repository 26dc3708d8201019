"""What charts over minutes are told beside the minutes themselves."""

from fleetgauge_dashboards.figures.over_time import OverTime
from fleetgauge_dashboards.links import BrokerView, Span, href
from fleetgauge_dashboards.pages.page import Context
from fleetgauge_dashboards.reader.table import Row
from fleetgauge_dashboards.views.alerts import Alert
from fleetgauge_dashboards.views.bands import corrected, done, found, left_out
from fleetgauge_dashboards.views.cluster import OfMinutes


def over_time(view: OfMinutes, span: Span, context: Context) -> OverTime:
    """The span with what was found, corrected and done in it: to the broker, if the view is of one."""
    lake, zone, now = context.lake, context.fleet.week_zone, context.clock()
    broker_id = view.broker_id if isinstance(view, BrokerView) else None
    segments = context.fleet.segments.get(view.cluster_id, frozenset())

    def about(one: Alert) -> bool:
        return broker_id is None or one.broker_id == broker_id

    def touching(rows: list[Row]) -> list[Row]:
        return [row for row in rows if broker_id is None or row["broker_id"] in (None, broker_id)]

    bands = (
        *found(list(filter(about, context.alerts() or ())), view.cluster_id, span, now),
        *corrected(touching(lake.corrections()), view.cluster_id, segments, zone, span),
        *done(touching(lake.actions()), view.cluster_id, span, now),
    )
    return OverTime(span, context.times(view), bands, href(view))


def uncounted(cluster_id: str, span: Span, context: Context) -> tuple[Span, ...]:
    """What corrections leave out of the span for all brokers of the cluster."""
    segments = context.fleet.segments.get(cluster_id, frozenset())
    return left_out(context.lake.corrections(), cluster_id, segments, context.fleet.week_zone, span)
