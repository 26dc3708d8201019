"""Health events of simulated incidents."""

from datetime import timedelta
from itertools import chain

from fleetgauge_pipelines.simulation import IncidentKind, SimulatedIncident
from fleetgauge_pipelines.simulation.events import make_health_events
from tests.unit.pipelines.simulation.histories import WEEK, history


def _incidents() -> list[SimulatedIncident]:
    fleet = history(clusters=6, minutes=6 * WEEK)
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


def test_incidents_in_which_every_broker_answers_have_no_events() -> None:
    without_hang = [incident for incident in _incidents() if incident.kind is not IncidentKind.BROKER_HUNG]
    assert {incident.kind for incident in without_hang} == set(IncidentKind) - {IncidentKind.BROKER_HUNG}
    assert not any(make_health_events(incident) for incident in without_hang)


def test_event_ids_are_unique() -> None:
    events = list(chain.from_iterable(make_health_events(incident) for incident in _incidents()))
    assert len({event.event_id for event in events}) == len(events)
