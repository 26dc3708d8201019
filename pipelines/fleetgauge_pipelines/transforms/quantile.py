"""Nearest-rank quantiles as column expressions; the twin of fleetgauge_pipelines.slo.quantile."""

from pyspark.sql import Column
from pyspark.sql import functions as F  # noqa: N812 (Spark's own convention)


def rank(a: int, n: Column) -> Column:
    """The 1-based rank of the a-th percentile of n values, in integers."""
    return F.call_function("div", n.cast("long") * a + 99, F.lit(100)).cast("int")


def quantile(a: int, ascending: Column) -> Column:
    """The a-th percentile of an ascending array; NULL of an empty one.

    ``get`` and not ``element_at``: the latter raises under ANSI mode.
    """
    return F.get(ascending, rank(a, F.size(ascending)) - 1)


def quantile_from_bad_side(a: int, ascending: Column) -> Column:
    """The a-th percentile counted from the low end; NULL of an empty array."""
    n = F.size(ascending)
    return F.get(ascending, n - rank(a, n))


def censored_quantile(a: int, ascending: Column, attempted: Column, deadline: Column) -> Column:
    """The a-th percentile of ``attempted`` values, those that are missing counted at the deadline."""
    failures = (attempted - F.size(ascending)).cast("int")
    at = rank(a, attempted)
    within = F.size(F.filter(ascending, lambda value: value <= deadline))
    return (
        F.when(at <= within, F.get(ascending, at - 1))
        .when(at <= within + failures, deadline)
        .otherwise(F.get(ascending, at - 1 - failures))
    )
