"""A simulated week as rows of the silver tables, by the same definitions as the transforms."""

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fleetgauge_core.contract import Leg
from fleetgauge_core.slo.levels import CENSORED_LATENCY_US
from fleetgauge_pipelines.simulation.simulated_week import (
    PROBES_PER_MINUTE,
    Integers,
    LegDraws,
    SimulatedWeek,
)

#: A table's columns by name. A column is an array with a value for each row, where a masked value is NULL (or
#: an empty list or map), or one value for all rows.
Columns = Mapping[str, NDArray[Any] | str | int | bool | None]

#: The error code of every simulated failure.
FAILURE = "MSG_TIMED_OUT"
#: Latency of the acknowledgement as a percentage of the latency to the consumer.
_ACK_PER_CENT = 70


def derive_ack_us(e2e_us: Integers) -> Integers:
    """Return the acknowledgement latencies of the client leg's successes, in the same order."""
    return e2e_us // 100 * _ACK_PER_CENT


def make_cluster_minutes(week: SimulatedWeek) -> Columns:
    """Return the columns of silver/cluster_minutes of a simulated week, with a row for each minute."""
    client, silent = week.client, week.silent
    brokers = len(week.profile.brokers)
    p99_us, leader_us = _p99(client), _p99(week.leader)
    attempted = np.where(silent, 0, brokers * PROBES_PER_MINUTE)
    succeeded = np.where(silent, 0, client.succeeded.sum(axis=1))
    no_success, no_leader_success = silent | (p99_us.max(axis=1) == 0), silent | (leader_us.max(axis=1) == 0)
    return {
        "cluster_id": week.profile.cluster_id,
        "latency_p99_us": _null(no_success, p99_us.max(axis=1)),
        "latency_worst_home": _null(no_success, 1 + p99_us.argmax(axis=1)),
        "latency_p99_censored_us": _null(silent, _censored_p99(client, Leg.CLIENT).max(axis=1)),
        "latency_pooled_p99_us": _null(no_success, _pooled_p99(client)),
        "availability": _null(silent, client.succeeded.min(axis=1) / PROBES_PER_MINUTE),
        "availability_worst_home": _null(silent, 1 + client.failed.argmax(axis=1)),
        "availability_pooled": _null(silent, succeeded / np.maximum(attempted, 1)),
        "leader_ack_p99_us": _null(no_leader_success, leader_us.max(axis=1)),
        "leader_worst_broker": _null(no_leader_success, 1 + leader_us.argmax(axis=1)),
        "brokers_expected": brokers,
        "brokers_measured": attempted // PROBES_PER_MINUTE,
        "attempted": attempted,
        "succeeded": succeeded,
        "cause": None,
        **_times(week, slice(None), 1),
    }


def make_broker_minutes(week: SimulatedWeek, leg: Leg, hour: int) -> Columns:
    """Return the columns of silver/broker_minutes of one leg and one hour of the history."""
    during, draws, brokers = week.hour(hour), week.leg(leg), len(week.profile.brokers)
    silent = np.repeat(week.silent[during], brokers)
    failed = draws.failed[during].ravel()
    succeeded = np.where(silent, 0, PROBES_PER_MINUTE - failed)
    no_success = silent | (succeeded == 0)
    p99_us, slowest_us = _p99(draws)[during].ravel(), draws.slowest_us[0, during].ravel()
    broker_id = np.tile(week.profile.brokers, len(week.silent[during]))
    is_client = leg is Leg.CLIENT
    return {
        "cluster_id": week.profile.cluster_id,
        "broker_id": broker_id,
        "leg": leg.value,
        "attempted": np.where(silent, 0, PROBES_PER_MINUTE),
        "succeeded": succeeded,
        "acknowledged": succeeded,
        "received": succeeded if is_client else 0,
        "availability": _null(silent, succeeded / PROBES_PER_MINUTE),
        "latency_p50_us": _null(no_success, _median(week, leg, hour)),
        "latency_p99_us": _null(no_success, p99_us),
        "latency_p99_censored_us": _null(silent, _censored_p99(draws, leg)[during].ravel()),
        "latency_max_us": _null(no_success, slowest_us),
        "ack_p99_us": _null(no_success, derive_ack_us(p99_us) if is_client else p99_us),
        "failures": _null(silent | (failed == 0), failed),
        "lost": 0,
        "duplicated": 0,
        "vantages": np.where(silent, 0, 1),
        "agent_late": False,
        "measured": ~silent,
        "led_by": _null(silent, broker_id),
        **_times(week, during, brokers),
    }


def compute_client_censored_p99_us(week: SimulatedWeek) -> Integers:
    """Return the client leg's censored p99 latencies as an array of minutes x brokers."""
    return _censored_p99(week.client, Leg.CLIENT)


def _times(week: SimulatedWeek, during: slice, rows_per_minute: int) -> Columns:
    """Return the columns minute and day of some of the week's minutes."""
    start = np.datetime64(week.start.replace(tzinfo=None), "us")
    all_minutes = start + np.arange(len(week.silent)) * np.timedelta64(1, "m")
    minute = np.repeat(all_minutes[during], rows_per_minute)
    return {"minute": minute, "day": minute.astype("datetime64[D]")}


def _p99(draws: LegDraws) -> Integers:
    """Return p99 as minutes x brokers: the second slowest of 100 successes, the slowest of fewer, or 0."""
    p99_us: Integers = np.where(draws.failed == 0, draws.slowest_us[1], draws.slowest_us[0])
    return p99_us


def _censored_p99(draws: LegDraws, leg: Leg) -> Integers:
    """Return the second slowest of 100 probes as minutes x brokers; a failure counts at the deadline."""
    return np.where(draws.failed > 1, CENSORED_LATENCY_US[leg], _p99(draws))


def _pooled_p99(draws: LegDraws) -> Integers:
    """Return for each minute the p99 of all homes' n successes, than which n // 100 are slower; 0 if n is 0.

    n // 100 is at most the number of homes, and more samples than that were drawn of each home. So all slower
    samples are among the drawn ones.
    """
    ranks, minutes, brokers = draws.slowest_us.shape
    pool = np.sort(draws.slowest_us.transpose(1, 0, 2).reshape(minutes, ranks * brokers), axis=1)
    slower = draws.succeeded.sum(axis=1) // 100
    return np.take_along_axis(pool, ranks * brokers - 1 - slower[:, None], axis=1)[:, 0]


def _median(week: SimulatedWeek, leg: Leg, hour: int) -> Integers:
    """Return the median of each broker-minute's successes, and an arbitrary value where there are none."""
    samples = week.samples_us(leg, hour).reshape(-1, PROBES_PER_MINUTE)
    failed = week.leg(leg).failed[week.hour(hour)].reshape(-1, 1)
    rank = np.maximum((50 * (PROBES_PER_MINUTE - failed) + 99) // 100, 1)
    return np.take_along_axis(samples, np.minimum(failed + rank, PROBES_PER_MINUTE) - 1, axis=1)[:, 0]


def _null(where: NDArray[np.bool_], values: NDArray[Any]) -> NDArray[Any]:
    return np.ma.masked_array(values, where)
