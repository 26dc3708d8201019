"""Health events of simulated incidents."""

from datetime import timedelta
from itertools import chain

from fleetgauge_pipelines.simulation import IncidentKind, SimulatedIncident
from fleetgauge_pipelines.simulation.events import make_health_events
from tests.unit.pipelines.simulation.histories import WEEK, history


def _incidents() -> list[SimulatedIncident]:
    fleet = history(clusters=6, minutes=12 * WEEK)
    return [incident for cluster in range(6) for incident in fleet.incidents(cluster)]


def test_a_hung_broker_is_reported_within_ten_seconds_and_cleared_on_its_return() -> None:
    hung = [incident for incident in _incidents() if incident.kind is IncidentKind.BROKER_HUNG]
    assert hung
    for incident in hung:
        events = make_health_events(incident)
        reported, cleared = events[-2:]
        assert (reported.to_state, cleared.to_state) == ("BROKER_DOWN", "HEALTHY")
        assert {event.to_state for event in events[:-2]} <= {"SUSPECT"}
        assert incident.start < reported.at < incident.start + timedelta(seconds=10)
        assert incident.end < cleared.at < incident.end + timedelta(seconds=10)
        assert {(event.cluster_id, event.broker_id) for event in events} == {
            (incident.cluster_id, incident.brokers[0])
        }


def test_a_slow_broker_is_reported_after_a_minute_and_cleared_after_its_end() -> None:
    slow = [incident for incident in _incidents() if incident.kind is IncidentKind.BROKER_SLOW]
    assert slow
    for incident in slow:
        reported, cleared = make_health_events(incident)
        assert (reported.to_state, cleared.to_state) == ("DEGRADED", "HEALTHY")
        assert timedelta(seconds=55) < reported.at - incident.start <= timedelta(seconds=75)
        assert timedelta(minutes=1) < cleared.at - incident.end < timedelta(minutes=20)
        assert (reported.cluster_id, reported.broker_id) == (incident.cluster_id, incident.brokers[0])


def test_incidents_without_a_faulty_broker_have_no_events() -> None:
    of_brokers = {IncidentKind.BROKER_HUNG, IncidentKind.BROKER_SLOW}
    others = [incident for incident in _incidents() if incident.kind not in of_brokers]
    assert {incident.kind for incident in others} == set(IncidentKind) - of_brokers
    assert not any(make_health_events(incident) for incident in others)


def test_event_ids_are_unique() -> None:
    events = list(chain.from_iterable(make_health_events(incident) for incident in _incidents()))
    assert len({event.event_id for event in events}) == len(events)
