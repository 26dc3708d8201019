"""A watch that starts restores every kind of alert of an earlier one."""

import pytest

from fleetgauge_core.detection import (
    FindingSubject,
    HealthCondition,
    HealthState,
    restore_burn_state,
    restore_fleet_health,
)
from fleetgauge_core.detection.finding import build_finding
from tests.unit.core.detection.pulses import NOON

OF_BROKERS = {HealthCondition.BROKER_DOWN, HealthCondition.DEGRADED}
OF_VANTAGES = {HealthCondition.PATH, HealthCondition.VANTAGE_ILL}


def subject_of(condition: HealthCondition) -> FindingSubject:
    return FindingSubject(
        "orders",
        condition,
        broker_id=2 if condition in OF_BROKERS else None,
        vantage="zone-a" if condition in OF_VANTAGES else None,
        target_broker_id=2 if condition is HealthCondition.PATH else None,
    )


@pytest.mark.parametrize("state", [state for state in HealthState if state.is_alert])
def test_every_kind_of_alert_is_open_again_after_a_restart(state: HealthState) -> None:
    subject = subject_of(state.condition)
    finding = build_finding(subject, HealthState.HEALTHY, state, NOON, {"brokers": [2], "slow": "most"})
    restored = (
        *restore_fleet_health([finding]).open_findings(),
        *restore_burn_state([finding], {}).open_findings(),
    )
    assert restored == ((subject, state),)
