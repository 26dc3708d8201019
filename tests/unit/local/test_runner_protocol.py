from dataclasses import asdict
from pathlib import Path

import pytest
from pydantic import TypeAdapter

from fleetgauge_local.errors import NotReadyError
from fleetgauge_local.fleet import _is_ready, _is_settled, _summarize
from fleetgauge_local.runner_protocol import (
    BrokerState,
    BrokerStatus,
    ClusterStatus,
    FleetStatus,
    MirrorFault,
    MirrorState,
    MirrorStatus,
    RunnerRequest,
    RunnerResponse,
)


def status(broker: BrokerState, *mirrors: MirrorState) -> FleetStatus:
    broker_status = BrokerStatus(1, "z1", "127.0.0.1:20000", broker, 1, 100, 0, 1, False)
    return FleetStatus(
        Path("fleet"),
        2,
        broker == "up" and set(mirrors) <= {"up"},
        (ClusterStatus("north", broker_status.address, (broker_status,)),),
        tuple(MirrorStatus(f"all-{n}", ("north",), state, 3, 200) for n, state in enumerate(mirrors)),
    )


@pytest.mark.parametrize(
    "message",
    [
        RunnerRequest("fault", "hang", mirror="north-all", for_s=60),
        RunnerResponse(mirror_fault=MirrorFault("north-all", "kill", "2026-03-02T10:00:00.000Z")),
        RunnerResponse(status=status("up", "up", "waiting")),
    ],
)
def test_a_message_about_mirrors_survives_serialization(message: RunnerRequest | RunnerResponse) -> None:
    adapter = TypeAdapter(type(message))
    assert adapter.validate_json(adapter.dump_json(message)) == message


def test_a_mirror_fault_has_no_broker() -> None:
    assert set(asdict(MirrorFault("north-all", "kill", ""))) == {"mirror", "kind", "at"}


def test_a_fleet_is_ready_when_its_mirrors_replicate() -> None:
    assert not _is_ready(status("up", "up", "starting"))
    assert _is_ready(status("up", "up", "up"))


def test_a_mirror_that_ended_during_startup_is_reported_with_its_log() -> None:
    with pytest.raises(NotReadyError, match=r"mirror all-0 ended: see .*mirrors/all-0/mirror\.log"):
        _is_ready(status("up", "dead"))


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
def test_a_fleet_settles_without_mirrors_that_wait_for_a_faulty_cluster(
    broker: BrokerState, mirror: MirrorState, settled: bool
) -> None:
    assert _is_settled(status(broker, mirror)) == settled


def test_the_summary_includes_mirrors_if_the_fleet_has_any() -> None:
    assert _summarize(status("up")) == "1 of 1 brokers ready"
    assert _summarize(status("up", "up", "waiting")) == "1 of 1 brokers ready, 1 of 2 mirrors replicating"
