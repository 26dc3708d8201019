"""Each alert fires for what its runbook names, also of series that are NaN, missing or stale."""

import subprocess

import pytest
import yaml

from tests.deployment.alert_cases import CASES, HEALTHY_ALERTS, WITHOUT_PROCESS, missing_process_tests
from tests.deployment.alert_series import (
    END_S,
    HEALTHY,
    NOT_A_NUMBER,
    STEP_S,
    AlertTest,
    Values,
    change,
    constant,
    healthy_fleet,
    is_missing,
    now,
    take_over,
    with_labels,
)
from tests.deployment.manifests import load_document
from tests.deployment.metrics import RULES, load_alerts

PULSES_OF_B = 'fleetgauge_watch_pulse_timestamp_seconds{cluster="payments",vantage="b"}'
FAILURES = 'fleetgauge_quality_failures_total{expectation="availability_max"}'
RESTART_S = 10 * 60
ENTIRE_TEST = dict.fromkeys(range(0, END_S + 1, STEP_S), HEALTHY_ALERTS)
#: No watch receives pulses for a moment.
ENTIRE_DEPLOYMENT = ENTIRE_TEST | {RESTART_S: frozenset[str]()}


def restart(process: str, *, instance: str, down_s: int) -> dict[str, Values]:
    """Return the series of a process that restarts after 10 minutes as an instance, with counters at 0."""
    up_s = RESTART_S + down_s
    series = {name: change(RESTART_S, values, is_missing) for name, values in HEALTHY[process].items()}
    for name, values in HEALTHY[process].items():
        if name.startswith("process_start"):
            values = constant(up_s)
        elif name.startswith("fleetgauge_batch_timestamp"):
            # The first batch takes three minutes.
            values = change(up_s + 180, NOT_A_NUMBER, now)
        elif "_total{" in name:
            values = restart_counter(values, up_s)
        renamed = name.replace(f'"{process}"', f'"{instance}"')
        series[renamed] = change(up_s, series.get(renamed, is_missing), values)
    return series


def restart_counter(values: Values, up_s: int) -> Values:
    """Return a counter that counts from 0 at a second what ``values`` count from then on."""
    return lambda second: (values(second) or 0) - (values(up_s) or 0)


def restart_all(suffix: str) -> dict[str, Values]:
    return {
        name: values
        for process in HEALTHY
        for name, values in restart(process, instance=process + suffix, down_s=30).items()
    }


def hide(from_s: int, until_s: int) -> dict[str, Values]:
    """Return the series of a healthy fleet that Prometheus did not scrape for a while."""

    def hidden(values: Values) -> Values:
        return lambda second: None if from_s <= second < until_s else values(second)

    return {name: hidden(values) for name, values in healthy_fleet().items()}


def count_before_the_first_scrape(process: str, selector: str, appears_s: int) -> dict[str, Values]:
    """Return the series of a process that restarts and counts as far as before, unseen by Prometheus."""
    name = with_labels(selector, process)
    counter = change(RESTART_S, constant(1), change(appears_s, is_missing, constant(1)))
    return restart(process, instance=process, down_s=60) | {name: counter}


def first_agent_alternates() -> dict[str, Values]:
    """Return the series of an agent whose cluster is unreachable for one reason or another."""

    def every_other_step(second: int, first: int) -> float | None:
        return 1 if second >= RESTART_S and (second // STEP_S) % 2 == first else None

    return {
        with_labels(
            f'fleetgauge_agent_cluster_unreachable{{cluster="orders",reason="{reason}"}}', "agent-a"
        ): lambda second, first=first: every_other_step(second, first)
        for first, reason in enumerate(("authentication", "no_answer"))
    }


HEALTHY_TESTS = (
    AlertTest("nothing happens", healthy_fleet(), ENTIRE_TEST),
    AlertTest("a deployment restarts all processes", healthy_fleet(restart_all("")), ENTIRE_DEPLOYMENT),
    AlertTest("a deployment replaces all pods", healthy_fleet(restart_all("-2")), ENTIRE_DEPLOYMENT),
    AlertTest("the standby takes over", healthy_fleet(take_over(RESTART_S)), ENTIRE_TEST),
    AlertTest(
        "Prometheus was down for 20 minutes",
        hide(RESTART_S, 30 * 60),
        {second: HEALTHY_ALERTS for second in ENTIRE_TEST if second < RESTART_S or second > 30 * 60},
    ),
    AlertTest(
        "a cluster is removed from the fleet file",
        {
            name: change(RESTART_S, values, is_missing) if 'cluster="orders"' in name else values
            for name, values in healthy_fleet().items()
        },
        ENTIRE_TEST,
    ),
    AlertTest(
        "a cluster is unreachable for three minutes",
        healthy_fleet(
            {
                with_labels(
                    'fleetgauge_agent_cluster_unreachable{cluster="orders",reason="no_answer"}', "agent-a"
                ): change(RESTART_S, is_missing, change(RESTART_S + 180, constant(1), is_missing))
            }
        ),
        ENTIRE_TEST,
    ),
    AlertTest(
        "an agent that starts sends what waited since it ended",
        healthy_fleet(
            {
                with_labels("fleetgauge_agent_spool_oldest_timestamp_seconds", "agent-a"): change(
                    30 * 60, NOT_A_NUMBER, change(30 * 60 + 60, constant(60), NOT_A_NUMBER)
                )
            }
        ),
        ENTIRE_TEST,
    ),
)

FAULT_TESTS = (
    AlertTest(
        "a vantage stays silent when another watch takes over",
        healthy_fleet(
            take_over(RESTART_S),
            {
                with_labels(PULSES_OF_B, "watch-a"): change(
                    RESTART_S, change(300, now, constant(300)), is_missing
                ),
                with_labels(PULSES_OF_B, "watch-b"): change(RESTART_S, is_missing, constant(300)),
            },
        ),
        dict.fromkeys(range(420, 40 * 60, 60), HEALTHY_ALERTS | {"AgentSilent"}),
    ),
    AlertTest(
        "a cluster is unreachable for alternating reasons",
        healthy_fleet(first_agent_alternates()),
        {RESTART_S + 240: HEALTHY_ALERTS, RESTART_S + 360: HEALTHY_ALERTS | {"ClusterUnreachable"}},
    ),
    *(
        AlertTest(
            f"{alert} after a restart with the same count",
            healthy_fleet(count_before_the_first_scrape(process, selector, RESTART_S + 90)),
            {
                RESTART_S - 30: HEALTHY_ALERTS,
                RESTART_S + 240: HEALTHY_ALERTS | {alert},
                35 * 60: HEALTHY_ALERTS,
            },
        )
        for alert, process, selector in (
            ("QualityGateFailed", "stream", FAILURES),
            ("QuarantineGrowing", "stream", 'fleetgauge_records_total{fate="quarantined"}'),
            (
                "TopicRecordsLost",
                "stream",
                'fleetgauge_topic_records_lost_total{cluster="telemetry",topic="probe-minutes"}',
            ),
            (
                "NotificationsFailing",
                "watch-b",
                'fleetgauge_notifications_total{notifier="oncall",outcome="failed"}',
            ),
        )
    ),
    AlertTest(
        "an expectation fails in the first batch, long after the restart",
        healthy_fleet(
            restart("stream", instance="stream", down_s=60),
            {
                with_labels("fleetgauge_batch_timestamp_seconds", "stream"): now,
                with_labels(FAILURES, "stream"): change(
                    RESTART_S, constant(1), change(30 * 60, is_missing, constant(1))
                ),
            },
        ),
        {28 * 60: HEALTHY_ALERTS, 35 * 60: HEALTHY_ALERTS | {"QualityGateFailed"}},
    ),
)

TESTS = (
    *(test for case in CASES for test in case.tests()),
    *missing_process_tests(),
    *HEALTHY_TESTS,
    *FAULT_TESTS,
)


@pytest.fixture(scope="module")
def objections(promtool: str, tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """What promtool objects to, by test; empty where exactly the expected alerts fire."""
    folder = tmp_path_factory.mktemp("alerts")
    for number, test in enumerate(TESTS):
        document = {
            "rule_files": [str(RULES)],
            "evaluation_interval": f"{STEP_S}s",
            "group_eval_order": [group["name"] for group in load_document(RULES)["groups"]],
            "tests": [test.document()],
        }
        (folder / f"{number}.yml").write_text(yaml.safe_dump(document), encoding="utf-8")
    files = [f"{number}.yml" for number in range(len(TESTS))]
    result = subprocess.run(
        [promtool, "test", "rules", *files],
        cwd=folder,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=300,
    )
    # It names each file, and then what is wrong with it.
    _, *answers = result.stdout.split("Unit Testing:  ")
    partitioned = (answer.partition(".yml") for answer in answers)
    return {TESTS[int(number)].name: objection.strip() for number, _, objection in partitioned}


@pytest.mark.parametrize("name", [test.name for test in TESTS])
def test_exactly_the_expected_alerts_fire(name: str, objections: dict[str, str]) -> None:
    assert objections[name] == "SUCCESS"


def test_every_alert_has_its_series_and_the_reason_if_it_ignores_nan() -> None:
    """A new alert needs a line in the table, which tests it with series that are NaN, missing and stale."""
    assert sorted(f"Fleetgauge{case.alert}" for case in CASES) == sorted(
        alert["alert"] for alert in load_alerts()
    )
    assert {case.process for case in CASES} == set(WITHOUT_PROCESS)
