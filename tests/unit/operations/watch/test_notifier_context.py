"""Leadership is confirmed before sending, and less often before results are recorded."""

from fleetgauge_operations.watch.notifier_context import LeadershipGate

SECOND_NS = 1_000_000_000


class StubLeadership:
    """A leadership that can be lost; ``checks`` counts how often it was confirmed."""

    def __init__(self) -> None:
        self.is_held, self.checks, self.now_ns = True, 0, 0

    def confirm(self) -> bool:
        self.checks += 1
        return self.is_held

    def gate(self) -> LeadershipGate:
        return LeadershipGate(self.confirm, lambda: self.now_ns)


def test_a_recent_confirmation_suffices_to_record_results() -> None:
    """If the coordinator is down each confirmation takes seconds: minutes for many findings."""
    leadership = StubLeadership()
    gate = leadership.gate()
    assert gate.confirm()
    leadership.now_ns = 4 * SECOND_NS
    assert all(gate.confirm_unless_recent() for _ in range(200))
    assert leadership.checks == 1


def test_a_paused_process_confirms_again_and_records_nothing_once_another_one_leads() -> None:
    leadership = StubLeadership()
    gate = leadership.gate()
    assert gate.confirm()
    leadership.now_ns, leadership.is_held = 60 * SECOND_NS, False
    assert not gate.confirm_unless_recent()
    assert not gate.confirm_unless_recent()
    assert not gate.confirm()


def test_leadership_is_confirmed_each_time_before_sending() -> None:
    leadership = StubLeadership()
    gate = leadership.gate()
    assert gate.confirm_unless_recent()
    assert gate.confirm()
    assert gate.confirm()
    assert leadership.checks == 3
