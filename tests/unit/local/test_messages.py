from dataclasses import asdict
from pathlib import Path

import pytest
from pydantic import TypeAdapter

from fleetgauge_local.errors import NotReadyError
from fleetgauge_local.fleet import _ready, _settled, _summary
from fleetgauge_local.messages import (
    Answer,
    BrokerState,
    BrokerStatus,
    ClusterStatus,
    FleetStatus,
    MirrorFault,
    MirrorState,
    MirrorStatus,
    Request,
)


def status(broker: BrokerState, *mirrors: MirrorState) -> FleetStatus:
    one = BrokerStatus(1, "z1", "127.0.0.1:20000", broker, 1, 100, 0, 1, False)
    return FleetStatus(
        Path("fleet"),
        2,
        broker == "up" and set(mirrors) <= {"up"},
        (ClusterStatus("north", one.address, (one,)),),
        tuple(MirrorStatus(f"all-{n}", ("north",), state, 3, 200) for n, state in enumerate(mirrors)),
    )


@pytest.mark.parametrize(
    "said",
    [
        Request("fault", "hang", mirror="north-all", for_s=60),
        Answer(mirror_fault=MirrorFault("north-all", "kill", "2026-03-02T10:00:00.000Z")),
        Answer(status=status("up", "up", "waiting")),
    ],
)
def test_what_is_said_of_mirrors_is_understood_at_the_other_end(said: Request | Answer) -> None:
    adapter = TypeAdapter(type(said))
    assert adapter.validate_json(adapter.dump_json(said)) == said


def test_a_mirrors_fault_names_no_broker() -> None:
    assert set(asdict(MirrorFault("north-all", "kill", ""))) == {"mirror", "kind", "at"}


def test_a_fleet_is_ready_when_its_mirrors_copy() -> None:
    assert not _ready(status("up", "up", "starting"))
    assert _ready(status("up", "up", "up"))


def test_a_mirror_that_ended_while_the_fleet_started_is_named_with_its_log() -> None:
    with pytest.raises(NotReadyError, match=r"mirror all-0 ended: see .*mirrors/all-0/mirror\.log"):
        _ready(status("up", "dead"))


@pytest.mark.parametrize(
    ("broker", "mirror", "settled"),
    [
        ("up", "up", True),
        ("up", "hung", True),
        ("up", "dead", True),
        ("up", "waiting", False),
        ("up", "starting", False),
        ("starting", "up", False),
        ("dead", "waiting", True),
        ("hung", "starting", True),
    ],
)
def test_a_fleet_settles_without_what_waits_for_a_faulty_cluster(
    broker: BrokerState, mirror: MirrorState, settled: bool
) -> None:
    assert _settled(status(broker, mirror)) == settled


def test_progress_speaks_of_mirrors_where_there_are_some() -> None:
    assert _summary(status("up")) == "1 of 1 brokers ready"
    assert _summary(status("up", "up", "waiting")) == "1 of 1 brokers ready, 1 of 2 mirrors copy"
