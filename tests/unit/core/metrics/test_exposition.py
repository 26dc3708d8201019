from math import inf, isnan

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from prometheus_client import CollectorRegistry, Counter, generate_latest

from fleetgauge_core.metrics.exposition import (
    ExpositionError,
    MetricSample,
    parse_exposition,
    sum_samples,
)

TEXT = """\
# HELP requests_total Requests.
# TYPE requests_total counter
requests_total{request="Produce",version="12"} 40.0
requests_total{request="Produce",version="11"} 2.0
requests_total{request="Fetch",version="17"} 1.5E3
# TYPE queue_size gauge
queue_size 7.0
"""
NAMES = st.from_regex(r"[a-z]{1,8}", fullmatch=True)


def test_samples_keep_their_order_names_labels_and_values() -> None:
    samples = parse_exposition(TEXT)
    assert samples[0] == MetricSample("requests_total", {"request": "Produce", "version": "12"}, 40.0)
    assert [sample.value for sample in samples] == [40, 2, 1500, 7]
    assert samples[-1].labels == {}


def test_special_values_are_numbers() -> None:
    infinite, undefined = parse_exposition("a +Inf\nb NaN\n")
    assert infinite.value == inf
    assert isnan(undefined.value)


def test_an_empty_text_has_no_samples() -> None:
    assert parse_exposition("") == ()


@pytest.mark.parametrize("text", ["queue_size seven\n", "<html>", '{"json": 1}', 'a{b="c} 1\n'])
def test_malformed_text_is_an_error(text: str) -> None:
    with pytest.raises(ExpositionError, match="not a Prometheus exposition"):
        parse_exposition(text)


@example("0{}0")
@given(st.text() | st.text(alphabet=sorted(set(TEXT))) | st.builds("".join, st.permutations(list(TEXT))))
def test_any_text_is_parsed_or_is_an_exposition_error(text: str) -> None:
    try:
        samples = parse_exposition(text)
    except ExpositionError:
        return
    assert all(isinstance(sample.value, float) for sample in samples)


def test_a_sum_covers_all_samples_of_a_name_and_is_none_without_any() -> None:
    samples = parse_exposition(TEXT)
    assert sum_samples(samples, "requests_total") == 1542
    assert sum_samples(samples, "queue_size") == 7
    assert sum_samples(samples, "requests") is None


def test_a_sum_can_be_restricted_by_labels() -> None:
    samples = parse_exposition(TEXT)
    assert sum_samples(samples, "requests_total", {"request": ["Produce"]}) == 42
    assert sum_samples(samples, "requests_total", {"request": ["Produce", "Fetch"], "version": ["11"]}) == 2
    assert sum_samples(samples, "requests_total", {"request": ["Metadata"]}) is None
    assert sum_samples(samples, "queue_size", {"request": ["Produce"]}) is None


@given(st.dictionaries(NAMES, st.integers(0, 2**40), min_size=1))
def test_what_prometheus_client_exposes_is_read_back(counts: dict[str, int]) -> None:
    registry = CollectorRegistry()
    counter = Counter("events_total", "Events.", ("kind",), registry=registry)
    for kind, count in counts.items():
        counter.labels(kind).inc(count)
    samples = parse_exposition(generate_latest(registry).decode())
    read = {sample.labels["kind"]: sample.value for sample in samples if sample.name == "events_total"}
    assert read == counts
    assert sum_samples(samples, "events_total") == sum(counts.values())
