"""Prometheus text as a scraper reads it."""

from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.parser import text_string_to_metric_families


def samples(text: str, name: str) -> dict[tuple[str, ...], float]:
    """Values by the labels' values, in the order of the labels' names."""
    found = [one for family in text_string_to_metric_families(text) for one in family.samples]
    return {
        tuple(value for _, value in sorted(one.labels.items())): one.value
        for one in found
        if one.name == name
    }


def samples_of(registry: CollectorRegistry, name: str) -> dict[tuple[str, ...], float]:
    return samples(generate_latest(registry).decode(), name)
