"""The oracle's causes of bad minutes, in worked examples."""

from datetime import date
from typing import Any

import pytest

from tests.oracle.oracle import ClusterSettings, Operations, Row, Settings, Tables, evaluate
from tests.unit.oracle.conftest import LONG_AFTER, Bench
from tests.unit.oracle.test_corrections import _at, _correction, _of_broker

BAD = [200_000] * 100


def _action(kind: str, starts: float, ends: float | None, **more: Any) -> Row:
    span = {"starts": _at(starts), "ends": None if ends is None else _at(ends)}
    return {"kind": kind, "cluster_id": "c", "broker_id": None} | span | more


def _event(to_state: str, at: float, broker: int | None = 1, fingerprint: str = "f") -> Row:
    subject = {"cluster_id": "c", "broker_id": broker, "fingerprint": fingerprint}
    return subject | {"at": _at(at), "to_state": to_state}


def _cause(
    bench: Bench,
    *records: Row,
    corrections: tuple[Row, ...] = (),
    actions: tuple[Row, ...] = (),
    events: tuple[Row, ...] = (),
    changes: tuple[Row, ...] = (),
) -> str | None:
    """Return the cause of minute 5, which is bad unless other records are given."""
    evaluated = records or (bench.record(5, succeeded_us=BAD),)
    tables = bench.evaluate(*evaluated, operations=Operations(corrections, actions, events, changes))
    (row,) = (row for row in tables.cluster_minutes if row["minute"] == _at(5))
    cause: str | None = row["cause"]
    return cause


def test_a_minute_at_the_objective_or_without_measurement_has_no_cause(bench: Bench) -> None:
    roll = _action("roll", 0, 9)
    assert _cause(bench, bench.record(5, succeeded_us=[100_000] * 100), actions=(roll,)) is None
    assert _cause(bench, bench.record(4), bench.record(6), actions=(roll,)) is None


def test_a_bad_minute_without_a_possible_cause_is_unknown(bench: Bench) -> None:
    assert _cause(bench) == "unknown"
    assert _cause(bench, actions=(_action("election", 0, 9),), events=(_event("SUSPECT", 0),)) == "unknown"


def test_maintenance_is_a_correction_of_the_cluster_or_of_every_broker_over_the_objective(
    bench: Bench,
) -> None:
    records = [bench.record(5, broker=1), bench.record(5, broker=2, succeeded_us=BAD)]
    assert _cause(bench, *records, corrections=(_correction(5, 6),)) == "maintenance"
    assert _cause(bench, *records, corrections=(_of_broker(2, 5, 6),)) == "maintenance"
    assert _cause(bench, *records, corrections=(_of_broker(1, 5, 6),)) == "unknown"
    assert _cause(bench, *records, corrections=(_correction(5, 6, withdrawn_at=_at(0)),)) == "unknown"


def test_maintenance_causes_the_minute_in_which_it_begins_although_that_counts(bench: Bench) -> None:
    from_mid_minute = _correction(5.5, 7)
    assert _cause(bench, corrections=(from_mid_minute,)) == "maintenance"
    bad = bench.record(5, succeeded_us=BAD)
    (week,) = bench.evaluate(bad, operations=Operations((from_mid_minute,))).cluster_weeks
    assert (week["bad_minutes"], week["corrections"]) == (1, "")


def test_maintenance_of_one_broker_does_not_explain_another(bench: Bench) -> None:
    down = [
        bench.record(5, broker=1, succeeded_us=BAD),
        bench.record(5, broker=2, succeeded_us=[], failed=100),
    ]
    of_broker_1, of_broker_2 = _of_broker(1, 5, 6), _of_broker(2, 5, 6)
    assert (
        _cause(bench, *down, corrections=(of_broker_1,))
        == _cause(bench, *down, corrections=(of_broker_2,))
        == "unknown"
    )
    assert _cause(bench, *down, corrections=(of_broker_1, of_broker_2)) == "maintenance"


def test_the_active_cause_of_highest_precedence_is_chosen(bench: Bench) -> None:
    actions = [_action(kind, 0, 9) for kind in ("throttle", "reassignment", "roll")]
    kinds = ("PATH", "DEGRADED", "STORAGE_STALLED", "NETWORK_UNAVAILABLE", "BROKER_DOWN", "CLUSTER_DOWN")
    events = [_event(kind, 0, fingerprint=kind) for kind in kinds]
    corrections = [_correction(0, 9)]
    causes = []
    while (
        cause := _cause(bench, corrections=(*corrections,), actions=(*actions,), events=(*events,))
    ) != "unknown":
        causes.append(cause)
        corrections = [] if cause == "maintenance" else corrections
        actions = [action for action in actions if action["kind"] != cause]
        events = [event for event in events if event["to_state"] != ("PATH" if cause == "vantage" else cause)]
    assert causes == ["maintenance", "roll", *reversed(kinds[1:]), "reassignment", "throttle", "vantage"]


def test_an_action_is_a_cause_only_in_its_cluster_and_period(bench: Bench) -> None:
    assert _cause(bench, actions=(_action("roll", 0, 9, cluster_id="other"),)) == "unknown"
    assert _cause(bench, actions=(_action("roll", 0, 5),)) == "unknown"
    assert _cause(bench, actions=(_action("roll", 6, 9),)) == "unknown"
    assert _cause(bench, actions=(_action("roll", 0, None, broker_id=7),)) == "roll"


@pytest.mark.parametrize(
    ("kind", "starts", "ends", "is_cause"),
    [
        # Until a minute after its end, from ten seconds before it was named.
        ("BROKER_DOWN", 0, 4, False),
        ("BROKER_DOWN", 0, 4.1, True),
        ("BROKER_DOWN", 6.1, 9, True),
        ("BROKER_DOWN", 6.2, 9, False),
        # A slow broker is named after 75 s at most.
        ("DEGRADED", 0, 5, False),
        ("DEGRADED", 0, 5.1, True),
        ("DEGRADED", 7.2, 9, True),
        ("DEGRADED", 7.3, 9, False),
    ],
)
def test_a_finding_explains_the_minutes_that_its_broker_was_faulty(
    bench: Bench, kind: str, starts: float, ends: float, is_cause: bool
) -> None:
    events = (_event("HEALTHY", ends), _event(kind, starts))
    assert _cause(bench, events=events) == (kind if is_cause else "unknown")


def _change(kind: str, starts: float, ends: float, **more: Any) -> Row:
    times = {"at": _at(ends), "starts": _at(starts), "ends": _at(ends)}
    subject = {"cluster_id": "c", "broker_id": None, "segment": None, "segment_value": None}
    names = {"change_id": f"{kind} {starts}", "kind": kind, "phase": "happened", "evidence": "{}"}
    return names | subject | times | more


def _restart(starts: float, ends: float, broker: int = 1) -> Row:
    return _change("broker_restarted", starts, ends, broker_id=broker, evidence='{"orderly": true}')


def test_a_roll_explains_what_it_makes_of_its_broker_and_of_others_what_no_finding_explains(
    bench: Bench,
) -> None:
    assert _cause(bench, changes=(_restart(4.5, 5),)) == "roll"
    down = (_event("BROKER_DOWN", 4.6), _event("HEALTHY", 5.5))
    assert _cause(bench, changes=(_restart(4.5, 5),), events=down) == "roll"
    assert _cause(bench, changes=(_restart(4.5, 5, broker=2),), events=down) == "BROKER_DOWN"
    earlier = (_event("BROKER_DOWN", 2), _event("HEALTHY", 5.5))
    assert _cause(bench, changes=(_restart(4.5, 5),), events=earlier) == "BROKER_DOWN"
    just_before = (_event("BROKER_DOWN", 4.4), _event("HEALTHY", 5.5))
    assert _cause(bench, changes=(_restart(4.5, 5),), events=just_before) == "BROKER_DOWN"
    slow_before = (_event("DEGRADED", 4.4), _event("HEALTHY", 5.5))
    assert _cause(bench, changes=(_restart(4.5, 5),), events=slow_before) == "roll"
    crash = _change("broker_restarted", 4.5, 5, broker_id=1, evidence='{"orderly": false}')
    assert _cause(bench, changes=(crash,)) == "unknown"


def test_a_change_explains_its_subject_while_it_lasts_and_for_a_while_after(bench: Bench) -> None:
    assert _cause(bench, changes=(_change("throttle", 0, 4.5),)) == "throttle"
    assert _cause(bench, changes=(_change("throttle", 0, 4),)) == "unknown"
    deploy = _change("deploy", -9, -4.5)
    assert _cause(bench, changes=(deploy,)) == "change"
    assert _cause(bench, changes=(deploy, _change("reassignment", 0, 5))) == "reassignment"
    assert _cause(bench, changes=(deploy | {"broker_id": 1},)) == "change"
    assert _cause(bench, changes=(deploy | {"phase": "cancelled"},)) == "unknown"
    assert _cause(bench, changes=(_change("throttle", 0, 4.5, phase="cancelled"),)) == "throttle"
    assert _cause(bench, changes=(deploy | {"broker_id": 2},)) == "unknown"
    of_segment = deploy | {"cluster_id": None, "segment": "fleet", "segment_value": ""}
    assert _cause(bench, changes=(of_segment,)) == "change"
    assert _cause(bench, changes=(of_segment | {"segment": "region", "segment_value": "mars"},)) == "unknown"


def test_a_finding_ends_only_with_its_own_next_event(bench: Bench) -> None:
    opened = _event("BROKER_DOWN", 0)
    others = (_event("HEALTHY", 1, broker=2), _event("HEALTHY", 1, fingerprint="g"), _event("BROKER_DOWN", 2))
    assert _cause(bench, events=(opened, *others)) == "BROKER_DOWN"
    assert _cause(bench, events=(opened, *others, _event("DEGRADED", 3))) == "DEGRADED"


def test_a_late_agent_on_the_client_leg_is_cause_vantage(bench: Bench) -> None:
    bad = bench.record(5, succeeded_us=BAD)
    late = {"schedule_lag_p95_us": 100_001, "vantage": "late"}
    assert _cause(bench, bad, bench.record(5, **late)) == "vantage"
    assert _cause(bench, bad, bench.record(5, leg="leader", **late)) == "unknown"


def _two_clusters(bench: Bench) -> Tables:
    records = [
        bench.record(minute, cluster_id=cluster, succeeded_us=BAD)
        for cluster, minutes in (("c", 3), ("d", 2))
        for minute in range(minutes)
    ]
    settings = Settings((ClusterSettings("c", cloud="aws"), ClusterSettings("d")))
    operations = Operations((), (_action("roll", 0, 2),), ())
    return evaluate(records, settings, LONG_AFTER, operations)


def test_the_causes_of_a_week_count_its_bad_minutes(bench: Bench) -> None:
    causes = {row["cluster_id"]: row["causes"] for row in _two_clusters(bench).cluster_weeks}
    assert causes == {"c": {"roll": 2, "unknown": 1}, "d": {"unknown": 2}}


def test_burn_causes_sum_over_the_clusters_of_a_segment(bench: Bench) -> None:
    totals = {
        (row["segment"], row["segment_value"], row["cause"]): (row["bad_minutes"], row["clusters"])
        for row in _two_clusters(bench).burn_causes
        if row["segment"] != "tier"
    }
    assert totals == {
        ("fleet", "", "roll"): (2, 1),
        ("fleet", "", "unknown"): (3, 2),
        ("cloud", "aws", "roll"): (2, 1),
        ("cloud", "aws", "unknown"): (1, 1),
    }
    assert {row["week"] for row in _two_clusters(bench).burn_causes} == {date(2026, 3, 2)}
