"""Detection of slow brokers, by comparison with their peers and with their own past."""

import json
from collections.abc import Iterable, Sequence
from dataclasses import replace
from random import Random
from statistics import median_low

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fleetgauge_core.contract import (
    BrokerPulse,
    Leg,
    LegPulse,
    ProbePulse,
)
from fleetgauge_core.detection import (
    DEFAULT_THRESHOLDS,
    Finding,
    FleetHealth,
    HealthState,
    LatencyHistory,
    LatencyHistoryKey,
    find_changed_histories,
    fold_pulse,
    restore_fleet_health,
)
from fleetgauge_core.detection.slowness import LatencyQuantiles, measure_latencies
from tests.unit.core.detection.pulses import (
    broker,
    encode_and_parse,
    fold_pulses,
    hung,
    not_leading,
    pulse,
)

EVERY_S = 5
HOUR_S = 3_600


def with_latency(
    broker_id: int, p50_ms: float, p99_ms: float | None = None, succeeded: int = 25
) -> BrokerPulse:
    """A broker with these latencies on its leader leg in the last 15 s."""
    p50_us, p99_us = round(p50_ms * 1000), round((p99_ms or p50_ms) * 1000)
    leader = LegPulse(Leg.LEADER, succeeded, succeeded, 0, 0, None, 300, p50_us, p99_us)
    return broker(broker_id, leader=leader)


def healthy(broker_id: int) -> BrokerPulse:
    return with_latency(broker_id, 4, 12)


def history(
    of_broker_1: Sequence[BrokerPulse],
    peers: Sequence[BrokerPulse] = (healthy(2), healthy(3)),
    start_s: float = 0,
) -> list[ProbePulse]:
    """One pulse every 5 s."""
    return [pulse(start_s + EVERY_S * n, broker_pulse, *peers) for n, broker_pulse in enumerate(of_broker_1)]


def slow(seconds: float, p50_ms: float, p99_ms: float | None = None) -> list[BrokerPulse]:
    return [with_latency(1, p50_ms, p99_ms)] * round(seconds / EVERY_S)


def fast(seconds: float) -> list[BrokerPulse]:
    return [healthy(1)] * round(seconds / EVERY_S)


def alerts(findings: Iterable[Finding]) -> list[tuple[int | None, str]]:
    return [(finding.event.broker_id, finding.event.kind) for finding in findings if finding.is_alert]


def seconds_of(finding: Finding) -> float:
    return (finding.event.at - pulse(0).emitted_at).total_seconds()


# Alerts ------------------------------------------------------------------------


def test_brokers_that_are_all_equally_slow_raise_no_alert() -> None:
    assert fold_pulses(history(slow(600, 300), [with_latency(2, 280), with_latency(3, 320)]))[1] == []


def test_a_broker_that_is_slow_for_a_minute_raises_one_alert() -> None:
    _, findings = fold_pulses(history(fast(60) + slow(600, 50)))
    assert alerts(findings) == [(1, "DEGRADED")]
    assert seconds_of(findings[0]) - 60 <= 60


def test_slowness_of_less_than_a_minute_raises_no_alert() -> None:
    assert fold_pulses(history([*fast(60), *slow(45, 300), *fast(300)]))[1] == []


def test_an_alert_needs_both_three_times_the_peers_and_the_floor() -> None:
    assert fold_pulses(history(fast(60) + slow(600, 19.9, 90)))[1] == []
    assert (
        fold_pulses(
            history(fast(60) + slow(600, 50, 90), [with_latency(2, 17, 80), with_latency(3, 17, 80)])
        )[1]
        == []
    )


def test_a_slow_tail_in_most_windows_of_two_minutes_raises_an_alert() -> None:
    tail, normal = with_latency(1, 4, 200), healthy(1)
    mostly = [broker_pulse for turn in range(8) for broker_pulse in [normal if turn % 4 == 3 else tail] * 3]
    _, findings = fold_pulses(history(mostly))
    assert alerts(findings) == [(1, "DEGRADED")]
    assert json.loads(findings[0].event.evidence)["slow"] == "some"


@pytest.mark.parametrize(
    ("windows", "is_alert"),
    [
        ({"zone-a": 6}, True),
        ({"zone-a": 5}, False),
        ({"zone-a": 7, "zone-b": 5}, True),
        ({"zone-a": 6, "zone-b": 5}, False),
        ({"zone-a": 12, "zone-b": 4}, False),
        ({"zone-a": 12, "zone-b": 5, "zone-c": 4}, True),
        ({"zone-a": 12, "zone-b": 4, "zone-c": 5}, True),
        ({"zone-a": 12, "zone-b": 12, "zone-c": 0}, True),
        ({"zone-a": 12, "zone-b": 4, "zone-c": 4}, False),
    ],
)
def test_a_slow_tail_counts_over_all_vantages_and_not_on_one_path_alone(
    windows: dict[str, int], is_alert: bool
) -> None:
    def seen(vantage: str, turn: int) -> BrokerPulse:
        return with_latency(1, 4, 200) if turn < windows[vantage] else healthy(1)

    rounds = [
        pulse(EVERY_S * n, seen(vantage, n // 3), healthy(2), healthy(3), vantage=vantage)
        for n in range(36)
        for vantage in windows
    ]
    assert alerts(fold_pulses(rounds)[1]) == [(1, "DEGRADED")] * is_alert


def test_occasional_garbage_collections_raise_no_alert() -> None:
    spiky = [
        broker_pulse
        for turn in range(40)
        for broker_pulse in [with_latency(1, 4, 180) if turn % 3 == 0 else healthy(1)] * 3
    ]
    assert fold_pulses(history(spiky))[1] == []


def test_of_two_brokers_the_slow_one_raises_an_alert() -> None:
    assert alerts(fold_pulses(history(slow(120, 60), [healthy(2)]))[1]) == [(1, "DEGRADED")]


def test_a_single_broker_raises_an_alert_above_a_higher_floor() -> None:
    assert fold_pulses(history(slow(300, 99, 99), []))[1] == []
    assert alerts(fold_pulses(history(slow(120, 101), []))[1]) == [(1, "DEGRADED")]


def test_an_hour_of_naturally_higher_latency_becomes_the_baseline() -> None:
    """For instance a remote broker: 19 ms instead of 4, first below the floor and later above it."""
    remote = slow(1.1 * HOUR_S, 19, 40)
    state, findings = fold_pulses(history(remote))
    assert findings == []
    more = history(slow(300, 55, 90), start_s=1.1 * HOUR_S)
    assert fold_pulses(more, state)[1] == []
    assert alerts(fold_pulses(more)[1]) == [(1, "DEGRADED")]
    much_more = history(slow(300, 60, 200), start_s=1.1 * HOUR_S)
    assert alerts(fold_pulses(much_more, state)[1]) == [(1, "DEGRADED")]


def test_latency_that_was_high_from_the_start_raises_an_alert_only_above_a_higher_floor() -> None:
    random = Random(3)
    around_the_floor = [with_latency(1, random.uniform(17, 26)) for _ in range(round(HOUR_S / EVERY_S))]
    assert fold_pulses(history(around_the_floor))[1] == []
    assert fold_pulses(history(slow(HOUR_S, 49)))[1] == []
    assert alerts(fold_pulses(history(slow(120, 51)))[1]) == [(1, "DEGRADED")]


def test_after_a_minute_of_normal_latency_the_lower_floor_applies() -> None:
    assert alerts(fold_pulses(history(fast(60) + slow(120, 21)))[1]) == [(1, "DEGRADED")]
    assert alerts(fold_pulses(history(fast(60) + slow(120, 20)))[1]) == []


def test_a_slow_start_does_not_raise_the_floor_once_latency_was_lower() -> None:
    warming_up = history(slow(120, 15) + fast(60) + slow(120, 25))
    assert alerts(fold_pulses(warming_up)[1]) == [(1, "DEGRADED")]


def test_slow_rounds_do_not_become_the_baseline() -> None:
    state, findings = fold_pulses(history(fast(1.1 * HOUR_S) + slow(2 * HOUR_S, 60)))
    assert [finding.is_alert for finding in findings] == [True]
    assert [open_state for _, open_state in state.open_findings()] == [HealthState.DEGRADED]


def test_too_few_probes_raise_no_alert() -> None:
    assert fold_pulses(history([with_latency(1, 300, succeeded=9)] * 60))[1] == []
    assert fold_pulses(history([not_leading(1)] * 60))[1] == []


def test_a_hung_broker_is_down_and_not_degraded() -> None:
    hangs = [hung(EVERY_S * n) for n in range(1, 60)]
    assert alerts(fold_pulses(history([*fast(60), *hangs]))[1]) == [(1, "BROKER_DOWN")]


def test_late_probes_of_a_broker_that_was_down_do_not_make_it_degraded() -> None:
    client, leader = hung(8).legs
    down = replace(hung(8), legs=(client, replace(leader, p50_us=2_000_000, p99_us=5_000_000)))
    turns = [down, down, with_latency(1, 2_000, 5_000), with_latency(1, 2_000, 5_000)] * 12
    assert set(alerts(fold_pulses(history([*fast(60), *turns]))[1])) == {(1, "BROKER_DOWN")}


def test_most_vantages_must_measure_the_slowness() -> None:
    def alerts_if_slow_from(*slow_from: str) -> list[tuple[int | None, str]]:
        pulses = [
            pulse(
                EVERY_S * n,
                with_latency(1, 60) if vantage in slow_from else healthy(1),
                healthy(2),
                healthy(3),
                vantage=vantage,
            )
            for n in range(40)
            for vantage in ("zone-a", "zone-b", "zone-c")
        ]
        return alerts(fold_pulses(pulses)[1])

    assert alerts_if_slow_from("zone-a") == []
    assert alerts_if_slow_from("zone-a", "zone-c") == [(1, "DEGRADED")]


def test_a_day_of_realistic_variation_raises_no_alert() -> None:
    """Medians around 3 ms, tails up to 90 ms, and a pause of up to 300 ms in 5% of the windows."""
    random = Random(7)

    def window(broker_id: int) -> BrokerPulse:
        p50_ms = 3 * random.lognormvariate(0, 0.5)
        pause_ms = random.uniform(100, 300) if random.random() < 0.05 else 0
        return with_latency(broker_id, p50_ms, max(p50_ms * random.uniform(2, 10), pause_ms))

    _, findings = fold_pulses(pulse(15 * n, *map(window, range(5))) for n in range(24 * 240))
    assert findings == []


# Clearing ------------------------------------------------------------------------


def test_the_alert_clears_a_minute_after_the_last_window_with_slow_probes() -> None:
    """A window covers 15 s, so the first window without slow probes is 15 s after the last slow probe."""
    _, findings = fold_pulses(history(slow(300, 60) + fast(300)))
    last_slow_s = 300 - EVERY_S
    assert [finding.is_cleared for finding in findings] == [False, True]
    assert seconds_of(findings[1]) - last_slow_s == 65
    assert findings[0].event.fingerprint == findings[1].event.fingerprint


def test_the_alert_of_a_slow_tail_clears_later() -> None:
    tail = [with_latency(1, 4, 200)] * 60
    between = [*fast(45), with_latency(1, 4, 200)]
    _, findings = fold_pulses(history([*tail, *between, *between, *fast(120)]))
    assert [finding.is_cleared for finding in findings] == [False, True]
    assert seconds_of(findings[1]) == 300 + 100 + 60


def come_and_go(times: int, slow_s: float, well_s: float) -> list[BrokerPulse]:
    """Return a broker that is slow and well in turn, and then well for ten minutes."""
    return [*(slow(slow_s, 560, 1_100) + fast(well_s)) * times, *fast(600)]


@pytest.mark.parametrize(("slow_s", "well_s"), [(60, 30), (90, 45), (120, 45)])
def test_a_broker_that_is_well_for_moments_only_has_one_alert(slow_s: float, well_s: float) -> None:
    _, findings = fold_pulses(history(fast(300) + come_and_go(6, slow_s, well_s)))
    assert [finding.is_alert for finding in findings] == [True, False]


def test_a_broker_that_comes_and_goes_has_two_alerts_and_the_second_lasts_the_episode() -> None:
    pulses = history(fast(300) + come_and_go(6, 90, 120))
    _, findings = fold_pulses(pulses)
    assert [finding.is_alert for finding in findings] == [True, False, True, False]
    counts = [json.loads(finding.event.evidence)["episode_alerts"] for finding in findings]
    assert counts == [1, 1, 2, 2]
    last_slow_s = 300 + 6 * 210 - 120 - EVERY_S
    assert seconds_of(findings[3]) - last_slow_s == 305


def test_a_restarted_watch_knows_the_episode() -> None:
    pulses = history(fast(300) + come_and_go(6, 90, 120))
    half = (300 + 210) // EVERY_S
    _, before = fold_pulses(pulses[:half])
    state = restore_fleet_health(encode_and_parse(before))
    _, after = fold_pulses(pulses[half:], state)
    assert [finding.is_alert for finding in (*before, *after)] == [True, False, True, False]


def test_alerts_a_quarter_of_an_hour_apart_are_episodes_of_their_own() -> None:
    _, findings = fold_pulses(history(fast(300) + come_and_go(2, 120, 900)))
    assert [finding.is_alert for finding in findings] == [True, False, True, False]
    assert [json.loads(finding.event.evidence)["episode_alerts"] for finding in findings] == [1] * 4


def test_a_broker_without_measurements_keeps_its_alert() -> None:
    state, _ = fold_pulses(history(slow(120, 60)))
    state, findings = fold_pulses(history([not_leading(1)] * 60, start_s=120), state)
    assert findings == []
    assert len(state.open_findings()) == 1


def test_a_restarted_watch_does_not_repeat_the_alert_and_clears_it() -> None:
    _, before = fold_pulses(history(slow(120, 60)))
    state = restore_fleet_health(encode_and_parse(before))
    _, findings = fold_pulses(history(slow(120, 60) + fast(120), start_s=120), state)
    assert [finding.is_cleared for finding in findings] == [True]


def test_a_restarted_watch_restores_the_latency_histories() -> None:
    """At 60 ms, a broker without peers is slow only in comparison with its own last hour."""
    state, histories = FleetHealth(), dict[LatencyHistoryKey, LatencyHistory]()
    for probe_pulse in history([with_latency(1, 4)] * round(HOUR_S / EVERY_S), peers=()):
        before, (state, _) = state, fold_pulse(state, probe_pulse)
        histories |= find_changed_histories(before, state, probe_pulse)
    slow_pulses = history(slow(120, 60), peers=(), start_s=HOUR_S)
    for start, is_alert in (
        (state, [True]),
        (restore_fleet_health([], histories), [True]),
        (FleetHealth(), []),
    ):
        assert [finding.is_alert for finding in fold_pulses(slow_pulses, start)[1]] == is_alert


# For all histories ---------------------------------------------------------------

_LATENCIES_US = st.tuples(st.integers(1_000, 400_000), st.integers(0, 400_000))


@given(st.lists(_LATENCIES_US, min_size=1, max_size=9))
def test_the_peers_latency_is_the_median_of_the_other_brokers(latencies_us: list[tuple[int, int]]) -> None:
    brokers = [with_latency(number, a / 1000, (a + b) / 1000) for number, (a, b) in enumerate(latencies_us)]
    measured = measure_latencies(pulse(0, *brokers), DEFAULT_THRESHOLDS)
    for number, (a, b) in enumerate(latencies_us):
        others = [pair for other, pair in enumerate(latencies_us) if other != number]
        assert measured[number].measured == LatencyQuantiles(a, a + b)
        expected = (
            LatencyQuantiles(median_low(a for a, _ in others), median_low(a + b for a, b in others))
            if others
            else None
        )
        assert measured[number].peers == expected


@given(st.lists(st.lists(st.sampled_from([4, 15, 50, 300]), min_size=3, max_size=3), max_size=60))
@settings(deadline=None)
def test_a_degraded_broker_was_slower_than_its_peers_in_half_of_the_last_two_minutes(
    p50s_ms: list[list[int]],
) -> None:
    pulses = [
        pulse(15 * n, *(with_latency(number, broker_pulse) for number, broker_pulse in enumerate(of_brokers)))
        for n, of_brokers in enumerate(p50s_ms)
    ]
    _, findings = fold_pulses(pulses)
    for finding in findings:
        if finding.is_alert and finding.event.broker_id is not None:
            last = p50s_ms[: round(seconds_of(finding) / 15) + 1][-8:]
            slower = sum(
                of_brokers[finding.event.broker_id]
                > 3 * min(peer_ms for n, peer_ms in enumerate(of_brokers) if n != finding.event.broker_id)
                for of_brokers in last
            )
            assert slower >= 4
