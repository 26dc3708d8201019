"""Spans select the rows of their clusters and minutes, and their condition loses none of them."""

from datetime import UTC, date, datetime, timedelta

import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from fleetgauge_pipelines.transforms.minute_spans import MinuteSpans

MIDNIGHT = datetime(2026, 4, 2, tzinfo=UTC)
MINUTES = st.integers(-5, 5).map(lambda number: MIDNIGHT + timedelta(minutes=number))
SPANS = st.dictionaries(
    st.sampled_from("abcd"), st.tuples(MINUTES, MINUTES).map(lambda pair: (min(pair), max(pair))), min_size=1
)
ROWS = st.lists(
    st.fixed_dictionaries({"cluster_id": st.sampled_from("abcde"), "minute": MINUTES}), max_size=9
)
SCHEMA = pa.schema([("cluster_id", pa.string()), ("minute", pa.timestamp("us", "UTC"))])

Span = tuple[datetime, datetime]


@given(SPANS, ROWS)
def test_the_rows_in_the_span_of_their_cluster_are_selected(
    spans: dict[str, Span], rows: list[dict[str, datetime]]
) -> None:
    wanted = [
        row
        for row in rows
        if (span := spans.get(str(row["cluster_id"]))) and span[0] <= row["minute"] <= span[1]
    ]
    selected, table = MinuteSpans.of(spans), pa.Table.from_pylist(rows, SCHEMA)
    assert selected.select(table).to_pylist() == wanted
    assert selected.select(table.filter(selected.where)).to_pylist() == wanted


def test_the_days_of_spans_are_those_that_they_touch() -> None:
    before = MIDNIGHT - timedelta(minutes=1)
    assert MinuteSpans.of({"a": (before, before)}).days == [date(2026, 4, 1)]
    spans = MinuteSpans.of({"a": (before, before), "b": (MIDNIGHT, MIDNIGHT)})
    assert spans.days == [date(2026, 4, 1), date(2026, 4, 2)]
    later = MIDNIGHT + timedelta(days=9)
    apart = MinuteSpans.of({"a": (before, before), "b": (later, later)})
    assert apart.days == [date(2026, 4, 1), date(2026, 4, 11)]
