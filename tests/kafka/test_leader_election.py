"""Leader election with a real group coordinator: one leader, takeover, and loss while a process is paused."""

import os
import signal
import subprocess
import sys
import uuid
from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from confluent_kafka.admin import AdminClient

from fleetgauge_core.fleet import ClusterAccess
from fleetgauge_core.kafka import (
    ClusterAdmin,
    LeaderElection,
    Leadership,
    LeadershipStatus,
    TopicSpec,
)
from fleetgauge_local.fleet import LocalFleet
from tests.waiting import wait_until

DEADLINE_S = 60
#: Prints the status once elected, then again for each line of its input. It may wait between a poll of the
#: group and the proof of its leadership, as a process on a busy machine does.
CANDIDATE = f"""
import sys
from fleetgauge_core.fleet import ClusterAccess
from fleetgauge_core.kafka import LeaderElection
class DelayedElection(LeaderElection):
    def _prove(self):
        self._consumer.poll(float(sys.argv[3]))
        return super()._prove()
election = DelayedElection(ClusterAccess(sys.argv[1]), sys.argv[2])
election.start()
while (leadership := election.wait_for_leadership(1)) is None:
    pass
print(leadership.confirm({DEADLINE_S}), flush=True)
for _ in sys.stdin:
    print(leadership.confirm({DEADLINE_S}), flush=True)
"""


class ElectionTopic:
    """A new topic, and candidates of an election on it."""

    def __init__(self, access: ClusterAccess) -> None:
        self.access = access
        self.topic = f"election-{uuid.uuid4().hex[:8]}"
        admin = ClusterAdmin(access)
        admin.start()
        admin.create_topic(TopicSpec(self.topic, partitions=1, replication_factor=1))

    def count_members(self) -> int:
        """Return how many members the consumer group has."""
        client = AdminClient({"bootstrap.servers": self.access.bootstrap})
        return len(client.describe_consumer_groups([self.topic])[self.topic].result().members)

    @contextmanager
    def candidate(self) -> Iterator[LeaderElection]:
        """Run a candidate in this process."""
        election = LeaderElection(self.access, self.topic)
        election.start()
        try:
            yield election
        finally:
            election.stop()

    @contextmanager
    def leader_process(self, delay_s: float = 0) -> Iterator["subprocess.Popen[str]"]:
        """Run a candidate in another process, and wait until it is the leader."""
        command = (sys.executable, "-c", CANDIDATE, self.access.bootstrap, self.topic, str(delay_s))
        with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
            try:
                assert read_status(process) == "held"
                yield process
            finally:
                process.kill()


def read_status(process: "subprocess.Popen[str]") -> str:
    assert process.stdout
    return process.stdout.readline().strip()


def request_status(process: "subprocess.Popen[str]") -> str:
    """Return the leadership status that the process reports now."""
    assert process.stdin
    process.stdin.write("?\n")
    process.stdin.flush()
    return read_status(process)


def wait_until_elected(election: LeaderElection) -> Leadership:
    wait_until(lambda: election.wait_for_leadership(0) is not None, DEADLINE_S, "the election")
    leadership = election.wait_for_leadership(0)
    assert leadership
    return leadership


@pytest.fixture
def topic(local_fleet: LocalFleet) -> ElectionTopic:
    return ElectionTopic(ClusterAccess(local_fleet.bootstrap("telemetry")))


def test_a_candidate_that_joins_does_not_replace_the_leader(topic: ElectionTopic) -> None:
    with topic.leader_process() as leader, topic.candidate() as election:
        wait_until(lambda: topic.count_members() == 2, DEADLINE_S, "both members to join")
        wait_until(lambda: request_status(leader) == "held", DEADLINE_S, "the rebalance to end")
        assert election.wait_for_leadership(0) is None


def test_a_leader_that_stops_loses_its_leadership_to_the_next_candidate(topic: ElectionTopic) -> None:
    with topic.candidate() as election:
        first = wait_until_elected(election)
        assert first.confirm() is LeadershipStatus.HELD
    assert first.confirm() is LeadershipStatus.LOST
    with topic.candidate() as election:
        assert wait_until_elected(election).confirm() is LeadershipStatus.HELD


def test_a_candidate_replaces_a_killed_leader(topic: ElectionTopic) -> None:
    with topic.leader_process() as leader, topic.candidate() as election:
        leader.kill()
        assert wait_until_elected(election).confirm() is LeadershipStatus.HELD


@pytest.mark.parametrize("delay_s", [0, 0.15], ids=["proves_at_once", "proves_during_the_rebalance"])
def test_a_paused_leader_learns_on_resuming_that_it_lost_its_leadership(
    topic: ElectionTopic, delay_s: float
) -> None:
    with topic.leader_process(delay_s) as leader, topic.candidate() as election:
        os.kill(leader.pid, signal.SIGSTOP)
        leadership = wait_until_elected(election)
        os.kill(leader.pid, signal.SIGCONT)
        assert request_status(leader) == "lost"
        wait_until(lambda: leadership.confirm() is LeadershipStatus.HELD, DEADLINE_S, "the rebalance to end")
