"""A part as rows of the silver tables, by the definitions that the transforms have."""

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fleetgauge_core.contract import Leg
from fleetgauge_core.slo.levels import CENSORED_US
from fleetgauge_pipelines.simulation.part import ATTEMPTS, Integers, LegDraws, Part

#: A table's columns by name: an array with a value a row, NULL where it is masked (an empty
#: list or map in a column of those), or one value for every row.
Columns = Mapping[str, NDArray[Any] | str | int | bool | None]

#: What a probe that fails is called: the key of a map of failures.
FAILURE = "MSG_TIMED_OUT"
#: The acknowledgement's share of the way to the consumer.
_ACK_PER_CENT = 70


def ack_us(e2e_us: Integers) -> Integers:
    """The acknowledgements of the client leg's successes, in the same order."""
    return e2e_us // 100 * _ACK_PER_CENT


def cluster_minutes(part: Part) -> Columns:
    """silver/cluster_minutes of a part, a row a minute."""
    client, silent = part.client, part.silent
    brokers = len(part.profile.brokers)
    p99_us, leader_us = _p99(client), _p99(part.leader)
    attempted = np.where(silent, 0, brokers * ATTEMPTS)
    succeeded = np.where(silent, 0, client.succeeded.sum(axis=1))
    nobody, no_leader = silent | (p99_us.max(axis=1) == 0), silent | (leader_us.max(axis=1) == 0)
    return {
        "cluster_id": part.profile.cluster_id,
        "latency_p99_us": _null(nobody, p99_us.max(axis=1)),
        "latency_worst_home": _null(nobody, 1 + p99_us.argmax(axis=1)),
        "latency_p99_censored_us": _null(silent, _censored_p99(client, Leg.CLIENT).max(axis=1)),
        "latency_pooled_p99_us": _null(nobody, _pooled_p99(client)),
        "availability": _null(silent, client.succeeded.min(axis=1) / ATTEMPTS),
        "availability_worst_home": _null(silent, 1 + client.failed.argmax(axis=1)),
        "availability_pooled": _null(silent, succeeded / np.maximum(attempted, 1)),
        "leader_ack_p99_us": _null(no_leader, leader_us.max(axis=1)),
        "leader_worst_broker": _null(no_leader, 1 + leader_us.argmax(axis=1)),
        "brokers_expected": brokers,
        "brokers_measured": attempted // ATTEMPTS,
        "attempted": attempted,
        "succeeded": succeeded,
        "cause": None,
        **_times(part, slice(None), 1),
    }


def broker_minutes(part: Part, leg: Leg, hour: int) -> Columns:
    """silver/broker_minutes of one leg and one hour of the history."""
    during, draws, brokers = part.hour(hour), part.leg(leg), len(part.profile.brokers)
    silent = np.repeat(part.silent[during], brokers)
    failed = draws.failed[during].ravel()
    succeeded = np.where(silent, 0, ATTEMPTS - failed)
    nothing = silent | (succeeded == 0)
    p99_us, slowest_us = _p99(draws)[during].ravel(), draws.slowest_us[0, during].ravel()
    broker_id = np.tile(part.profile.brokers, len(part.silent[during]))
    is_client = leg is Leg.CLIENT
    return {
        "cluster_id": part.profile.cluster_id,
        "broker_id": broker_id,
        "leg": leg.value,
        "attempted": np.where(silent, 0, ATTEMPTS),
        "succeeded": succeeded,
        "acknowledged": succeeded,
        "received": succeeded if is_client else 0,
        "availability": _null(silent, succeeded / ATTEMPTS),
        "latency_p50_us": _null(nothing, _median(part, leg, hour)),
        "latency_p99_us": _null(nothing, p99_us),
        "latency_p99_censored_us": _null(silent, _censored_p99(draws, leg)[during].ravel()),
        "latency_max_us": _null(nothing, slowest_us),
        "ack_p99_us": _null(nothing, ack_us(p99_us) if is_client else p99_us),
        "failures": _null(silent | (failed == 0), failed),
        "lost": 0,
        "duplicated": 0,
        "vantages": np.where(silent, 0, 1),
        "agent_late": False,
        "measured": ~silent,
        "led_by": _null(silent, broker_id),
        **_times(part, during, brokers),
    }


def client_censored_p99_us(part: Part) -> Integers:
    """minutes x brokers of the client leg."""
    return _censored_p99(part.client, Leg.CLIENT)


def _times(part: Part, during: slice, rows_a_minute: int) -> Columns:
    """minute and day of some of the part's minutes."""
    start = np.datetime64(part.start.replace(tzinfo=None), "us")
    every = start + np.arange(len(part.silent)) * np.timedelta64(1, "m")
    minute = np.repeat(every[during], rows_a_minute)
    return {"minute": minute, "day": minute.astype("datetime64[D]")}


def _p99(draws: LegDraws) -> Integers:
    """minutes x brokers: of 100 successes the second slowest, of fewer the slowest; 0 of none."""
    p99_us: Integers = np.where(draws.failed == 0, draws.slowest_us[1], draws.slowest_us[0])
    return p99_us


def _censored_p99(draws: LegDraws, leg: Leg) -> Integers:
    """minutes x brokers: the second slowest of 100 probes, where a failure is as slow as the deadline."""
    return np.where(draws.failed > 1, CENSORED_US[leg], _p99(draws))


def _pooled_p99(draws: LegDraws) -> Integers:
    """Per minute, of all homes' n successes: n // 100 are slower. 0 of none.

    No home has more among these than were drawn of it, for there are at most as many as homes.
    """
    ranks, minutes, brokers = draws.slowest_us.shape
    pool = np.sort(draws.slowest_us.transpose(1, 0, 2).reshape(minutes, ranks * brokers), axis=1)
    slower = draws.succeeded.sum(axis=1) // 100
    return np.take_along_axis(pool, ranks * brokers - 1 - slower[:, None], axis=1)[:, 0]


def _median(part: Part, leg: Leg, hour: int) -> Integers:
    """Of each broker-minute's successes; anything where there are none."""
    samples = part.samples_us(leg, hour).reshape(-1, ATTEMPTS)
    failed = part.leg(leg).failed[part.hour(hour)].reshape(-1, 1)
    rank = np.maximum((50 * (ATTEMPTS - failed) + 99) // 100, 1)
    return np.take_along_axis(samples, np.minimum(failed + rank, ATTEMPTS) - 1, axis=1)[:, 0]


def _null(where: NDArray[np.bool_], values: NDArray[Any]) -> NDArray[Any]:
    return np.ma.masked_array(values, where)
