"""Samples of a Prometheus exposition, as a scraper reads them."""

from prometheus_client import CollectorRegistry, generate_latest

from fleetgauge_core.metrics.exposition import parse_exposition


def samples(text: str, name: str) -> dict[tuple[str, ...], float]:
    """Return a metric's values by their label values, which are in the order of the label names."""
    return {
        tuple(value for _, value in sorted(sample.labels.items())): sample.value
        for sample in parse_exposition(text)
        if sample.name == name
    }


def samples_of(registry: CollectorRegistry, name: str) -> dict[tuple[str, ...], float]:
    """Return the values of one metric in a registry by their label values."""
    return samples(generate_latest(registry).decode(), name)
