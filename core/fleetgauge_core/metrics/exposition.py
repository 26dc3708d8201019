"""Reader of the Prometheus text exposition format, version 0.0.4."""

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass

from prometheus_client.parser import text_string_to_metric_families


class ExpositionError(ValueError):
    """The text is not a valid Prometheus exposition."""


@dataclass(frozen=True, slots=True)
class MetricSample:
    """One sample line: the metric's full name, such as ``http_requests_total``, its labels and its value."""

    name: str
    labels: Mapping[str, str]
    value: float


def parse_exposition(text: str) -> tuple[MetricSample, ...]:
    """Return the samples of an exposition in their order.

    Raises: ExpositionError when the text is malformed.
    """
    try:
        families = list(text_string_to_metric_families(text))
    except ValueError as error:
        raise ExpositionError(f"not a Prometheus exposition: {error}") from error
    return tuple(
        MetricSample(sample.name, sample.labels, float(sample.value))
        for family in families
        for sample in family.samples
    )


def sum_samples(
    samples: Iterable[MetricSample], name: str, labels: Mapping[str, Collection[str]] | None = None
) -> float | None:
    """Return the sum of a metric's samples; None if there are none.

    A counter that is exposed only after its first event has none before that. ``labels`` restricts the sum
    to samples that have one of the given values for each label.
    """
    wanted = labels or {}
    values = [
        sample.value
        for sample in samples
        if sample.name == name
        and all(sample.labels.get(label) in accepted for label, accepted in wanted.items())
    ]
    return sum(values) if values else None
