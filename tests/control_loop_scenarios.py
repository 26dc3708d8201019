"""What the control loop of mitigation does, as scenarios that any cluster must pass.

tests/unit runs them on a cluster in memory, tests/kafka on real brokers.
"""

from collections.abc import Set
from datetime import timedelta
from typing import Protocol

from fleetgauge_core.detection import HealthState
from fleetgauge_core.metadata import TopicPartition
from fleetgauge_core.tables import ActionKind, ActionOutcome
from fleetgauge_operations.actions.plan.case import ActionCase
from fleetgauge_operations.mitigation.plan.limits import DEFAULT_LIMITS
from fleetgauge_operations.mitigation.plan.policy import AUTHOR

_MINUTE = timedelta(minutes=1)


class ControlledCluster(Protocol):
    """Brokers 1 to 3, of which broker 2 leads partitions, with the control loop of mitigation."""

    def open_alert(self, broker_id: int, state: HealthState = HealthState.DEGRADED) -> None:
        """Open an alert that is five minutes old."""

    def clear_alert(self, broker_id: int) -> None:
        """Clear the alert of a broker now."""

    def set_modes(self, **modes: str) -> None:
        """Set the modes of actions, as `mitigation` in the fleet file."""

    def advance(self, duration: timedelta) -> None:
        """Move the clock of the control loop."""

    def take_next_step(self) -> ActionCase | None:
        """Run the control loop once."""

    def led_by(self, broker_id: int) -> Set[TopicPartition]:
        """Return the partitions that a broker leads."""

    def interrupt(self, case: ActionCase) -> None:
        """Store a case as if its process had been killed during the action."""

    def undo(self, case_id: str, reason: str) -> ActionCase:
        """Undo an action as an operator."""

    def read_cases(self) -> list[ActionCase]:
        """Return all cases by start time."""


class ControlLoopScenarios:
    """Scenarios; a subclass has a fixture ``cluster``."""

    def test_a_degraded_broker_is_demoted_and_leads_again_once_it_is_healthy(
        self, cluster: ControlledCluster
    ) -> None:
        led_before = cluster.led_by(2)
        demotion = _demote_broker_2(cluster)
        assert (demotion.kind, demotion.outcome, demotion.author) == (
            ActionKind.DEMOTE,
            ActionOutcome.DONE,
            AUTHOR,
        )
        assert led_before
        assert not cluster.led_by(2)
        cluster.clear_alert(2)
        assert cluster.take_next_step() is None
        cluster.advance(DEFAULT_LIMITS.undo_after + _MINUTE)
        undone = cluster.take_next_step()
        assert undone is not None
        assert (undone.case_id, undone.outcome) == (demotion.case_id, ActionOutcome.UNDONE)
        assert cluster.led_by(2) == led_before
        assert cluster.take_next_step() is None

    def test_an_action_in_advise_mode_is_proposed_once_and_resolved_with_its_alert(
        self, cluster: ControlledCluster
    ) -> None:
        cluster.set_modes(demote="advise")
        cluster.open_alert(2)
        led_before = cluster.led_by(2)
        advice = cluster.take_next_step()
        assert advice is not None
        assert (advice.outcome, advice.ended) == (ActionOutcome.ADVISED, None)
        assert cluster.take_next_step() is None
        cluster.clear_alert(2)
        resolved = cluster.take_next_step()
        assert resolved is not None
        assert (resolved.case_id, resolved.ended is not None) == (advice.case_id, True)
        assert cluster.take_next_step() is None
        assert cluster.led_by(2) == led_before

    def test_with_two_unhealthy_brokers_the_refusal_of_each_is_reported_once(
        self, cluster: ControlledCluster
    ) -> None:
        cluster.set_modes(demote="act")
        cluster.open_alert(2)
        cluster.open_alert(3)
        led_before = cluster.led_by(2)
        steps = [cluster.take_next_step() for _ in range(3)]
        refusals = {(step.broker_id, step.outcome, step.refused_by) for step in steps if step}
        assert refusals == {
            (2, ActionOutcome.REFUSED, ("second_sick",)),
            (3, ActionOutcome.REFUSED, ("second_sick",)),
        }
        assert steps[2] is None
        assert cluster.led_by(2) == led_before

    def test_an_interrupted_action_fails_and_blocks_the_cluster_until_it_is_undone(
        self, cluster: ControlledCluster
    ) -> None:
        led_before = cluster.led_by(2)
        demotion = _demote_broker_2(cluster)
        cluster.interrupt(demotion)
        failed = cluster.take_next_step()
        assert failed is not None
        assert (failed.case_id, failed.outcome, failed.explanations[-1]) == (
            demotion.case_id,
            ActionOutcome.FAILED,
            "interrupted",
        )
        cluster.clear_alert(2)
        cluster.open_alert(3)
        refused = cluster.take_next_step()
        assert refused is not None
        assert (refused.outcome, "circuit_open" in refused.refused_by) == (ActionOutcome.REFUSED, True)
        cluster.clear_alert(3)
        assert cluster.undo(demotion.case_id, "repaired").outcome is ActionOutcome.UNDONE
        assert cluster.led_by(2) == led_before

    def test_an_action_that_an_operator_undoes_during_the_alert_is_not_repeated(
        self, cluster: ControlledCluster
    ) -> None:
        demotion = _demote_broker_2(cluster)
        assert cluster.undo(demotion.case_id, "an experiment").outcome is ActionOutcome.UNDONE
        cluster.advance(DEFAULT_LIMITS.min_interval + _MINUTE)
        assert cluster.take_next_step() is None
        assert [case.outcome for case in cluster.read_cases()] == [ActionOutcome.UNDONE]


def _demote_broker_2(cluster: ControlledCluster) -> ActionCase:
    """Have the control loop demote broker 2 for an alert; return the case."""
    cluster.set_modes(demote="act")
    cluster.open_alert(2)
    demotion = cluster.take_next_step()
    assert demotion is not None
    return demotion
