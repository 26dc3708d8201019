"""The local fleet with real brokers: every fault, and every way in which the fleet can stop."""

import json
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from datetime import datetime
from pathlib import Path

import psutil
import pytest
from click.testing import CliRunner
from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

from fleetgauge_core.fleet.load import load_fleet
from fleetgauge_local.cli import fleet
from fleetgauge_local.errors import LocalFleetError, NoFleetError, RequestError
from fleetgauge_local.fleet import LocalFleet
from fleetgauge_local.fleet_folder import FleetFolder, RunnerState, read_json
from fleetgauge_local.layout import ClusterSpec
from fleetgauge_local.metadata_request import list_known_brokers
from fleetgauge_local.processes import find_process
from fleetgauge_local.runner_protocol import BrokerStatus

DEADLINE_S = 30
ONE_BROKER = (ClusterSpec("lone", brokers=1),)
START_AND_WAIT = """
import sys, time
from pathlib import Path
from fleetgauge_local.fleet import LocalFleet
from fleetgauge_local.layout import ClusterSpec
LocalFleet(Path(sys.argv[1]), (ClusterSpec("lone", brokers=1),)).start()
print(flush=True)
time.sleep(300)
"""
#: The command line; a hangup ends it also if the tests were started by nohup.
UP = """
import signal
signal.signal(signal.SIGHUP, signal.SIG_DFL)
from fleetgauge_core.runtime.entry_point import run
run()
"""
QUIET = {"log_level": 0, "reconnect.backoff.max.ms": 500}


def wait_until_true(condition: Callable[[], bool], deadline_s: float = DEADLINE_S) -> None:
    deadline = time.monotonic() + deadline_s
    while not condition():
        assert time.monotonic() < deadline, "the condition did not come true in time"
        time.sleep(0.05)


def find_broker_status(fleet: LocalFleet, cluster: str, broker: int) -> BrokerStatus:
    for status in fleet.status().clusters:
        if status.cluster == cluster:
            return status.brokers[broker - 1]
    raise AssertionError(cluster)


def find_port(fleet: LocalFleet, cluster: str, broker: int) -> int:
    return int(find_broker_status(fleet, cluster, broker).address.split(":")[1])


def list_brokers_at(port: int, timeout_s: float = 2) -> frozenset[int]:
    return list_known_brokers("127.0.0.1", port, timeout_s)


def list_pids(fleet: LocalFleet) -> list[int]:
    brokers = [broker for cluster in fleet.status().clusters for broker in cluster.brokers]
    return [broker.pid for broker in brokers if broker.pid is not None]


def is_alive(pid: int) -> bool:
    """Whether the process runs; an orphan may remain a zombie until its new parent reaps it."""
    try:
        return psutil.Process(pid).status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False


def produce(bootstrap: str, topic: str, records: int) -> None:
    admin = AdminClient({"bootstrap.servers": bootstrap, **QUIET})
    for creation in admin.create_topics([NewTopic(topic, 1, -1)]).values():
        creation.result(DEADLINE_S)
    producer = Producer({"bootstrap.servers": bootstrap, "acks": "all", **QUIET})
    for number in range(records):
        producer.produce(topic, str(number).encode())
    assert producer.flush(DEADLINE_S) == 0


def consume(bootstrap: str, topic: str, records: int) -> list[int]:
    consumer = Consumer({"bootstrap.servers": bootstrap, "group.id": topic, **QUIET})
    consumer.assign([TopicPartition(topic, 0, 0)])
    numbers: list[int] = []
    deadline = time.monotonic() + DEADLINE_S
    while len(numbers) < records and time.monotonic() < deadline:
        message = consumer.poll(0.5)
        if message is not None and message.error() is None:
            numbers.append(int(message.value() or b""))
    consumer.close()
    return numbers


@pytest.fixture
def lone_fleet(tmp_path: Path) -> Iterator[LocalFleet]:
    fleet = LocalFleet(tmp_path / "lone", ONE_BROKER)
    fleet.start()
    yield fleet
    fleet.stop()


def test_every_cluster_lists_all_its_brokers_at_its_bootstrap(local_fleet: LocalFleet) -> None:
    for cluster, brokers in (("orders", {1, 2, 3}), ("payments", {1, 2, 3}), ("telemetry", {1})):
        admin = AdminClient({"bootstrap.servers": local_fleet.bootstrap(cluster), **QUIET})
        described = admin.describe_cluster(request_timeout=DEADLINE_S).result()
        assert {node.id for node in described.nodes} == brokers


def test_clients_get_the_addresses_of_the_proxies_and_the_racks(local_fleet: LocalFleet) -> None:
    admin = AdminClient({"bootstrap.servers": local_fleet.bootstrap("orders"), **QUIET})
    nodes = admin.describe_cluster(request_timeout=DEADLINE_S).result().nodes
    expected = {broker.address: broker.rack for broker in local_fleet.status().clusters[0].brokers}
    assert {f"{node.host}:{node.port}": node.rack for node in nodes} == expected
    assert set(expected.values()) == {"z1", "z2", "z3"}


def test_the_fleet_file_has_the_bootstrap_of_every_measured_cluster(local_fleet: LocalFleet) -> None:
    described = load_fleet(local_fleet.fleet_file)
    assert {cluster.id: cluster.bootstrap for cluster in described.clusters} == {
        name: local_fleet.bootstrap(name) for name in ("orders", "payments")
    }


def test_a_broker_uses_less_memory_than_documented(local_fleet: LocalFleet) -> None:
    for cluster in local_fleet.status().clusters:
        for broker in cluster.brokers:
            assert broker.rss_mib is not None
            assert broker.rss_mib < 350


def test_a_hung_broker_accepts_connections_without_answering_until_it_is_healed(
    breakable_fleet: LocalFleet,
) -> None:
    port = find_port(breakable_fleet, "orders", 2)
    fault = breakable_fleet.fault("hang", "orders", 2)
    assert (fault.cluster, fault.broker, fault.kind) == ("orders", 2, "hang")
    assert datetime.fromisoformat(fault.at).utcoffset() is not None
    assert find_broker_status(breakable_fleet, "orders", 2).state == "hung"
    with socket.create_connection(("127.0.0.1", port), timeout=2):
        assert list_brokers_at(port, timeout_s=0.5) == frozenset()
    breakable_fleet.fault("heal", "orders", 2)
    wait_until_true(lambda: 2 in list_brokers_at(port))


def test_a_hang_with_a_duration_ends_by_itself(breakable_fleet: LocalFleet) -> None:
    port = find_port(breakable_fleet, "payments", 3)
    breakable_fleet.fault("hang", "payments", 3, for_s=1)
    assert list_brokers_at(port, timeout_s=0.3) == frozenset()
    wait_until_true(lambda: 3 in list_brokers_at(port))
    wait_until_true(lambda: find_broker_status(breakable_fleet, "payments", 3).state == "up")


def test_a_killed_broker_refuses_connections_and_restarts_on_its_port_with_its_data(
    breakable_fleet: LocalFleet,
) -> None:
    port = find_port(breakable_fleet, "telemetry", 1)
    produce(breakable_fleet.bootstrap("telemetry"), "kept", 20)
    breakable_fleet.fault("kill", "telemetry", 1)
    with pytest.raises(ConnectionRefusedError):
        socket.create_connection(("127.0.0.1", port), timeout=2)
    assert find_broker_status(breakable_fleet, "telemetry", 1).state == "dead"
    with pytest.raises(RequestError, match="telemetry-1 is dead: heal it first"):
        breakable_fleet.fault("hang", "telemetry", 1)
    breakable_fleet.fault("heal", "telemetry", 1)
    breakable_fleet.wait_ready()
    assert find_port(breakable_fleet, "telemetry", 1) == port
    assert consume(breakable_fleet.bootstrap("telemetry"), "kept", 20) == list(range(20))


def test_a_broker_is_restarted_in_an_orderly_way_by_the_command(breakable_fleet: LocalFleet) -> None:
    directory = breakable_fleet.status().directory
    before = find_broker_status(breakable_fleet, "orders", 3)
    result = CliRunner().invoke(fleet, ["restart", "orders", "3", "--dir", str(directory), "--json"])
    assert result.exit_code == 0, result.output
    restart = json.loads(result.stdout)
    assert (restart["cluster"], restart["broker"]) == ("orders", 3)
    assert restart["ended_at"] < restart["started_at"]
    breakable_fleet.wait_ready()
    after = find_broker_status(breakable_fleet, "orders", 3)
    assert (after.address, after.state, after.pid != before.pid) == (before.address, "up", True)
    assert "orders-3: sent SIGTERM" in (directory / "runner.log").read_text()
    breakable_fleet.fault("kill", "orders", 3)
    with pytest.raises(RequestError, match="orders-3 is dead: only a broker that is up can be restarted"):
        breakable_fleet.restart("orders", 3)


def test_a_slow_broker_delays_its_own_responses_only(breakable_fleet: LocalFleet) -> None:
    slow, peer = find_port(breakable_fleet, "orders", 1), find_port(breakable_fleet, "orders", 3)
    breakable_fleet.fault("slow", "orders", 1, delay_ms=150)
    assert find_broker_status(breakable_fleet, "orders", 1).delay_ms == 150

    def measure_s(port: int) -> float:
        started = time.monotonic()
        assert list_brokers_at(port) == {1, 2, 3}
        return time.monotonic() - started

    assert measure_s(slow) >= 0.3
    assert min(measure_s(peer) for _ in range(5)) < 0.15
    breakable_fleet.fault("heal", "orders", 1)
    assert min(measure_s(slow) for _ in range(5)) < 0.15


def test_a_black_hole_affects_clients_but_not_the_other_brokers(breakable_fleet: LocalFleet) -> None:
    port, peer = find_port(breakable_fleet, "payments", 1), find_port(breakable_fleet, "payments", 2)
    breakable_fleet.fault("blackhole", "payments", 1)
    assert list_brokers_at(port, timeout_s=0.5) == frozenset()
    assert list_brokers_at(peer) == {1, 2, 3}
    breakable_fleet.fault("heal", "payments", 1)
    assert list_brokers_at(port) == {1, 2, 3}


@pytest.mark.parametrize(
    ("cluster", "broker", "line"),
    [
        ("nowhere", 1, "there is no cluster 'nowhere': the clusters are orders, payments, telemetry"),
        ("orders", 9, "cluster orders has no broker 9: its brokers are 1, 2, 3"),
    ],
)
def test_a_fault_on_an_unknown_broker_is_reported_in_one_line(
    cluster: str, broker: int, line: str, local_fleet: LocalFleet
) -> None:
    with pytest.raises(RequestError) as raised:
        local_fleet.fault("hang", cluster, broker)
    assert str(raised.value) == line


def test_a_second_start_returns_the_running_fleet(local_fleet: LocalFleet) -> None:
    before = list_pids(local_fleet)
    again = LocalFleet(local_fleet.fleet_file.parent)
    assert again.start().ready
    assert list_pids(again) == before


def test_a_restart_after_a_killed_runner_ends_its_brokers_and_keeps_their_data(
    lone_fleet: LocalFleet,
) -> None:
    produce(lone_fleet.bootstrap("lone"), "kept", 10)
    before = lone_fleet.status()
    orphans = list_pids(lone_fleet)
    os.kill(before.runner_pid, signal.SIGKILL)
    wait_until_true(lambda: not lone_fleet._is_runner_alive())
    assert all(is_alive(pid) for pid in orphans)
    with pytest.raises(NoFleetError):
        lone_fleet.status()
    again = LocalFleet(before.directory, ONE_BROKER)
    try:
        status = again.start()
        assert status.runner_pid != before.runner_pid
        assert not any(is_alive(pid) for pid in orphans)
        assert again.bootstrap("lone") == before.clusters[0].bootstrap
        assert consume(again.bootstrap("lone"), "kept", 10) == list(range(10))
    finally:
        again.stop()


def test_stop_ends_the_brokers_of_a_killed_runner(lone_fleet: LocalFleet) -> None:
    status = lone_fleet.status()
    orphans = list_pids(lone_fleet)
    lone_fleet.fault("hang", "lone", 1)
    os.kill(status.runner_pid, signal.SIGKILL)
    assert lone_fleet.stop() == 1
    assert not any(is_alive(pid) for pid in orphans)


def test_stop_ends_a_hung_broker_and_no_process_of_another_fleet(
    lone_fleet: LocalFleet, local_fleet: LocalFleet
) -> None:
    pids_of_other_fleet = list_pids(local_fleet)
    (broker_pid,) = list_pids(lone_fleet)
    lone_fleet.fault("hang", "lone", 1)
    assert lone_fleet.stop() == 1
    assert not is_alive(broker_pid)
    assert list_pids(local_fleet) == pids_of_other_fleet


def test_a_terminated_runner_stops_its_brokers(lone_fleet: LocalFleet) -> None:
    status = lone_fleet.status()
    (broker_pid,) = list_pids(lone_fleet)
    os.kill(status.runner_pid, signal.SIGTERM)
    wait_until_true(lambda: not is_alive(broker_pid) and not lone_fleet._is_runner_alive())
    assert lone_fleet.stop() == 0


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
def test_a_command_that_is_told_to_end_while_it_starts_a_fleet_ends_what_it_started(
    tmp_path: Path, number: signal.Signals
) -> None:
    command = [sys.executable, "-c", UP, "fleet", "up", "--dir", str(tmp_path)]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as process:
        wait_until_true(lambda: FleetFolder(tmp_path).state.exists() or process.poll() is not None)
        state = read_json(FleetFolder(tmp_path).state, RunnerState)
        process.send_signal(number)
        _, err = process.communicate(timeout=DEADLINE_S)
    assert (process.returncode, err) == (130, f"interrupted; what was started in {tmp_path} has ended\n")
    assert state is not None
    assert not any(
        find_process(identity) for identity in (state.runner, *(broker.identity for broker in state.brokers))
    )
    assert not FleetFolder(tmp_path).state.exists()


def test_the_fleet_stops_with_the_process_that_started_it(tmp_path: Path) -> None:
    command = [sys.executable, "-c", START_AND_WAIT, str(tmp_path)]
    with subprocess.Popen(command, stdout=subprocess.PIPE) as starter:
        assert starter.stdout is not None
        starter.stdout.readline()
        state = read_json(FleetFolder(tmp_path).state, RunnerState)
        assert state is not None
        identities = [state.runner, *(broker.identity for broker in state.brokers)]
        starter.kill()
    wait_until_true(lambda: not any(find_process(identity) for identity in identities))


def test_a_folder_name_may_be_long_and_contain_spaces(tmp_path: Path) -> None:
    with LocalFleet(tmp_path / ("long name " * 12) / "größe", ONE_BROKER) as fleet:
        assert fleet.status().ready
        produce(fleet.bootstrap("lone"), "some", 1)


def test_a_folder_with_other_clusters_is_rejected_unless_started_fresh(lone_fleet: LocalFleet) -> None:
    folder = lone_fleet.fleet_file.parent
    lone_fleet.stop()
    other = LocalFleet(folder, (ClusterSpec("other", brokers=1),))
    with pytest.raises(
        LocalFleetError, match="holds a fleet with other clusters: give their topology, choose another"
    ):
        other.start()
    try:
        assert other.start(fresh=True).clusters[0].cluster == "other"
    finally:
        other.stop()


def run_fleet_command(*arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "fleetgauge_core", "fleet", *arguments]
    return subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)


def test_the_command_prints_exactly_one_json_value(breakable_fleet: LocalFleet) -> None:
    folder = ("--dir", str(breakable_fleet.fleet_file.parent), "--json")
    running = json.loads(run_fleet_command("up", *folder).stdout)
    assert running["ready"]
    assert running["fleet_file"] == str(breakable_fleet.fleet_file)
    fault = json.loads(run_fleet_command("fault", "slow", "orders", "2", "--ms", "20", *folder).stdout)
    assert set(fault) == {"cluster", "broker", "kind", "at"}
    status = json.loads(run_fleet_command("status", *folder).stdout)
    assert status["clusters"][0]["brokers"][1]["delay_ms"] == 20


def test_the_command_reports_an_error_in_one_line(local_fleet: LocalFleet, tmp_path: Path) -> None:
    folder = str(local_fleet.fleet_file.parent)
    unknown_broker = run_fleet_command("fault", "hang", "orders", "7", "--dir", folder)
    assert (unknown_broker.returncode, unknown_broker.stdout) == (2, "")
    assert unknown_broker.stderr == "fleetgauge: cluster orders has no broker 7: its brokers are 1, 2, 3\n"
    no_fleet = run_fleet_command("status", "--dir", str(tmp_path))
    assert no_fleet.returncode == 2
    assert no_fleet.stderr.endswith("start it with `fleetgauge fleet up`\n")
