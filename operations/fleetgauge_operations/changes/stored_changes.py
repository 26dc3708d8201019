"""The changes that the lake has; the topic keeps those of its retention alone."""

from collections.abc import Iterable, Sequence

import pyarrow.compute as pc

from fleetgauge_core.contract import ClusterChange
from fleetgauge_core.lake.table_store import TableStore
from fleetgauge_core.tables import CHANGES


def read_stored_changes(lake: str, cluster_id: str | None) -> Sequence[ClusterChange]:
    """Return the changes of a cluster, of segments and of the fleet; of all clusters if it is None.

    There are none before the stream has created the table. Raises: TableStoreError.
    """
    subject = pc.field("cluster_id")
    where = None if cluster_id is None else (subject == cluster_id) | subject.is_null()
    return [ClusterChange(**row) for row in TableStore(lake, CHANGES, create=True).rows(where)]


def merge_records(
    stored: Iterable[ClusterChange], in_topic: Iterable[ClusterChange]
) -> Sequence[ClusterChange]:
    """Return each record once: most of those in the topic are stored, too."""
    return list({record.event_id: record for record in (*stored, *in_topic)}.values())
