"""Changes that are reported to a running watch by HTTP, at work or waiting."""

import json
import subprocess
import sys
import uuid
from contextlib import ExitStack
from dataclasses import replace
from datetime import UTC, datetime
from http.client import HTTPConnection
from pathlib import Path
from typing import Any

import pytest

from fleetgauge_core.contract import HealthEvent
from fleetgauge_core.fleet import Fleet
from fleetgauge_core.kafka import RecordProducer
from fleetgauge_local.fleet import LocalFleet
from fleetgauge_operations.changes.change_topic import read_change_records
from tests.exposition import samples
from tests.post_flood import POSTS
from tests.topic_values import read_values
from tests.unit.core.detection.pulses import broker, hung, pulse
from tests.waiting import wait_until
from tests.watch_process import DEADLINE_S, Watch, run_watch

TOKEN = "a-token-of-ci"
REPORT = {"title": "orders 2.4", "cluster": "orders", "kind": "deploy"}


@pytest.fixture(scope="module")
def fleet_file(local_fleet: LocalFleet, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder, suffix = tmp_path_factory.mktemp("webhook"), uuid.uuid4().hex[:8]
    topics: dict[str, Any] = {
        name: {"name": f"{name}-{suffix}", "partitions": 1, "retention_hours": 1}
        for name in ("probe_minutes", "probe_pulse", "health_events", "changes")
    }
    topics["watch_state"] = {"name": f"watch-state-{suffix}"}
    (folder / "token").write_text(TOKEN)
    document = {
        "clusters": [{"id": "orders", "bootstrap": "nobody:1"}],
        "telemetry": {"bootstrap": local_fleet.bootstrap("telemetry"), "topics": topics},
        "lake": str(folder / "lake"),
        "change_sources": [{"name": "ci", "token": {"file": "token"}}],
    }
    path = folder / "fleet.yaml"
    path.write_text(json.dumps(document))
    return path


def read_fleet(fleet_file: Path) -> Fleet:
    return Fleet.model_validate(json.loads(fleet_file.read_text()), context={"folder": fleet_file.parent})


def post(watch: Watch, document: Any, token: str = TOKEN, source: str = "ci") -> tuple[int, dict[str, Any]]:
    body = document if isinstance(document, bytes) else json.dumps(document).encode()
    connection = HTTPConnection("127.0.0.1", watch.port, timeout=60)
    connection.request("POST", f"/changes/{source}", body, {"Authorization": f"Bearer {token}"})
    response = connection.getresponse()
    answer: dict[str, Any] = json.loads(response.read())
    return response.status, answer


def test_every_watch_takes_reports_and_says_what_is_wrong_with_others(fleet_file: Path) -> None:
    telemetry = read_fleet(fleet_file).telemetry
    assert telemetry
    with ExitStack() as stack:
        watches = [
            stack.enter_context(run_watch(fleet_file, name, secret=TOKEN)) for name in ("at-work", "waiting")
        ]
        active = [samples(watch.get("/metrics")[1], "fleetgauge_watch_active") for watch in watches]
        assert sorted(value for sample in active for value in sample.values()) == [0.0, 1.0]
        ids = []
        for watch in watches:
            status, answer = post(watch, REPORT)
            assert (status, answer["status"]) == (202, "recorded")
            ids.append(answer["change_id"])
            assert post(watch, REPORT, token="wrong")[0] == 401
            assert post(watch, b" " * 70_000)[0] == 413
            assert post(watch, b"{")[0] == 400
            assert post(watch, REPORT | {"cluster": "nobody"}) == (
                400,
                {"error": "cluster: the fleet has no cluster 'nobody'"},
            )
            counted = samples(watch.get("/metrics")[1], "fleetgauge_change_reports_total")
            assert counted == {("ci", "202"): 1.0, ("ci", "401"): 1.0, ("ci", "400"): 2.0}
        records = {record.change_id: record for record in read_change_records(telemetry)}
        assert records.keys() == set(ids)
        assert {record.source for record in records.values()} == {"webhook: ci"}


def test_a_thousand_posts_a_second_are_all_answered_while_the_watch_finds_a_hang(fleet_file: Path) -> None:
    telemetry = read_fleet(fleet_file).telemetry
    assert telemetry
    agent = RecordProducer(telemetry.access, "agent")
    agent.start()
    with run_watch(fleet_file, "flooded", secret=TOKEN) as watch:

        def report(*hung_ids: int) -> None:
            brokers = (hung(9, number) if number in hung_ids else broker(number) for number in range(1, 4))
            sent = replace(pulse(0, *brokers, cluster="orders"), emitted_at=datetime.now(UTC))
            agent.send(telemetry.topics.probe_pulse.name, "orders", sent.encode())

        def is_found() -> bool:
            report(2)
            events = map(
                HealthEvent.decode, read_values(telemetry.access, telemetry.topics.health_events.name)
            )
            return any(event.broker_id == 2 and event.to_state == "BROKER_DOWN" for event in events)

        report()
        flood = subprocess.Popen(
            [sys.executable, "-m", "tests.post_flood", str(watch.port), TOKEN, json.dumps(REPORT)],
            stdout=subprocess.PIPE,
            text=True,
        )
        wait_until(is_found, DEADLINE_S, "the finding", every_s=0.5)
        output, _ = flood.communicate(timeout=DEADLINE_S)
        statuses = {int(status): count for status, count in json.loads(output)["statuses"].items()}
        assert sum(statuses.values()) == POSTS, output
        assert statuses.keys() == {202, 400, 401, 413, 429}, output
        # As many as the burst allows, and one more every second that the flood took.
        assert 60 <= statuses[202] + statuses[400] <= 61 + json.loads(output)["seconds"], output
        assert watch.get("/livez")[0] == 200
    agent.stop()


def test_a_telemetry_cluster_that_does_not_answer_is_503(
    breakable_fleet: LocalFleet, fleet_file: Path
) -> None:
    with run_watch(fleet_file, "cut-off", secret=TOKEN) as watch:
        breakable_fleet.fault("hang", "telemetry", 1)
        status, answer = post(watch, REPORT)
        breakable_fleet.fault("heal", "telemetry", 1)
        assert status == 503, answer
        assert "send it again later" in answer["error"]
        wait_until(lambda: post(watch, REPORT)[0] == 202, DEADLINE_S, "a report that is stored")
