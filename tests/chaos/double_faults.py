"""A second and a third broker fail during each kind of action: producers fail no more with it than without.

    python -m tests.chaos double_faults --json

On clusters of three and of six brokers, broker 2 is slow or hangs and `mitigate run` acts on it; in a second
run of the same faults nothing acts. Then broker 3 is killed or hangs, on six brokers broker 4 as well. A
producer with acks=all writes to partitions of three replicas and min.insync.replicas=2 all the time.
Finished scenarios are kept in a file, and the same command continues after them. Prints one JSON value.
Exits with 0 iff in each scenario the action was applied, and no larger share of records failed with it than
without it, of those that were sent over ten seconds after the last fault. Two runs send a different number of
records to the partitions that cannot be written: a percent of difference is none.
"""

import json
import tempfile
import time
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import click
from confluent_kafka import KafkaError, Message, Producer

from fleetgauge_core.detection import HealthState
from fleetgauge_core.runtime.shutdown import ShutdownFlag
from fleetgauge_core.tables import ActionKind
from fleetgauge_local.fleet import LocalFleet
from fleetgauge_local.layout import ClusterSpec
from fleetgauge_operations.mitigation.plan.limits import MitigationLimits
from tests.chaos._results import Results, results_option
from tests.chaos._streaming import log_progress
from tests.kafka.mitigation.testbed import MitigationTestbed, open_testbed, running_thread
from tests.waiting import let_pass, wait_until

PARTITIONS = 24
#: A record that is not acknowledged by then has failed, as for a client with a short deadline.
DELIVERY_S = 5
SETTLE_S = 10
#: A difference of shares that two runs of the same faults have.
TOLERANCE = 0.01
#: The controller completes a step, which may wait for brokers that do not answer.
ENDS_WITHIN_S = 300
OBSERVED_S = 60
ACTION_WITHIN_S = 120
CLUSTER = "mitigated"


@dataclass(frozen=True)
class Scenario:
    """An action on broker 2, and the faults of further brokers after it, as (kind, broker)."""

    brokers: int
    action: ActionKind
    faults: tuple[tuple[str, int], ...]

    @property
    def name(self) -> str:
        faults = ", ".join(f"{kind} {broker}" for kind, broker in self.faults)
        return f"{self.brokers} brokers, {self.action.value}, {faults}"

    @property
    def finding(self) -> HealthState:
        return HealthState.BROKER_DOWN if self.action is ActionKind.RESTART else HealthState.DEGRADED


SCENARIOS = tuple(
    Scenario(brokers, action, faults)
    for brokers, sequences in (
        (3, ((("kill", 3),), (("hang", 3),))),
        (6, ((("kill", 3),), (("kill", 3), ("kill", 4)), (("hang", 3), ("kill", 4)))),
    )
    for action in (ActionKind.DEMOTE, ActionKind.QUARANTINE_RESTART, ActionKind.RESTART)
    for faults in sequences
)


@dataclass
class TimedLoad:
    """A producer of small records, and what became of each: seconds of sending, whether it failed."""

    bootstrap: str
    topic: str
    outcomes: list[tuple[float, bool]] = field(default_factory=list)

    @contextmanager
    def running(self) -> Iterator["TimedLoad"]:
        with running_thread(self._produce):
            wait_until(lambda: bool(self.outcomes), ACTION_WITHIN_S, "the load")
            yield self

    def count(self, since_s: float) -> tuple[int, int]:
        """Return how many records that were sent since then failed, and how many there are."""
        failed = [has_failed for sent_s, has_failed in self.outcomes if sent_s >= since_s]
        return sum(failed), len(failed)

    def _produce(self, shutdown: ShutdownFlag) -> None:
        producer = Producer(
            {"bootstrap.servers": self.bootstrap, "linger.ms": 0, "delivery.timeout.ms": DELIVERY_S * 1000}
        )

        def record(error: KafkaError | None, _: Message, sent_s: float) -> None:
            self.outcomes.append((sent_s, error is not None))

        number = 0
        while not shutdown.wait(0.02):
            sent_s = time.monotonic()
            producer.produce(
                self.topic,
                bytes(2000),
                partition=number % PARTITIONS,
                on_delivery=lambda error, message, sent_s=sent_s: record(error, message, sent_s),
            )
            producer.poll(0)
            number += 1
        producer.flush(2 * DELIVERY_S)


def assign(brokers: int) -> list[list[int]]:
    """Return the replicas of each partition: every broker leads as many as the others."""
    return [[(first + shift) % brokers + 1 for shift in range(3)] for first in range(PARTITIONS)]


def run_scenario(
    scenario: Scenario, fleet: LocalFleet, telemetry: LocalFleet, folder: Path, with_action: bool
) -> dict[str, Any]:
    """Return the records that failed over ten seconds after the last fault, and all of that time."""
    folder.mkdir()
    with ExitStack() as stack:
        testbed = stack.enter_context(open_testbed(fleet, telemetry, folder))
        stack.callback(heal, fleet, scenario.brokers)
        topic = testbed.create_topic(*assign(scenario.brokers), **{"min.insync.replicas": "2"})
        modes = dict.fromkeys((kind.value for kind in (ActionKind.DEMOTE, ActionKind.RESTART)), "off")
        modes |= {ActionKind.QUARANTINE_RESTART.value: "off", scenario.action.value: "act"}
        testbed.update_fleet_file(mitigation=modes)
        load = stack.enter_context(TimedLoad(testbed.access.bootstrap, topic).running())
        if scenario.action is ActionKind.RESTART:
            fleet.fault("hang", CLUSTER, 2)
        else:
            fleet.fault("slow", CLUSTER, 2, delay_ms=20)
        testbed.publish_finding(2, scenario.finding)
        outcome = None
        if with_action:
            stack.enter_context(testbed.running_controller(MitigationLimits(), ENDS_WITHIN_S))
            wait_until(lambda: bool(read_outcomes(testbed)), ACTION_WITHIN_S, "the action")
            outcome = read_outcomes(testbed)[0]
        for kind, broker in scenario.faults:
            fleet.fault(kind, CLUSTER, broker)
            testbed.publish_finding(broker, HealthState.BROKER_DOWN, minutes_ago=0)
        last_fault_s = time.monotonic()
        let_pass(last_fault_s + SETTLE_S + OBSERVED_S)
        failed, sent = load.count(last_fault_s + SETTLE_S)
        outcomes = read_outcomes(testbed)
    return {"failed": failed, "sent": sent, "at_the_fault": outcome, "at_the_end": outcomes}


def is_right(line: Mapping[str, Any]) -> bool:
    """Return whether the action was applied, and failed no more than if nothing had acted."""
    shares = [line[label]["failed"] / line[label]["sent"] for label in ("without", "with")]
    return line["with"]["at_the_fault"] == "done" and shares[1] <= shares[0] + TOLERANCE


def read_outcomes(testbed: MitigationTestbed) -> list[str]:
    """Return the outcomes of the cases of broker 2 that have one."""
    cases = testbed.run_command("history")
    return [case["outcome"] for case in cases if case["broker"] == 2 and case["outcome"] != "begun"]


def heal(fleet: LocalFleet, brokers: int) -> None:
    for broker in range(1, brokers + 1):
        fleet.fault("heal", CLUSTER, broker)
    fleet.wait_ready()


@click.command()
@results_option("double_faults.jsonl")
@click.option("--only", default="", help="Run only scenarios whose name contains this text.")
@click.option("--json", "_as_json", is_flag=True, help="Accepted for uniformity: the result is JSON anyway.")
def main(results: Results, only: str, _as_json: bool) -> None:
    """Let a second and a third broker fail during each kind of action."""
    done = {line["scenario"]: line for line in results.read()}
    wanted = [scenario for scenario in SCENARIOS if only in scenario.name]
    with tempfile.TemporaryDirectory() as name, ExitStack() as stack:
        folder = Path(name)
        telemetry = stack.enter_context(LocalFleet(folder / "telemetry"))
        for brokers in sorted({scenario.brokers for scenario in wanted if scenario.name not in done}):
            with LocalFleet(folder / f"of-{brokers}", (ClusterSpec(CLUSTER, brokers=brokers),)) as fleet:
                for number, scenario in enumerate(wanted):
                    if scenario.brokers != brokers or scenario.name in done:
                        continue
                    line: dict[str, Any] = {"scenario": scenario.name}
                    for with_action in (False, True):
                        place = folder / f"{brokers}-{number}-{with_action}"
                        label = "with" if with_action else "without"
                        line[label] = run_scenario(scenario, fleet, telemetry, place, with_action)
                    done[scenario.name] = line
                    results.add(line)
                    log_progress(json.dumps(line))
    selected = [done[scenario.name] for scenario in wanted]
    wrong = [line for line in selected if not is_right(line)]
    click.echo(json.dumps({"scenarios": len(selected), "wrong": wrong, "table": selected}))
    raise SystemExit(bool(wrong))


if __name__ == "__main__":
    main()
