"""The watch's events of planted incidents."""

from datetime import timedelta
from itertools import chain

from fleetgauge_pipelines.simulation import Incident, Kind
from fleetgauge_pipelines.simulation.events import health_events
from tests.unit.pipelines.simulation.histories import WEEK, history


def _incidents() -> list[Incident]:
    fleet = history(clusters=6, minutes=6 * WEEK)
    return [incident for cluster in range(6) for incident in fleet.incidents(cluster)]


def test_a_hung_broker_is_named_within_ten_seconds_and_cleared_on_its_return() -> None:
    hung = [incident for incident in _incidents() if incident.kind is Kind.BROKER_HUNG]
    assert hung
    for incident in hung:
        events = health_events(incident)
        named, cleared = events[-2:]
        assert (named.to_state, cleared.to_state) == ("BROKER_DOWN", "HEALTHY")
        assert {one.to_state for one in events[:-2]} <= {"SUSPECT"}
        assert incident.start < named.at < incident.start + timedelta(seconds=10)
        assert incident.end < cleared.at < incident.end + timedelta(seconds=10)
        assert {(one.cluster_id, one.broker_id) for one in events} == {
            (incident.cluster_id, incident.brokers[0])
        }


def test_what_leaves_every_broker_answering_names_nobody() -> None:
    others = [incident for incident in _incidents() if incident.kind is not Kind.BROKER_HUNG]
    assert {incident.kind for incident in others} == set(Kind) - {Kind.BROKER_HUNG}
    assert not any(health_events(incident) for incident in others)


def test_every_event_has_an_id_of_its_own() -> None:
    events = list(chain.from_iterable(health_events(incident) for incident in _incidents()))
    assert len({event.event_id for event in events}) == len(events)
